"""By what a beat decides, as it found it: read from its context, and put on record so that it can be decided again."""

from __future__ import annotations

from typing import Any

from arbor.embedding.models import EmbeddingModel
from arbor.heartbeat.budgets import DEFAULT_BUDGET, Budget, budget_of
from arbor.heartbeat.situation import Situation, Terms
from arbor.pipeline.engine import Context
from arbor.selves.boundary_check import BoundaryRule, in_force
from arbor.selves.default_boundaries import DEFAULT_BOUNDARIES


def on_record(context: Context, *, window: int | None = None) -> Situation:
    """Return the situation with the terms of its decisions; one that has them as it is, for it is stored already.

    `window` is what its prompt had to fit into, in tokens.
    """
    situation: Situation = context["situation"]
    if situation.terms is not None:
        return situation
    chosen = context.get("budget") or {}
    terms = Terms(
        allowed=context["allowed"],
        missing=context.get("missing") or {},
        budget=budget_in(context).kind.value,
        allowance=chosen.get("allowance"),
        boundaries=own_boundaries(context),
        window=window,
    )
    return situation.model_copy(update={"terms": terms})


def model_in(context: Context) -> EmbeddingModel | None:
    """Return the model of the agent's vectors as the beat found it; none while it remembered nothing."""
    mind = context.get("mind")
    return EmbeddingModel(name=mind["name"], dimension=mind["dimension"]) if mind else None


def boundaries_in(context: Context) -> tuple[BoundaryRule, ...]:
    """Return the boundaries of the agent, as the beat found them."""
    return in_force(DEFAULT_BOUNDARIES, own_boundaries(context))


def own_boundaries(context: Context) -> list[dict[str, Any]]:
    """Return the agent's own rows of boundaries, as JSON."""
    found: list[dict[str, Any]] = (context.get("self") or {}).get("boundaries", [])
    return found


def budget_in(context: Context) -> Budget:
    """Return the budget of the agent, as the beat found it."""
    chosen = context.get("budget")
    return budget_of(chosen["kind"], chosen["allowance"]) if chosen else DEFAULT_BUDGET
