"""`arbor inbox list`: what agents wrote to the people of their tenant."""

from __future__ import annotations

from typing import Any

from rich.markup import escape

from apps.contacts.models import OutboxMessage
from apps.contacts.services.inbox import answer_message, count_unread, inbox, mark_read
from apps.tenants.scope import tenant_transaction
from config.cli.kit import Output
from config.cli.lookup import find_in_tenant, tenant_of_row
from config.cli.output import ago, cut, short, stamp, table
from config.cli.tenancy import actor, choose_agent, tenant_or_all


def list_messages(agent: str | None, unread: bool, limit: int, tenant_slug: str | None) -> Output:
    """List the messages from agents, the latest first."""
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
    return Output(
        {"unread": waiting, "messages": [_line(each) for each in found]},
        people=people if found else empty,
    )


def read(message_id: str, tenant_slug: str | None) -> Output:
    """Show a message and mark it as read."""
    with tenant_transaction(tenant_of_row(OutboxMessage, message_id, tenant_slug)):
        message = mark_read(message_id=find_in_tenant(OutboxMessage, message_id))
        line = _line(message)
    said = (
        f"[bold]{escape(message.subject)}[/bold]\n"
        f"[dim]{escape(message.agent.name)}, {message.created_at:%Y-%m-%d %H:%M} UTC[/dim]\n\n{escape(message.content)}"
    )
    return Output(line, people=said)


def answer(message_id: str, text: str, tenant_slug: str | None) -> Output:
    """Answer a message: its agent reads the answer at its next heartbeat, which starts at once."""
    with tenant_transaction(tenant_of_row(OutboxMessage, message_id, tenant_slug)):
        found = find_in_tenant(OutboxMessage, message_id)
        percept = answer_message(message_id=found, text=text, actor=actor())
        name = percept.agent.name
    return Output(
        {"message": found, "percept": percept.id, "agent": name},
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
