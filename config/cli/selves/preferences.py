"""Manage the preferences of an agent."""

from __future__ import annotations

from rich.markup import escape

from apps.selves.models import Preference
from apps.selves.services.preferences import set_preference, unset_preference
from config.cli.columns import OutputColumn, facts, listing
from config.cli.kit import Output
from config.cli.output import ago
from config.cli.tenancy import ChosenAgent, actor, in_agent_transaction

PREFERENCE = (
    OutputColumn("key", "key"),
    OutputColumn("value", "preference"),
    OutputColumn("source", "from"),
    OutputColumn("updated_at", "since", cell=ago),
)


@in_agent_transaction
def list_preferences(agent: ChosenAgent) -> Output:
    """List an agent's preferences."""
    name = escape(agent.name)
    return listing(
        "preferences",
        list(Preference.objects.filter(agent_id=agent.id)),
        PREFERENCE,
        about={"agent": agent.name},
        empty=f"{name} prefers nothing yet. [bold]arbor self preference set {name} tone short[/bold]",
    )


@in_agent_transaction
def set_one(agent: ChosenAgent, *, key: str, value: str) -> Output:
    """Set an agent's preference under a key."""
    row = set_preference(agent_id=agent.id, key=key, value=value, actor=actor())
    people = f"{escape(agent.name)} prefers [bold]{escape(row.key)}[/bold]: {escape(row.value)}"
    return Output({"agent": agent.name, **facts(row, PREFERENCE)}, people=people)


@in_agent_transaction
def remove(agent: ChosenAgent, *, key: str) -> Output:
    """Remove an agent's preference."""
    row = unset_preference(agent_id=agent.id, key=key, actor=actor())
    people = f"{escape(agent.name)} no longer prefers {escape(row.key)}: {escape(row.value)}"
    return Output({"agent": agent.name, **facts(row, PREFERENCE), "removed": True}, people=people)
