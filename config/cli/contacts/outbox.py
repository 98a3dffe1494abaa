"""List, retry and cancel outgoing messages."""

from __future__ import annotations

from apps.contacts.models import OutboxMessage
from apps.contacts.services.channels import redact_target
from apps.contacts.services.outbox import cancel_message, installation_figures, outbox_figures, retry_message
from apps.tenants.scope import tenant_transaction
from config.cli.kit.columns import OutputColumn, columns_for, listing, row_to_dict
from config.cli.kit.declarations import Output
from config.cli.kit.lookup import find_in_tenant, tenant_of_row
from config.cli.kit.output import cut, format_relative_time, short
from config.cli.kit.tenancy import ChosenAgent, actor, tenant_or_all, with_optional_agent

OUTBOX_COLUMNS = (
    OutputColumn("id", "id", cell=short),
    OutputColumn("created_at", "decided", cell=format_relative_time),
    OutputColumn("agent", "agent", value=lambda message: message.agent.name),
    OutputColumn("tenant", "tenant", value=lambda message: message.tenant.slug),
    OutputColumn("kind", "by"),
    OutputColumn("target", "to", value=redact_target),
    OutputColumn("status", "status"),
    OutputColumn("attempts", "tries", cell=lambda attempts: attempts or ""),
    OutputColumn(head="subject", value=lambda message: cut(message.subject or message.content)),
    OutputColumn("last_error", "error", cell=cut),
    *(OutputColumn(key) for key in ("audience", "subject", "content", "due_at", "sent_at")),
    OutputColumn("heartbeat", value=lambda message: message.heartbeat_id),
    OutputColumn("key", value=lambda message: message.idempotency_key),
)


@with_optional_agent
def list_outbox(
    agent: ChosenAgent | None, *, status: str | None, limit: int, tenant_slug: str | None
) -> Output:
    """List outgoing messages and their delivery, the latest first."""
    with tenant_or_all(tenant_slug, reason="list of the outbox") as tenant:
        messages = OutboxMessage.objects.select_related("agent", "tenant").order_by("-created_at", "-id")
        if agent:
            messages = messages.filter(agent_id=agent.id)
        if status:
            messages = messages.filter(status=status)
        shown = list(messages[:limit])
        agent_id = agent.id if agent else None
        figures = outbox_figures(agent_id=agent_id) if tenant else installation_figures()
    return listing(
        "messages",
        shown,
        columns_for(OUTBOX_COLUMNS, one_tenant=tenant is not None),
        about={"waiting": figures.waiting, "failed": figures.failed},
        empty="No messages.",
        title=figures.in_words,
    )


def retry(message_id: str, tenant_slug: str | None) -> Output:
    """Retry a failed message, with all its attempts again."""
    with tenant_transaction(tenant_of_row(OutboxMessage, message_id, tenant_slug)):
        message = retry_message(message_id=find_in_tenant(OutboxMessage, message_id), actor=actor())
        line = row_to_dict(message, OUTBOX_COLUMNS)
    return Output(line, text="Delivery is retried at once.")


def cancel(message_id: str, tenant_slug: str | None) -> Output:
    """Cancel a message that was not sent. Its row stays."""
    with tenant_transaction(tenant_of_row(OutboxMessage, message_id, tenant_slug)):
        message = cancel_message(message_id=find_in_tenant(OutboxMessage, message_id), actor=actor())
        line = row_to_dict(message, OUTBOX_COLUMNS)
    return Output(line, text="The message is cancelled.")
