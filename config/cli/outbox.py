"""`arbor contact outbox`: what agents sent, what waits, and what did not arrive."""

from __future__ import annotations

from typing import Any

from apps.contacts.models import OutboxMessage
from apps.contacts.services.channels import shown_target
from apps.contacts.services.figures import installation_figures, outbox_figures
from apps.contacts.services.outbox import cancel_message, retry_message
from apps.tenants.scope import tenant_transaction
from config.cli.kit import Output
from config.cli.lookup import find_in_tenant, tenant_of_row
from config.cli.output import ago, cut, short, stamp, table
from config.cli.tenancy import actor, choose_agent, tenant_or_all


def list_messages(agent: str | None, status: str | None, limit: int, tenant_slug: str | None) -> Output:
    """List outgoing messages and their delivery, the latest first."""
    chosen = choose_agent(agent, tenant_slug) if agent else None
    with tenant_or_all(chosen.tenant_slug if chosen else tenant_slug, reason="list of the outbox") as tenant:
        rows = OutboxMessage.objects.select_related("agent", "tenant").order_by("-created_at", "-id")
        if chosen:
            rows = rows.filter(agent_id=chosen.id)
        if status:
            rows = rows.filter(status=status)
        found = list(rows[:limit])
        figures = outbox_figures() if tenant else installation_figures()
    people: Any = table(
        (
            "id",
            "decided",
            "agent",
            *(() if tenant else ("tenant",)),
            "by",
            "to",
            "status",
            "tries",
            "subject",
            "trouble",
        ),
        (
            (
                short(each.id),
                ago(each.created_at),
                each.agent.name,
                *(() if tenant else (each.tenant.slug,)),
                each.kind,
                shown_target(each),
                each.status,
                each.attempts or "",
                cut(each.subject or each.content),
                cut(each.last_error),
            )
            for each in found
        ),
        title=f"{figures.waiting} wait, {figures.failed} failed",
    )
    told = {
        "waiting": figures.waiting,
        "failed": figures.failed,
        "messages": [_line(each) for each in found],
    }
    return Output(told, people=people if found else "No messages.")


def retry(message_id: str, tenant_slug: str | None) -> Output:
    """Retry a failed message, from its first attempt on."""
    with tenant_transaction(tenant_of_row(OutboxMessage, message_id, tenant_slug)):
        message = retry_message(message_id=find_in_tenant(OutboxMessage, message_id), actor=actor())
        line = _line(message)
    return Output(line, people="It is tried again at once.")


def cancel(message_id: str, tenant_slug: str | None) -> Output:
    """Cancel a message that was not sent. Its row stays."""
    with tenant_transaction(tenant_of_row(OutboxMessage, message_id, tenant_slug)):
        message = cancel_message(message_id=find_in_tenant(OutboxMessage, message_id), actor=actor())
        line = _line(message)
    return Output(line, people="It is withdrawn.")


def _line(each: OutboxMessage) -> dict[str, Any]:
    return {
        "id": each.id,
        "agent": each.agent.name,
        "tenant": each.tenant.slug,
        "kind": each.kind,
        "audience": each.audience,
        "target": shown_target(each),
        "subject": each.subject,
        "content": each.content,
        "status": each.status,
        "attempts": each.attempts,
        "last_error": each.last_error,
        "created_at": stamp(each.created_at),
        "due_at": stamp(each.due_at),
        "sent_at": stamp(each.sent_at),
        "heartbeat": each.heartbeat_id,
        "key": each.idempotency_key,
    }
