"""Manage the aspects of an agent's identity, and its preferences."""

from __future__ import annotations

import click
from rich.markup import escape

from apps.selves.models import IdentityAspect, Preference
from apps.selves.services.aspects import add_aspect, drop_aspect, revise_aspect
from apps.selves.services.preferences import set_preference, unset_preference
from arbor.selves.values import AspectKind, AspectRevision, BeliefStatus, NewAspect
from config.cli.kit.columns import OutputColumn, listing, number, row_to_dict
from config.cli.kit.declarations import Output
from config.cli.kit.lookup import find_id
from config.cli.kit.output import cut, format_relative_time, short
from config.cli.kit.tenancy import ChosenAgent, actor, in_agent_transaction

ASPECT_COLUMNS = (
    OutputColumn("id", "id", cell=short),
    OutputColumn("kind", "kind", cell=lambda kind: kind.replace("_", " ")),
    OutputColumn("strength", "strength", cell=number),
    OutputColumn("stability", "firm", cell=number),
    OutputColumn("status", "status"),
    OutputColumn("source", "from"),
    OutputColumn("content", "aspect", cell=cut),
)


@in_agent_transaction
def list_aspects(agent: ChosenAgent, *, with_dropped: bool) -> Output:
    """List the aspects of an agent's identity, the most stable first."""
    aspects = IdentityAspect.objects.filter(agent_id=agent.id).order_by("-stability", "id")
    return listing(
        "aspects",
        [aspect for aspect in aspects if with_dropped or aspect.status != BeliefStatus.DROPPED],
        ASPECT_COLUMNS,
        about={"agent": agent.name},
        empty=f"{escape(agent.name)} has no aspect yet.",
    )


@in_agent_transaction
def add(agent: ChosenAgent, *, content: str, kind: str, strength: float, stability: float) -> Output:
    """Add an aspect to an agent's identity."""
    aspect = NewAspect(
        content=content,
        kind=AspectKind(kind),
        strength=strength,
        stability=stability,
        source="operator",
    )
    added = add_aspect(agent_id=agent.id, aspect=aspect, actor=actor())
    return _aspect_output(agent, added)


@in_agent_transaction
def revise(
    agent: ChosenAgent,
    *,
    aspect_id: str,
    strength: float | None,
    stability: float | None,
    status: str | None,
    reason: str,
) -> Output:
    """Change an aspect's strength, stability or status."""
    if strength is None and stability is None and status is None:
        raise click.UsageError("say what is to change: --strength, --stability or --status")
    row_id = find_id(agent, IdentityAspect, aspect_id)
    revision = AspectRevision(
        strength=strength,
        stability=stability,
        status=BeliefStatus(status) if status else None,
        reason=reason,
    )
    return _aspect_output(agent, revise_aspect(aspect_id=row_id, actor=actor(), revision=revision))


@in_agent_transaction
def drop(agent: ChosenAgent, *, aspect_id: str, reason: str) -> Output:
    """Drop an aspect of an agent's identity. Its row is not deleted."""
    row_id = find_id(agent, IdentityAspect, aspect_id)
    dropped = drop_aspect(aspect_id=row_id, actor=actor(), reason=reason)
    return _aspect_output(agent, dropped)


def _aspect_output(agent: ChosenAgent, aspect: IdentityAspect) -> Output:
    text = f"[bold]{escape(aspect.content)}[/bold] ({short(aspect.id)}) is {aspect.status}."
    return Output({"agent": agent.name, **row_to_dict(aspect, ASPECT_COLUMNS)}, text=text)


PREFERENCE_COLUMNS = (
    OutputColumn("key", "key"),
    OutputColumn("value", "preference"),
    OutputColumn("source", "from"),
    OutputColumn("updated_at", "since", cell=format_relative_time),
)


@in_agent_transaction
def list_preferences(agent: ChosenAgent) -> Output:
    """List an agent's preferences."""
    name = escape(agent.name)
    return listing(
        "preferences",
        list(Preference.objects.filter(agent_id=agent.id)),
        PREFERENCE_COLUMNS,
        about={"agent": agent.name},
        empty=f"{name} prefers nothing yet. [bold]arbor self preference set {agent.argument} tone short[/bold]",
    )


@in_agent_transaction
def store_preference(agent: ChosenAgent, *, key: str, value: str) -> Output:
    """Set an agent's preference under a key."""
    row = set_preference(agent_id=agent.id, key=key, value=value, actor=actor())
    text = f"{escape(agent.name)} prefers [bold]{escape(row.key)}[/bold]: {escape(row.value)}"
    return Output({"agent": agent.name, **row_to_dict(row, PREFERENCE_COLUMNS)}, text=text)


@in_agent_transaction
def remove_preference(agent: ChosenAgent, *, key: str) -> Output:
    """Remove an agent's preference."""
    row = unset_preference(agent_id=agent.id, key=key, actor=actor())
    text = f"{escape(agent.name)} no longer prefers {escape(row.key)}: {escape(row.value)}"
    return Output({"agent": agent.name, **row_to_dict(row, PREFERENCE_COLUMNS), "removed": True}, text=text)
