"""Manage the beliefs of an agent."""

from __future__ import annotations

import click
from rich.markup import escape

from apps.selves.models import Belief
from apps.selves.services.beliefs import add_belief, change_filters, drop_belief, revise_belief
from arbor.quotations import counted
from arbor.selves.values import BeliefCategory, BeliefRevision, BeliefStatus, NewBelief
from config.cli.kit.columns import OutputColumn, listing, number, row_to_dict
from config.cli.kit.declarations import Output
from config.cli.kit.lookup import find_id
from config.cli.kit.output import cut, short
from config.cli.kit.tenancy import ChosenAgent, actor, in_agent_transaction

BELIEF_COLUMNS = (
    OutputColumn("id", "id", cell=short),
    OutputColumn("category", "about"),
    OutputColumn("confidence", "sure", cell=number),
    OutputColumn("stability", "firm", cell=number),
    OutputColumn("status", "status"),
    OutputColumn("source", "from"),
    OutputColumn("statement", "belief", cell=cut),
)


@in_agent_transaction
def list_beliefs(agent: ChosenAgent, *, with_dropped: bool) -> Output:
    """List an agent's beliefs, the highest sum of confidence and stability first."""
    beliefs = [
        belief
        for belief in Belief.objects.filter(agent_id=agent.id)
        if with_dropped or belief.status != BeliefStatus.DROPPED
    ]
    beliefs.sort(
        key=lambda belief: (
            belief.status == BeliefStatus.DROPPED,
            -(belief.stability + belief.confidence),
            belief.id,
        )
    )
    name = escape(agent.name)
    return listing(
        "beliefs",
        beliefs,
        BELIEF_COLUMNS,
        about={"agent": agent.name},
        empty=f'{name} has no belief yet. [bold]arbor self belief add {agent.argument} "…"[/bold]',
    )


@in_agent_transaction
def add(agent: ChosenAgent, *, statement: str, category: str, confidence: float, stability: float) -> Output:
    """Add a belief; a dropped one is restored."""
    belief = add_belief(
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
    return _belief_output(agent, belief)


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
        revision=BeliefRevision(
            confidence=confidence,
            stability=stability,
            status=BeliefStatus(status) if status else None,
            reason=reason,
        ),
        actor=actor(),
    )
    return _belief_output(agent, revised)


@in_agent_transaction
def edit_filters(
    agent: ChosenAgent,
    *,
    belief_id: str,
    effect: str | None,
    patterns: tuple[str, ...],
    types: tuple[str, ...],
    clear: bool,
    reason: str,
) -> Output:
    """Add a memory filter to a belief, or remove all its memory filters."""
    if clear == bool(effect) or (clear and (patterns or types)):
        raise click.UsageError("say what is to change: --effect with --word or --type, or --clear")
    rule = {"effect": effect, "patterns": list(patterns), "types": list(types)}
    changed = change_filters(
        belief_id=find_id(agent, Belief, belief_id),
        added=None if clear else rule,
        actor=actor(),
        reason=reason,
    )
    filters = counted(len(changed.filters), "memory filter")
    text = f"[bold]{escape(changed.statement)}[/bold] ({short(changed.id)}) has {filters}."
    return Output(
        {"agent": agent.name, **row_to_dict(changed, BELIEF_COLUMNS), "filters": changed.filters}, text=text
    )


@in_agent_transaction
def drop(agent: ChosenAgent, *, belief_id: str, reason: str) -> Output:
    """Drop a belief. Its row is not deleted."""
    dropped = drop_belief(belief_id=find_id(agent, Belief, belief_id), actor=actor(), reason=reason)
    return _belief_output(agent, dropped)


def _belief_output(agent: ChosenAgent, belief: Belief) -> Output:
    text = f"[bold]{escape(belief.statement)}[/bold] ({short(belief.id)}) is {belief.status}, {belief.confidence:.0%} sure."
    return Output({"agent": agent.name, **row_to_dict(belief, BELIEF_COLUMNS)}, text=text)
