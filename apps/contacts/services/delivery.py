"""Deliver messages: claim a message, pass it to its channel outside any transaction, and record the outcome.

Lost hints are published again, and attempts of lost workers count as failed. A message counts as sent when its receiver
has confirmed it. If a worker dies before it records the confirmation, the receiver gets the message twice, with the same key.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import structlog
from django.db.models.functions import Now

from apps.agents.models import Agent, Percept, PerceptKind, Trigger
from apps.agents.services.identity import identity_of
from apps.agents.services.percepts import bring_forward, emit_percept
from apps.agents.services.sealed_percepts import seal_percept
from apps.contacts.models import OutboxMessage
from apps.contacts.services.carriers import carrier_of
from apps.tenants.keys import master_keys
from apps.tenants.models import TenantStatus
from apps.tenants.scope import current_tenant, release_connection, tenant_transaction
from arbor.agents.lifecycle import REACHABLE
from arbor.contacts.delivery import decide_delivery_retry
from arbor.contacts.ports import DeliverableMessage
from arbor.contacts.signing import SIGNING_SECRETS
from arbor.contacts.values import Audience, ChannelKind, DeliveryStatus
from arbor.errors import DeliveryFailed, IdentityRefused, SealBroken
from arbor.models.json_text import storable

log = structlog.get_logger(__name__)

#: The lease of an attempt: longer than any delivery, as a mail takes a few exchanges within the configured time-out.
_LEASE = timedelta(minutes=5)
#: The longest stored reason, in characters.
_REASON_LENGTH = 1_000
_SUBJECT_QUOTED = 160

#: Tolerated difference between a worker's clock and the database's; small against the delays of retries.
_CLOCK_TOLERANCE = timedelta(seconds=5)


@dataclass(frozen=True, kw_only=True)
class _ClaimedMessage:
    message_id: UUID
    tenant_id: UUID
    agent_id: UUID
    #: The fencing token of this worker's attempt.
    attempt: int
    #: The number of attempts that count against the limit.
    tries: int
    kind: ChannelKind
    channel_id: UUID | None
    enabled: bool
    sealed: dict[str, Any]
    #: Why the agent may not act any more; empty: it may.
    refusal: str
    outgoing: DeliverableMessage


def deliver(*, message_id: UUID, tenant_id: UUID) -> bool:
    """Deliver a message and record the outcome.

    Returns False for a message that another worker has, that is finished or not due yet, or whose tenant is suspended.
    """
    claimed = _claim(message_id, tenant_id)
    if claimed is None:
        log.info("message_skipped", message_id=str(message_id))
        return False
    if claimed.refusal:
        # As for a message to another agent: what the agent wrote before stays unsent, until a person tries it again.
        return _record_failure(claimed, f"its writer may not act: {claimed.refusal}", final=True)
    if claimed.kind is ChannelKind.PEER:
        return _deliver_to_peer(claimed)
    # Threads may wait long for slow receivers.
    release_connection()
    try:
        carrier_of(claimed.kind).deliver(_with_secret(claimed))
    except DeliveryFailed as error:
        return _record_failure(claimed, str(error), final=error.final)
    except SealBroken as error:
        return _record_failure(claimed, str(error), final=True)
    except Exception as error:
        # An unexpected error in a carrier must not stop other messages, nor repeat for ever. Its text may quote a secret
        # URL: only its type and origin are shown.
        fault = RuntimeError(type(error).__name__).with_traceback(error.__traceback__)
        log.exception("carrier_failed", kind=claimed.kind, message_id=str(message_id), exc_info=fault)
        return _record_failure(claimed, f"an internal error of Arbor: {fault}", final=False)
    with tenant_transaction(tenant_id):
        return _mark_sent(message_id)


def _claim(message_id: UUID, tenant_id: UUID) -> _ClaimedMessage | None:
    """Claim a pending message for an attempt; messages of suspended tenants are skipped."""
    with tenant_transaction(tenant_id):
        message: OutboxMessage | None = (
            OutboxMessage.objects.select_for_update(of=("self",))
            .select_related("agent", "channel")
            .filter(
                id=message_id,
                status=DeliveryStatus.PENDING,
                due_at__lte=Now() + _CLOCK_TOLERANCE,
                tenant__status=TenantStatus.ACTIVE,
            )
            .first()
        )
        if message is None:
            return None
        message.attempts += 1
        OutboxMessage.objects.filter(id=message_id).update(
            status=DeliveryStatus.SENDING, attempts=message.attempts, lease_until=Now() + _LEASE
        )
        refusal = identity_of(message.agent_id).refusal
    channel = message.channel
    return _ClaimedMessage(
        message_id=message_id,
        tenant_id=tenant_id,
        agent_id=message.agent_id,
        attempt=message.attempts,
        tries=message.tries,
        kind=ChannelKind(message.kind),
        channel_id=message.channel_id,
        enabled=channel is not None and channel.enabled,
        sealed=channel.sealed_secret if channel else {},
        refusal=refusal,
        outgoing=DeliverableMessage(
            id=str(message_id),
            key=message.idempotency_key,
            agent=message.agent.name,
            audience=Audience(message.audience),
            target=message.target,
            subject=message.subject,
            content=message.content,
            heartbeat=str(message.heartbeat_id or ""),
            at=message.created_at,
        ),
    )


def _mark_sent(message_id: UUID) -> bool:
    """Mark a message as sent. A receiver's confirmation counts until the message is withdrawn, so no other attempt follows."""
    open_or_failed = [DeliveryStatus.SENDING, DeliveryStatus.PENDING, DeliveryStatus.FAILED]
    return bool(
        OutboxMessage.objects.filter(id=message_id, status__in=open_or_failed).update(
            status=DeliveryStatus.SENT, sent_at=Now(), lease_until=None, last_error=""
        )
    )


def _with_secret(claimed: _ClaimedMessage) -> DeliverableMessage:
    """Return the message with its signing key. Raises DeliveryFailed without an enabled channel, SealBroken."""
    if claimed.channel_id is None or not claimed.enabled:
        state = "disabled" if claimed.channel_id else "removed"
        raise DeliveryFailed(f"its channel was {state} before it was sent", final=True)
    if not claimed.sealed:
        return claimed.outgoing
    opened = SIGNING_SECRETS.unseal(
        claimed.sealed,
        keys=master_keys(),
        tenant_id=claimed.tenant_id,
        row_id=claimed.channel_id,
    )
    return replace(claimed.outgoing, secret=opened.raw)


def _record_failure(claimed: _ClaimedMessage, reason: str, *, final: bool) -> bool:
    decision = decide_delivery_retry(tries=claimed.tries, final=final)
    with tenant_transaction(claimed.tenant_id):
        updated = OutboxMessage.objects.filter(
            id=claimed.message_id, status=DeliveryStatus.SENDING, attempts=claimed.attempt
        ).update(
            status=decision.status,
            due_at=Now() + decision.wait if decision.wait else Now(),
            lease_until=None,
            last_error=storable(reason)[:_REASON_LENGTH],
        )
        if not updated:
            return False
        if decision.status is DeliveryStatus.FAILED:
            outgoing = claimed.outgoing
            notify_writer(
                message_id=claimed.message_id,
                agent_id=claimed.agent_id,
                kind=claimed.kind,
                about=outgoing.subject or outgoing.content,
                reason=reason,
            )
    if decision.status is DeliveryStatus.FAILED:
        log.warning(
            "message_failed", message_id=str(claimed.message_id), kind=claimed.kind, attempts=claimed.attempt
        )
    return True


def notify_writer(*, message_id: UUID, agent_id: UUID, kind: str, about: str, reason: str) -> None:
    """Notify the agent that its message was not delivered."""
    percept = Percept.objects.create(
        tenant_id=current_tenant(),
        agent_id=agent_id,
        kind=PerceptKind.ERROR,
        content=f"Your message {about[:_SUBJECT_QUOTED]!r} was not delivered by {kind}: {storable(reason)[:_REASON_LENGTH]}",
        detail={"message": str(message_id)},
    )
    emit_percept(percept)


def _deliver_to_peer(claimed: _ClaimedMessage) -> bool:
    """Add a percept for the mentioned agent, and bring its heartbeat forward, in one transaction."""
    peer = UUID(claimed.outgoing.target)
    with tenant_transaction(claimed.tenant_id):
        status = Agent.objects.filter(id=peer).values_list("status", flat=True).first()
        if status is None:
            return _record_failure(claimed, "the agent that it names does not exist any more", final=True)
        if status not in REACHABLE:
            return _record_failure(claimed, f"the agent that it names is {status}", final=True)
        try:
            percept = seal_percept(
                sender_id=claimed.agent_id,
                receiver_id=peer,
                content=f"{claimed.outgoing.agent} wrote in public: {claimed.outgoing.content}",
                detail={"message": str(claimed.message_id)},
                urgent=True,
            )
        except (IdentityRefused, SealBroken) as error:
            return _record_failure(claimed, str(error), final=True)
        if not _mark_sent(claimed.message_id):
            return False
        percept.save(force_insert=True)
        emit_percept(percept)
        bring_forward(agent_id=peer, trigger=Trigger.EVENT, timers_only=True)
    return True
