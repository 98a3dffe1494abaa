"""Read and answer agents' messages."""

from __future__ import annotations

from rich.markup import escape

from apps.contacts.models import OutboxMessage
from apps.contacts.services.inbox import COUNTED_AT_MOST, count_unread, inbox, mark_read
from apps.fleet.contact import answer_message
from apps.tenants.scope import tenant_transaction
from arbor.quotations import bounded
from config.cli.kit.columns import OutputColumn, columns_for, listing, row_to_dict
from config.cli.kit.declarations import Output
from config.cli.kit.lookup import find_in_tenant, tenant_of_row
from config.cli.kit.output import cut, format_relative_time, short
from config.cli.kit.tenancy import ChosenAgent, actor, tenant_or_all, with_optional_agent

INBOX_COLUMNS = (
    OutputColumn("id", "id", cell=short),
    OutputColumn("at", "when", value=lambda message: message.created_at, cell=format_relative_time),
    OutputColumn("agent", "agent", value=lambda message: message.agent.name),
    OutputColumn("tenant", "tenant", value=lambda message: message.tenant.slug),
    OutputColumn("read_at", "read", cell=lambda read_at: "" if read_at else "new"),
    OutputColumn(head="subject", value=lambda message: cut(message.subject or message.content)),
    OutputColumn("subject"),
    OutputColumn("content"),
    OutputColumn("heartbeat", value=lambda message: message.heartbeat_id),
)


@with_optional_agent
def list_inbox(agent: ChosenAgent | None, *, unread: bool, limit: int, tenant_slug: str | None) -> Output:
    """List the messages from agents, the latest first."""
    with tenant_or_all(tenant_slug, reason="list of the inbox") as tenant:
        agent_id = agent.id if agent else None
        messages = inbox(agent_id=agent_id, unread=unread)
        shown = list(messages.select_related("agent", "tenant")[:limit])
        waiting = count_unread(agent_id=agent_id)
    return listing(
        "messages",
        shown,
        columns_for(INBOX_COLUMNS, one_tenant=tenant is not None),
        about={"unread": waiting},
        empty="Nothing here. Agents write when something is worth your attention.",
        title=f"{bounded(waiting, COUNTED_AT_MOST)} unread" if waiting else None,
    )


def read(message_id: str, tenant_slug: str | None) -> Output:
    """Show a message and mark it as read."""
    with tenant_transaction(tenant_of_row(OutboxMessage, message_id, tenant_slug)):
        message = mark_read(message_id=find_in_tenant(OutboxMessage, message_id))
        line = row_to_dict(message, INBOX_COLUMNS)
    text = (
        f"[bold]{escape(message.subject)}[/bold]\n"
        f"[dim]{escape(message.agent.name)}, {message.created_at:%Y-%m-%d %H:%M} UTC[/dim]\n\n{escape(message.content)}"
    )
    return Output(line, text=text)


def answer(message_id: str, text: str, tenant_slug: str | None) -> Output:
    """Answer a message: its agent reads the answer at its next heartbeat, which starts at once."""
    with tenant_transaction(tenant_of_row(OutboxMessage, message_id, tenant_slug)):
        own_id = find_in_tenant(OutboxMessage, message_id)
        percept = answer_message(message_id=own_id, text=text, actor=actor())
        name = percept.agent.name
    return Output(
        {"message": own_id, "percept": percept.id, "agent": name},
        text=f"[bold]{escape(name)}[/bold] receives the answer at its next heartbeat.",
    )
