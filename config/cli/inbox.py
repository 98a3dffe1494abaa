"""`arbor inbox`: what agents wrote to the people of their tenant."""

from __future__ import annotations

from typing import Any

import click
from rich.markup import escape

from apps.contacts.models import OutboxMessage
from apps.contacts.services.inbox import count_unread, inbox, mark_read
from apps.fleet.contact import answer_message
from apps.tenants.scope import tenant_transaction
from config.cli.memory.finding import find_in_tenant, short, tenant_of_row
from config.cli.memory.listing import cut
from config.cli.output import ago, json_option, show, stamp, table
from config.cli.tenancy import actor, choose_agent, tenant_option, tenant_or_all


@click.group("inbox", invoke_without_command=True)
@click.option("--agent", metavar="NAME", help="Of this agent only.")
@click.option("--unread", is_flag=True, help="What nobody has read.")
@click.option("--limit", type=click.IntRange(1, 500), default=20, show_default=True)
@tenant_option
@json_option
@click.pass_context
def inbox_group(
    context: click.Context,
    agent: str | None,
    unread: bool,
    limit: int,
    tenant_slug: str | None,
    as_json: bool,
) -> None:
    """What agents wrote to you, the latest first; `read ID` shows one, `answer ID` answers it.

    ID is an id, or the last characters of one.

    \b
    Example: arbor inbox --unread
    """
    if context.invoked_subcommand is not None:
        return
    chosen = choose_agent(agent, tenant_slug) if agent else None
    with tenant_or_all(chosen.tenant_slug if chosen else tenant_slug, reason="list of the inbox") as tenant:
        rows = inbox(agent_id=chosen.id if chosen else None, unread=unread)
        found = list(rows.select_related("agent", "tenant")[:limit])
        waiting = count_unread()
    people: Any = table(
        ("id", "when", "agent", *(() if tenant else ("tenant",)), "read", "subject"),
        (
            (
                short(each.id),
                ago(each.created_at),
                each.agent.name,
                *(() if tenant else (each.tenant.slug,)),
                "" if each.read_at else "new",
                cut(each.subject or each.content),
            )
            for each in found
        ),
        title=f"{waiting} unread" if waiting else None,
    )
    empty = "Nothing here. Agents write when something is worth your attention."
    show(
        {"unread": waiting, "messages": [_line(each) for each in found]},
        as_json=as_json,
        people=people if found else empty,
    )


@inbox_group.command("read")
@click.argument("message_id", metavar="ID")
@tenant_option
@json_option
def read(message_id: str, tenant_slug: str | None, as_json: bool) -> None:
    """Show a message; it counts as read from then on.

    \b
    Example: arbor inbox read 0c5512aa
    """
    with tenant_transaction(tenant_of_row(OutboxMessage, message_id, tenant_slug)):
        message = mark_read(message_id=find_in_tenant(OutboxMessage, message_id))
        line = _line(message)
    said = (
        f"[bold]{escape(message.subject)}[/bold]\n"
        f"[dim]{escape(message.agent.name)}, {message.created_at:%Y-%m-%d %H:%M} UTC[/dim]\n\n{escape(message.content)}"
    )
    show(line, as_json=as_json, people=said)


@inbox_group.command("answer")
@click.argument("message_id", metavar="ID")
@click.argument("text")
@tenant_option
@json_option
def answer(message_id: str, text: str, tenant_slug: str | None, as_json: bool) -> None:
    """Answer a message: its agent hears it at its next heartbeat, which comes at once.

    \b
    Example: arbor inbox answer 0c5512aa "Thank you. Wait for the thaw."
    """
    with tenant_transaction(tenant_of_row(OutboxMessage, message_id, tenant_slug)):
        found = find_in_tenant(OutboxMessage, message_id)
        percept = answer_message(message_id=found, text=text, actor=actor())
        name = percept.agent.name
    show(
        {"message": found, "percept": percept.id, "agent": name},
        as_json=as_json,
        people=f"[bold]{escape(name)}[/bold] hears it at its next heartbeat.",
    )


def _line(each: OutboxMessage) -> dict[str, Any]:
    return {
        "id": each.id,
        "agent": each.agent.name,
        "tenant": each.tenant.slug,
        "subject": each.subject,
        "content": each.content,
        "at": stamp(each.created_at),
        "read_at": stamp(each.read_at),
        "heartbeat": each.heartbeat_id,
    }
