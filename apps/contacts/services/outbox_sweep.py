"""Sweep the outbox: re-enqueue unsent messages and fail the attempts of lost workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connections, transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from apps.contacts.models import OutboxMessage
from apps.contacts.services.delivery import notify_writer
from apps.contacts.services.outbox import delivery_message
from apps.contacts.services.queries import LEASE_DUE_MESSAGES, RETRY_LOST_MESSAGES
from apps.queues import enqueue
from apps.tenants.models import TenantStatus
from apps.tenants.scope import OPS, tenant_transaction
from arbor.contacts.delivery import MAX_TRIES, WAITS
from arbor.contacts.values import DeliveryStatus

log = structlog.get_logger(__name__)

#: The most messages that one sweep enqueues.
_SWEPT = 500


@dataclass(frozen=True, kw_only=True)
class OutboxSweep:
    """The counts of a sweep: re-enqueued messages, and attempts of lost workers."""

    enqueued: int = 0
    lost: int = 0

    @property
    def messages(self) -> int:
        """Return the number of messages in the sweep."""
        return self.enqueued + self.lost


def sweep_outbox() -> OutboxSweep:
    """Re-enqueue unsent messages, and fail the attempts of lost workers. Sweeps may run concurrently."""
    with transaction.atomic(using=OPS), connections[OPS].cursor() as cursor:
        shared: dict[str, Any] = {"active": TenantStatus.ACTIVE.value, "budget": _SWEPT}
        cursor.execute(RETRY_LOST_MESSAGES, {**shared, "tries": MAX_TRIES, "waits": list(WAITS)})
        lost = len(cursor.fetchall())
        exhausted = list(
            _lost_on_last_try(QuerySet(OutboxMessage, using=OPS))
            .filter(tenant__status=TenantStatus.ACTIVE)
            .order_by("lease_until")
            .values_list("id", "tenant_id")[:_SWEPT]
        )
        lease_s = settings.ARBOR_QUEUE_LEASE.total_seconds()
        cursor.execute(LEASE_DUE_MESSAGES, {**shared, "lease_s": lease_s})
        due = cursor.fetchall()
        for message_id, tenant_id, kind in due:
            enqueue(delivery_message(message_id=message_id, tenant_id=tenant_id, kind=kind), using=OPS)
    lost += sum(_fail_lost(message_id, tenant_id) for message_id, tenant_id in exhausted)
    if lost:
        log.warning("deliveries_lost", messages=lost)
    return OutboxSweep(enqueued=len(due), lost=lost)


def _fail_lost(message_id: UUID, tenant_id: UUID) -> bool:
    """Fail a message whose last worker was lost, and notify its writer; False if another sweep did."""
    with tenant_transaction(tenant_id):
        message: OutboxMessage | None = (
            _lost_on_last_try(OutboxMessage.objects.select_for_update()).filter(id=message_id).first()
        )
        if message is None:
            return False
        message.status, message.due_at, message.lease_until = DeliveryStatus.FAILED, timezone.now(), None
        message.last_error = f"the worker of try {message.attempts} did not come back; whether the message arrived is not known"
        message.save(update_fields=["status", "due_at", "lease_until", "last_error"])
        notify_writer(
            message_id=message.id,
            agent_id=message.agent_id,
            kind=message.kind,
            about=message.subject or message.content,
            reason=message.last_error,
        )
    return True


def _lost_on_last_try(messages: QuerySet[OutboxMessage]) -> QuerySet[OutboxMessage]:
    """Return the messages of lost workers that have no attempt left."""
    return messages.filter(
        status=DeliveryStatus.SENDING,
        lease_until__lt=Now(),
        attempts__gte=F("tries_before") + MAX_TRIES,
    )
