"""Post signals to webhooks: lease those with unread signals, and send each its signals in order, outside of transactions.

A request is repeated, unchanged, until its receiver confirms it. If a worker dies before it records the confirmation, the
receiver gets signals twice, with the same ids.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connections, transaction
from django.db.models.functions import Now
from django.utils import timezone

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.contacts.models import SignalWebhook
from apps.contacts.services.queries import LEASE_WAITING_WEBHOOKS
from apps.contacts.services.signal_webhooks import signal_filter_of
from apps.contacts.services.signing_secrets import SecretPair
from apps.contacts.services.webhook_deliveries import (
    RequestAttempt,
    end_retry,
    next_resend,
    record_attempt,
    record_resend,
)
from apps.queues import Task, TaskMessage, enqueue
from apps.signals.services.reading import SignalRecord, read_signals
from apps.tenants.models import TenantStatus
from apps.tenants.scope import OPS, release_connection, tenant_transaction
from arbor.adapters.webhook import Webhook, redact_url
from arbor.contacts.standard_webhooks import decide_request_retry, signals_body, signed_headers
from arbor.errors import ArborError, DeliveryFailed
from arbor.models.json_text import storable
from arbor.quotations import counted
from arbor.signals import Cursor

log = structlog.get_logger(__name__)

#: The most webhooks that one sweep leases.
_SWEPT = 500
#: The most signals in a request.
_BATCH = 100
#: The lease of a request: longer than the request can take.
_LEASE = timedelta(minutes=1)
#: The time for which a task posts signals of one webhook, before other webhooks follow.
_POSTING_TIME = timedelta(seconds=20)
#: The longest stored reason, in characters.
_REASON_LENGTH = 1_000
_SIGNALS_DELETED = "its signals were deleted by age (ARBOR_SIGNALS_DAYS)"


@dataclass(frozen=True, kw_only=True)
class _SignalBatch:
    """The next signals of a webhook; empty where the webhook's filter passes no signal that was read."""

    url: str
    secrets: tuple[str, ...] = field(repr=False)
    signals: list[SignalRecord]
    #: The position before the batch.
    begin: str
    #: The position after the batch.
    cursor: Cursor
    more: bool
    #: The delivery that a person resends; None: the batch follows the webhook's position.
    resent: UUID | None = None

    def attempt(self, webhook_id: UUID, error: str = "") -> RequestAttempt:
        """Return an attempt to send the batch, for the log of deliveries."""
        return RequestAttempt(
            webhook_id=webhook_id,
            message_id=self.message_id,
            names=[signal.name for signal in self.signals],
            begin=self.begin,
            end=str(self.signals[-1].cursor),
            error=error,
        )

    @property
    def message_id(self) -> str:
        """The id of the request, which is the same at every attempt."""
        return f"{self.signals[0].cursor}-{self.signals[-1].cursor}"


def sweep_webhooks() -> int:
    """Enqueue the webhooks that have unread signals; return their number. Sweeps may run concurrently."""
    with transaction.atomic(using=OPS), connections[OPS].cursor() as cursor:
        cursor.execute(
            LEASE_WAITING_WEBHOOKS,
            {"active": TenantStatus.ACTIVE.value, "budget": _SWEPT, "lease_s": _LEASE.total_seconds()},
        )
        leased = cursor.fetchall()
        for webhook_id, tenant_id, lease in leased:
            message = TaskMessage(
                task=Task.POST_SIGNALS,
                tenant_id=tenant_id,
                arguments={"webhook_id": str(webhook_id), "lease": lease},
                shown=f"webhook={webhook_id}",
            )
            enqueue(message, using=OPS)
    return len(leased)


def post_signals(*, webhook_id: UUID, lease: int, tenant_id: UUID) -> int:
    """Post the unread signals of a webhook under a lease; return the number of confirmed signals."""
    carrier = Webhook(
        allow_http=settings.ARBOR_WEBHOOK_ALLOW_HTTP, allow_private=settings.ARBOR_WEBHOOK_ALLOW_PRIVATE
    )
    ends_at = time.monotonic() + _POSTING_TIME.total_seconds()
    posted, more = 0, True
    while more:
        batch = None
        try:
            with tenant_transaction(tenant_id):
                batch = _load_batch(webhook_id, lease)
            if batch is None:
                return posted
            if batch.signals:
                # Threads may wait long for slow receivers.
                release_connection()
                _post(carrier, batch)
        except ArborError as error:
            _record_failure(webhook_id, lease, tenant_id, error, batch)
            return posted
        more = batch.more and time.monotonic() < ends_at
        with tenant_transaction(tenant_id):
            if not _store_progress(webhook_id, lease, batch, ended=not more):
                return posted
        posted += len(batch.signals)
    return posted


def _load_batch(webhook_id: UUID, lease: int) -> _SignalBatch | None:
    """Read the next signals, or those of the failed request, which is marked as failed if some of its signals are deleted.

    Returns None without the lease. Raises Invalid, SealBroken.
    """
    webhook = SignalWebhook.objects.filter(id=webhook_id, lease=lease, active=True).first()
    if webhook is None:
        return None
    secrets = SecretPair.of(webhook).valid
    wanted = signal_filter_of(webhook)
    resent = next_resend(webhook)
    if resent is not None:
        page = read_signals(after=Cursor.parse(resent.begin), wanted=wanted, limit=_BATCH)
        end = Cursor.parse(resent.end)
        signals = [signal for signal in page.signals if signal.cursor <= end]
        return _SignalBatch(
            url=webhook.url,
            secrets=secrets,
            signals=signals,
            begin=resent.begin,
            cursor=end,
            more=True,
            resent=resent.id,
        )
    page = read_signals(after=Cursor.parse(webhook.position), wanted=wanted, limit=_BATCH)
    signals, cursor, more = list(page.signals), page.cursor, page.more
    if webhook.failed_end:
        end = Cursor.parse(webhook.failed_end)
        failed = [signal for signal in signals if signal.cursor <= end]
        if failed and len(failed) < len(signals):
            signals, cursor, more = failed, failed[-1].cursor, True
    batch = _SignalBatch(
        url=webhook.url, secrets=secrets, signals=signals, begin=webhook.position, cursor=cursor, more=more
    )
    if webhook.failed_end:
        # Without some of its signals it is another request, which does not repeat the failed one.
        end_retry(webhook, except_for=batch.message_id if signals else "", error=_SIGNALS_DELETED)
    return batch


def _post(carrier: Webhook, batch: _SignalBatch) -> None:
    """Post a batch of signals. Raises DeliveryFailed."""
    body = signals_body([signal.as_json() for signal in batch.signals])
    headers = signed_headers(*batch.secrets, message_id=batch.message_id, at=int(time.time()), body=body)
    try:
        carrier.post(batch.url, body=body, headers=headers)
    except DeliveryFailed:
        raise
    except Exception as error:
        # An unexpected error must count as a failure, or it would repeat for ever. Its text may quote a secret URL.
        fault = RuntimeError(type(error).__name__).with_traceback(error.__traceback__)
        log.exception("carrier_failed", kind="signals", exc_info=fault)
        raise DeliveryFailed(f"an internal error of Arbor: {fault}") from fault


def _store_progress(webhook_id: UUID, lease: int, batch: _SignalBatch, *, ended: bool) -> bool:
    """Store that a batch was confirmed, and end or extend the lease; False if another worker has the lease."""
    values: dict[str, object] = {"due_at": Now() if ended else Now() + _LEASE}
    if batch.resent is None:
        values["position"] = str(batch.cursor)
    if batch.signals:
        values |= {"failures": 0, "failing_since": None, "last_error": "", "delivered_at": Now()}
        values |= {} if batch.resent is not None else {"failed_end": ""}
    if not SignalWebhook.objects.filter(id=webhook_id, lease=lease).update(**values):
        return False
    if batch.resent is not None:
        record_resend(delivery_id=batch.resent, error="" if batch.signals else _SIGNALS_DELETED)
    elif batch.signals:
        record_attempt(batch.attempt(webhook_id))
    return True


def _record_failure(
    webhook_id: UUID, lease: int, tenant_id: UUID, error: ArborError, batch: _SignalBatch | None
) -> None:
    """Record a failed request, and pause the webhook where `decide_request_retry` decides so."""
    now = timezone.now()
    with tenant_transaction(tenant_id):
        webhook = SignalWebhook.objects.select_for_update().filter(id=webhook_id, lease=lease).first()
        if webhook is None:
            return
        if batch is not None and batch.resent is not None:
            # A resend is not retried: the receiver confirmed the request before, or a person may resend it again.
            record_resend(delivery_id=batch.resent, error=str(error))
            webhook.due_at = now
            webhook.save(update_fields=["due_at"])
            return
        webhook.failures += 1
        webhook.failing_since = webhook.failing_since or now
        webhook.last_error = storable(str(error))[:_REASON_LENGTH]
        if batch is not None and batch.signals:
            webhook.failed_end = str(batch.signals[-1].cursor)
            record_attempt(batch.attempt(webhook_id, error=str(error)))
        decision = decide_request_retry(
            failures=webhook.failures,
            failing_for=now - webhook.failing_since,
            final=isinstance(error, DeliveryFailed) and error.final,
        )
        webhook.due_at = now + decision.wait
        if webhook.active and decision.paused:
            webhook.active = False
            _audit_pause(webhook)
        webhook.save(
            update_fields=["failures", "failing_since", "last_error", "failed_end", "due_at", "active"]
        )
    log.warning("signals_post_failed", webhook_id=str(webhook_id), failures=webhook.failures)


def _audit_pause(webhook: SignalWebhook) -> None:
    requests = counted(webhook.failures, "failed request")
    record(
        action=AuditAction.OPERATOR_ACT,
        actor="system:outbox",
        agent_id=webhook.agent_id,
        message=f"paused the webhook {webhook.name} after {requests}: {webhook.last_error}",
        detail={"webhook": webhook.name, "to": redact_url(webhook.url), "failures": webhook.failures},
    )
