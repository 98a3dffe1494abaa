"""By what rules a beat decides, put on record with what it saw: so that it can be decided again."""

from __future__ import annotations

from apps.heartbeats.handlers.observe import budget_in, own_boundaries
from arbor.heartbeat.situation import Situation, Terms
from arbor.pipeline.engine import Context


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
