"""Log the requests of webhooks, and send one again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.contacts.models import HookDelivery, SignalWebhook
from apps.tenants.scope import current_tenant
from arbor.contacts.hooks import HookDeliveryStatus
from arbor.errors import NotFound, TransitionIllegal
from arbor.models.json_text import storable

_EVENT_LENGTH = 200
_ERROR_LENGTH = 1_000
_RESENDABLE = (HookDeliveryStatus.CONFIRMED, HookDeliveryStatus.FAILED)


@dataclass(frozen=True, kw_only=True)
class RequestAttempt:
    """An attempt of a webhook's request; without an error it was confirmed."""

    webhook_id: UUID
    message_id: str
    #: The names of its signals, in order.
    names: Sequence[str]
    begin: str
    end: str
    error: str = ""


def record_attempt(attempt: RequestAttempt) -> None:
    """Store an attempt: a request that is repeated has one row."""
    status = HookDeliveryStatus.RETRYING if attempt.error else HookDeliveryStatus.CONFIRMED
    values = {"status": status, "error": storable(attempt.error)[:_ERROR_LENGTH], "tried_at": timezone.now()}
    same = HookDelivery.objects.filter(webhook_id=attempt.webhook_id, once_key=attempt.message_id)
    if same.update(attempts=F("attempts") + 1, **values):
        return
    HookDelivery.objects.create(
        tenant_id=current_tenant(),
        webhook_id=attempt.webhook_id,
        once_key=attempt.message_id,
        delivery_id=attempt.message_id,
        event=", ".join(dict.fromkeys(attempt.names))[:_EVENT_LENGTH],
        begin=attempt.begin,
        end=attempt.end,
        **values,
    )


def record_resend(*, delivery_id: UUID, error: str) -> None:
    """Store the result of a delivery that a person resent; it is not retried automatically."""
    HookDelivery.objects.filter(id=delivery_id).update(
        status=HookDeliveryStatus.FAILED if error else HookDeliveryStatus.CONFIRMED,
        error=storable(error)[:_ERROR_LENGTH],
        attempts=F("attempts") + 1,
        tried_at=timezone.now(),
    )


def end_retry(webhook: SignalWebhook, *, except_for: str, error: str) -> None:
    """Mark the request that a webhook would repeat as failed, unless it is the one with this id."""
    repeated = HookDelivery.objects.filter(webhook=webhook, status=HookDeliveryStatus.RETRYING)
    repeated.exclude(once_key=except_for).update(status=HookDeliveryStatus.FAILED, error=error)


def next_resend(webhook: SignalWebhook) -> HookDelivery | None:
    """Return the oldest delivery of a webhook that a person resends."""
    waiting = HookDelivery.objects.filter(webhook=webhook, status=HookDeliveryStatus.RESENDING)
    first: HookDelivery | None = waiting.order_by("at").first()
    return first


@transaction.atomic
def resend_delivery(*, delivery_id: UUID, actor: str) -> HookDelivery:
    """Have a webhook send a request again within seconds, with the same id and the same signals.

    Raises NotFound, and TransitionIllegal for a delivery at a hook or of a paused webhook, and one that is sent again already.
    """
    # The webhook before its deliveries, as in its deletion.
    webhooks = SignalWebhook.objects.select_for_update(of=("self",), no_key=True)
    webhooks.filter(deliveries=delivery_id).first()
    rows = HookDelivery.objects.select_for_update(of=("self",)).select_related("webhook")
    delivery: HookDelivery | None = rows.filter(id=delivery_id).first()
    if delivery is None:
        raise NotFound(f"there is no delivery {delivery_id} in this tenant")
    if delivery.webhook is None:
        raise TransitionIllegal(
            f"the delivery {delivery_id} is one at a hook, which only its sender can send again"
        )
    if not delivery.webhook.active:
        raise TransitionIllegal(f"the webhook {delivery.webhook.name} is paused; resume it first")
    if delivery.status not in _RESENDABLE:
        raise TransitionIllegal(
            f"the delivery {delivery_id} is {delivery.status}: it is sent again by itself"
        )
    delivery.status = HookDeliveryStatus.RESENDING
    delivery.save(update_fields=["status"])
    SignalWebhook.objects.filter(id=delivery.webhook.id).update(due_at=timezone.now())
    record(
        action=AuditAction.OPERATOR_ACT,
        actor=actor,
        agent_id=delivery.webhook.agent_id,
        message=f"resent a delivery of the webhook {delivery.webhook.name}",
        detail={"webhook": delivery.webhook.name, "delivery_id": str(delivery.id)},
    )
    return delivery
