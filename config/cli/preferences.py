"""`arbor preference`: how an agent likes to do things, set by a person's hand."""

from __future__ import annotations

from typing import Any

import click
from rich.markup import escape

from apps.selves.models import Preference
from apps.selves.services.preferences import set_preference, unset_preference
from apps.tenants.scope import tenant_transaction
from config.cli.output import ago, json_option, show, table
from config.cli.tenancy import actor, choose_agent, tenant_option


@click.group()
def preference() -> None:
    """Preferences: how an agent likes to do things, a line under a key."""


@preference.command("list")
@click.argument("agent")
@tenant_option
@json_option
def list_them(agent: str, tenant_slug: str | None, as_json: bool) -> None:
    """List what an agent prefers.

    \b
    Example: arbor preference list Vega
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        found = list(Preference.objects.filter(agent_id=chosen.id))
    people: Any = table(
        ("key", "preference", "from", "since"),
        ((each.key, each.value, each.source, ago(each.updated_at)) for each in found),
    )
    empty = (
        f"{escape(chosen.name)} prefers nothing yet."
        f" [bold]arbor preference set {escape(chosen.name)} tone short[/bold]"
    )
    told = {"agent": chosen.name, "preferences": [_line(each) for each in found]}
    show(told, as_json=as_json, people=people if found else empty)


@preference.command("set")
@click.argument("agent")
@click.argument("key")
@click.argument("value")
@tenant_option
@json_option
def set_it(agent: str, key: str, value: str, tenant_slug: str | None, as_json: bool) -> None:
    """Let an agent prefer something; it replaces what stood under that key.

    \b
    Example: arbor preference set Vega tone "short and dry"
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        row = set_preference(agent_id=chosen.id, key=key, value=value, actor=actor())
    people = f"{escape(chosen.name)} prefers [bold]{escape(row.key)}[/bold]: {escape(row.value)}"
    show({"agent": chosen.name, **_line(row)}, as_json=as_json, people=people)


@preference.command("remove")
@click.argument("agent")
@click.argument("key")
@tenant_option
@json_option
def remove(agent: str, key: str, tenant_slug: str | None, as_json: bool) -> None:
    """Take a preference away.

    \b
    Example: arbor preference remove Vega tone
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        row = unset_preference(agent_id=chosen.id, key=key, actor=actor())
    people = f"{escape(chosen.name)} no longer prefers {escape(row.key)}: {escape(row.value)}"
    show({"agent": chosen.name, **_line(row), "removed": True}, as_json=as_json, people=people)


def _line(each: Preference) -> dict[str, Any]:
    return {"key": each.key, "value": each.value, "source": each.source, "updated_at": each.updated_at}
