"""`arbor self belief`: what an agent believes, changed by a person's hand."""

from __future__ import annotations

from typing import Any

import click
from rich.markup import escape

from apps.selves.models import Belief
from apps.selves.services.beliefs import drop_belief, hold_belief, revise_belief
from arbor.selves.values import (
    BeliefCategory,
    NewBelief,
    Standing,
)
from config.cli.kit import Output
from config.cli.lookup import find_id
from config.cli.output import cut, short, table
from config.cli.tenancy import ChosenAgent, actor, in_agent_transaction

share = click.FloatRange(0, 1)


@in_agent_transaction
def list_beliefs(agent: ChosenAgent, *, with_dropped: bool) -> Output:
    """List an agent's beliefs, the firmest first."""
    found = list(Belief.objects.filter(agent_id=agent.id))
    kept = [each for each in found if with_dropped or each.status != Standing.DROPPED]
    kept.sort(
        key=lambda each: (each.status == Standing.DROPPED, -(each.stability + each.confidence), each.id)
    )
    people: Any = table(
        ("id", "about", "sure", "firm", "status", "from", "belief"),
        (
            (
                short(each.id),
                each.category,
                f"{each.confidence:.2f}",
                f"{each.stability:.2f}",
                each.status,
                each.source,
                cut(each.statement),
            )
            for each in kept
        ),
    )
    told = {"agent": agent.name, "beliefs": [_line(each) for each in kept]}
    empty = f'{agent.name} believes nothing yet. [bold]arbor self belief add {escape(agent.name)} "…"[/bold]'
    return Output(told, people=people if kept else empty)


@in_agent_transaction
def add(agent: ChosenAgent, *, statement: str, category: str, confidence: float, stability: float) -> Output:
    """Add a belief; a dropped one is restored."""
    held = hold_belief(
        agent_id=agent.id,
        belief=NewBelief(
            statement=statement,
            category=BeliefCategory(category),
            confidence=confidence,
            stability=stability,
            source="operator",
        ),
        actor=actor(),
    )
    return _show(agent, held)


@in_agent_transaction
def revise(
    agent: ChosenAgent,
    *,
    belief_id: str,
    confidence: float | None,
    stability: float | None,
    status: str | None,
    reason: str,
) -> Output:
    """Change a belief's confidence, stability or status."""
    if confidence is None and stability is None and status is None:
        raise click.UsageError("say what is to change: --confidence, --stability or --status")
    revised = revise_belief(
        belief_id=find_id(agent, Belief, belief_id),
        actor=actor(),
        confidence=confidence,
        stability=stability,
        status=Standing(status) if status else None,
        reason=reason,
    )
    return _show(agent, revised)


@in_agent_transaction
def drop(agent: ChosenAgent, *, belief_id: str, reason: str) -> Output:
    """Drop a belief. Its row stays."""
    dropped = drop_belief(belief_id=find_id(agent, Belief, belief_id), actor=actor(), reason=reason)
    return _show(agent, dropped)


def _line(each: Belief) -> dict[str, Any]:
    return {
        "id": each.id,
        "category": each.category,
        "statement": each.statement,
        "confidence": each.confidence,
        "stability": each.stability,
        "status": each.status,
        "source": each.source,
    }


def _show(agent: ChosenAgent, each: Belief) -> Output:
    said = f"[bold]{escape(each.statement)}[/bold] ({short(each.id)}) is {each.status}, {each.confidence:.0%} sure."
    return Output({"agent": agent.name, **_line(each)}, people=said)
