"""Sweep the outbox: re-enqueue unsent messages and fail the attempts of lost workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connections, transaction

from apps.contacts.services.delivery import notify_writer
from apps.contacts.services.outbox import deliver_message
from apps.queues import enqueue
from apps.tenants.models import TenantStatus
from apps.tenants.scope import OPS, tenant_transaction
from apps.tenants.statements import fetch
from arbor.contacts.delivery import MAX_TRIES, WAITS

log = structlog.get_logger(__name__)

#: The most messages that one sweep enqueues.
_SWEPT = 500

# Those of suspended tenants rest. A hint is believed in for as long as its lease.
_ENQUEUE_DUE = """
WITH due AS MATERIALIZED (
    SELECT m.tenant_id, m.id FROM contacts_outboxmessage m
    JOIN tenants_tenant t ON t.id = m.tenant_id AND t.status = %(active)s
    WHERE m.status = 'pending' AND m.due_at <= now() AND (m.lease_until IS NULL OR m.lease_until < now())
    ORDER BY m.due_at LIMIT %(budget)s FOR UPDATE OF m SKIP LOCKED
)
UPDATE contacts_outboxmessage m SET lease_until = now() + %(lease_s)s * interval '1 second' FROM due
WHERE m.tenant_id = due.tenant_id AND m.id = due.id
RETURNING m.id, m.tenant_id, m.kind
"""
# Nobody knows whether the receiver has it: the next try carries the same key.
_LOST = "'the worker of try ' || m.attempts || ' did not come back; whether the message arrived is not known'"
_GIVE_UP_LOST = f"""
WITH lost AS MATERIALIZED (
    SELECT m.tenant_id, m.id FROM contacts_outboxmessage m
    JOIN tenants_tenant t ON t.id = m.tenant_id AND t.status = %(active)s
    WHERE m.status = 'sending' AND m.lease_until < now() AND m.attempts - m.tries_before < %(tries)s
    ORDER BY m.lease_until LIMIT %(budget)s FOR UPDATE OF m SKIP LOCKED
)
UPDATE contacts_outboxmessage m
SET status = 'pending', due_at = now() + (%(waits)s::interval[])[m.attempts - m.tries_before], lease_until = NULL,
    last_error = {_LOST}
FROM lost WHERE m.tenant_id = lost.tenant_id AND m.id = lost.id
RETURNING m.id
"""  # noqa: S608 (our own words)
# Who wrote it hears of the last one, in the transaction that ends it.
_LOST_AT_LAST = """
SELECT m.id, m.tenant_id FROM contacts_outboxmessage m
JOIN tenants_tenant t ON t.id = m.tenant_id AND t.status = %(active)s
WHERE m.status = 'sending' AND m.lease_until < now() AND m.attempts - m.tries_before >= %(tries)s
ORDER BY m.lease_until LIMIT %(budget)s
"""
_END_LOST = f"""
UPDATE contacts_outboxmessage m SET status = 'failed', due_at = now(), lease_until = NULL, last_error = {_LOST}
WHERE m.tenant_id = %(tenant)s AND m.id = %(message)s AND m.status = 'sending' AND m.lease_until < now()
    AND m.attempts - m.tries_before >= %(tries)s
RETURNING m.agent_id, m.kind, m.subject, m.content, m.last_error
"""  # noqa: S608 (our own words)


@dataclass(frozen=True, kw_only=True)
class Swept:
    """The counts of a sweep: re-enqueued messages, and attempts of lost workers."""

    told: int = 0
    lost: int = 0

    @property
    def messages(self) -> int:
        """Return the number of messages in the sweep."""
        return self.told + self.lost


def sweep_outbox() -> Swept:
    """Re-enqueue unsent messages, and fail the attempts of lost workers. Sweeps may run concurrently."""
    with transaction.atomic(using=OPS), connections[OPS].cursor() as cursor:
        shared: dict[str, Any] = {"active": TenantStatus.ACTIVE.value, "budget": _SWEPT}
        cursor.execute(_GIVE_UP_LOST, {**shared, "tries": MAX_TRIES, "waits": list(WAITS)})
        lost = len(cursor.fetchall())
        cursor.execute(_LOST_AT_LAST, {**shared, "tries": MAX_TRIES})
        last = cursor.fetchall()
        lease_s = settings.ARBOR_QUEUE_LEASE.total_seconds()
        cursor.execute(_ENQUEUE_DUE, {**shared, "lease_s": lease_s})
        due = cursor.fetchall()
        for message_id, tenant_id, kind in due:
            enqueue(deliver_message(message_id=message_id, tenant_id=tenant_id, kind=kind), using=OPS)
    lost += sum(_end_lost(message_id, tenant_id) for message_id, tenant_id in last)
    if lost:
        log.warning("deliveries_lost", messages=lost)
    return Swept(told=len(due), lost=lost)


def _end_lost(message_id: UUID, tenant_id: UUID) -> bool:
    """Fail a message whose last worker was lost, and notify its writer; False if another sweep did."""
    with tenant_transaction(tenant_id):
        rows = fetch(_END_LOST, message=message_id, tries=MAX_TRIES)
        for agent_id, kind, subject, content, reason in rows:
            notify_writer(message_id, agent_id, kind=kind, about=subject or content, reason=reason)
    return bool(rows)
