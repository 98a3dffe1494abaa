"""`arbor self preference`: how an agent likes to do things, set by a person's hand."""

from __future__ import annotations

from typing import Any

from rich.markup import escape

from apps.selves.models import Preference
from apps.selves.services.preferences import set_preference, unset_preference
from config.cli.kit import Output
from config.cli.output import ago, table
from config.cli.tenancy import ChosenAgent, actor, in_agent_transaction


@in_agent_transaction
def list_preferences(agent: ChosenAgent) -> Output:
    """List an agent's preferences."""
    found = list(Preference.objects.filter(agent_id=agent.id))
    people: Any = table(
        ("key", "preference", "from", "since"),
        ((each.key, each.value, each.source, ago(each.updated_at)) for each in found),
    )
    empty = (
        f"{escape(agent.name)} prefers nothing yet."
        f" [bold]arbor self preference set {escape(agent.name)} tone short[/bold]"
    )
    told = {"agent": agent.name, "preferences": [_line(each) for each in found]}
    return Output(told, people=people if found else empty)


@in_agent_transaction
def set_one(agent: ChosenAgent, *, key: str, value: str) -> Output:
    """Set an agent's preference under a key."""
    row = set_preference(agent_id=agent.id, key=key, value=value, actor=actor())
    people = f"{escape(agent.name)} prefers [bold]{escape(row.key)}[/bold]: {escape(row.value)}"
    return Output({"agent": agent.name, **_line(row)}, people=people)


@in_agent_transaction
def remove(agent: ChosenAgent, *, key: str) -> Output:
    """Remove an agent's preference."""
    row = unset_preference(agent_id=agent.id, key=key, actor=actor())
    people = f"{escape(agent.name)} no longer prefers {escape(row.key)}: {escape(row.value)}"
    return Output({"agent": agent.name, **_line(row), "removed": True}, people=people)


def _line(each: Preference) -> dict[str, Any]:
    return {"key": each.key, "value": each.value, "source": each.source, "updated_at": each.updated_at}
