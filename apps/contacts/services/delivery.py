"""Deliver messages: claim one, hand it to its channel outside any transaction, and record the outcome.

The row is the truth: a lost hint is published again, a lost worker's attempt counts as failed, and a message is sent only
when its receiver has confirmed it. A receiver may get a message twice, with the same key, when a worker died in between.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connections
from django.db.models import Case, F, Value, When
from django.db.models.functions import Least, Now

from apps.agents.models import Agent, HeartbeatSchedule, Percept, PerceptKind, ScheduleState, Trigger
from apps.contacts.services.carriers import carrier_of
from apps.tenants.models import TenantStatus
from apps.tenants.scope import APP, current_tenant, tenant_transaction
from apps.tenants.statements import change, fetch
from arbor.contacts.delivery import after_failure
from arbor.contacts.ports import Outgoing
from arbor.contacts.signing import open_secret
from arbor.contacts.values import Audience, ChannelKind, DeliveryStatus
from arbor.errors import DeliveryFailed, SealBroken
from arbor.heartbeat.json_text import storable

log = structlog.get_logger(__name__)

#: Longer than any delivery: a mail is a handful of exchanges, each within the settings' time-out.
_LEASE = timedelta(minutes=5)
#: The longest stored reason, in characters.
_REASON_LENGTH = 1_000
_SUBJECT_QUOTED = 160

# Those of a suspended tenant rest, though their hint was on its way.
# A machine's clock may be a little ahead of the database's, and no try is wanted sooner than after a minute.
_CLAIM = """
UPDATE contacts_outboxmessage m SET status = 'sending', attempts = m.attempts + 1, lease_until = now() + %(lease)s
FROM agents_agent a, tenants_tenant t, contacts_outboxmessage o
LEFT JOIN contacts_channel c ON c.tenant_id = o.tenant_id AND c.id = o.channel_id
WHERE m.tenant_id = %(tenant)s AND m.id = %(message)s AND m.status = 'pending' AND m.due_at <= now() + interval '5 seconds'
    AND t.id = m.tenant_id AND t.status = %(active)s
    AND a.tenant_id = m.tenant_id AND a.id = m.agent_id AND o.tenant_id = m.tenant_id AND o.id = m.id
RETURNING m.attempts, m.attempts - m.tries_before, m.agent_id, a.name, m.kind, m.audience, m.target, m.subject, m.content, m.idempotency_key,
    m.heartbeat_id, m.created_at, m.channel_id, c.sealed_secret::json, coalesce(c.enabled, false)
"""
# A receiver's confirmation counts whenever it arrives, so no other attempt follows.
_SENT = """
UPDATE contacts_outboxmessage SET status = 'sent', sent_at = now(), lease_until = NULL, last_error = ''
WHERE tenant_id = %(tenant)s AND id = %(message)s AND status IN ('sending', 'pending', 'failed')
"""
_NOT_SENT = """
UPDATE contacts_outboxmessage
SET status = %(status)s, due_at = now() + coalesce(%(wait)s, '0'::interval), lease_until = NULL, last_error = %(reason)s
WHERE tenant_id = %(tenant)s AND id = %(message)s AND status = 'sending' AND attempts = %(attempt)s
"""


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
    outgoing: Outgoing


def deliver(*, message_id: UUID, tenant_id: UUID) -> bool:
    """Deliver a message and record the outcome.

    Returns False for a message that is another worker's, finished, or not due yet: a doubled hint costs one short read.
    """
    claimed = _claim(message_id, tenant_id)
    if claimed is None:
        log.info("message_not_pending", message_id=str(message_id))
        return False
    if claimed.kind is ChannelKind.PEER:
        return _deliver_to_peer(claimed)
    if settings.ARBOR_DB_POOL_SIZE:
        # Many messages wait on slow receivers; a few connections serve them all.
        connections[APP].close()
    try:
        carrier_of(claimed.kind).carry(_with_secret(claimed))
    except DeliveryFailed as error:
        return _not_sent(claimed, str(error), final=error.final)
    except SealBroken as error:
        return _not_sent(claimed, str(error), final=True)
    except Exception as error:
        # An unexpected error in a carrier must not stop other messages, nor repeat for ever. Its text may quote a secret
        # URL: only its type and origin are shown.
        fault = RuntimeError(type(error).__name__).with_traceback(error.__traceback__)
        log.exception("carrier_fault", kind=claimed.kind, message_id=str(message_id), exc_info=fault)
        return _not_sent(claimed, f"a fault of ours: {fault}", final=False)
    with tenant_transaction(tenant_id):
        return bool(change(_SENT, message=message_id))


def _claim(message_id: UUID, tenant_id: UUID) -> _ClaimedMessage | None:
    with tenant_transaction(tenant_id):
        rows = fetch(_CLAIM, message=message_id, lease=_LEASE, active=TenantStatus.ACTIVE.value)
    if not rows:
        return None
    attempt, tries, agent_id, name, kind, audience, target, subject, content, key, beat, at, *of_channel = (
        rows[0]
    )
    channel, sealed, on = of_channel
    return _ClaimedMessage(
        message_id=message_id,
        tenant_id=tenant_id,
        agent_id=agent_id,
        attempt=attempt,
        tries=tries,
        kind=ChannelKind(kind),
        channel_id=channel,
        enabled=on,
        sealed=sealed or {},
        outgoing=Outgoing(
            id=str(message_id),
            key=key,
            agent=name,
            audience=Audience(audience),
            target=target,
            subject=subject,
            content=content,
            heartbeat=str(beat or ""),
            at=at,
        ),
    )


def _with_secret(claimed: _ClaimedMessage) -> Outgoing:
    """Return the message with its signing key. Raises DeliveryFailed where the channel is gone, and SealBroken."""
    if claimed.channel_id is None or not claimed.enabled:
        state = "disabled" if claimed.channel_id else "removed"
        raise DeliveryFailed(f"its channel was {state} before it was sent", final=True)
    if not claimed.sealed:
        return claimed.outgoing
    assert settings.ARBOR_MASTER_KEY is not None, "what is sealed was sealed under a master key"
    secret = open_secret(
        claimed.sealed,
        master_key=settings.ARBOR_MASTER_KEY,
        tenant_id=claimed.tenant_id,
        channel_id=claimed.channel_id,
    )
    return replace(claimed.outgoing, secret=secret)


def _not_sent(claimed: _ClaimedMessage, reason: str, *, final: bool) -> bool:
    after = after_failure(tries=claimed.tries, final=final)
    with tenant_transaction(claimed.tenant_id):
        noted = change(
            _NOT_SENT,
            message=claimed.message_id,
            attempt=claimed.attempt,
            status=after.status.value,
            wait=after.wait,
            reason=storable(reason)[:_REASON_LENGTH],
        )
        if noted and after.status is DeliveryStatus.FAILED:
            outgoing = claimed.outgoing
            notify_writer(
                claimed.message_id,
                claimed.agent_id,
                kind=claimed.kind,
                about=outgoing.subject or outgoing.content,
                reason=reason,
            )
    if after.status is DeliveryStatus.FAILED:
        log.warning(
            "message_failed", message_id=str(claimed.message_id), kind=claimed.kind, attempts=claimed.attempt
        )
    return bool(noted)


def notify_writer(message_id: UUID, agent_id: UUID, *, kind: str, about: str, reason: str) -> None:
    """Notify the agent that its message did not arrive."""
    Percept.objects.create(
        tenant_id=current_tenant(),
        agent_id=agent_id,
        kind=PerceptKind.ERROR,
        content=f"Your message {about[:_SUBJECT_QUOTED]!r} was not delivered by {kind}: {storable(reason)[:_REASON_LENGTH]}",
        detail={"message": str(message_id)},
    )


def _deliver_to_peer(claimed: _ClaimedMessage) -> bool:
    """Add a percept for the mentioned agent, and bring its heartbeat forward, in one transaction."""
    peer = UUID(claimed.outgoing.target)
    with tenant_transaction(claimed.tenant_id):
        if not Agent.objects.filter(id=peer).exists():
            return _not_sent(claimed, "the agent it names is no more", final=True)
        if not change(_SENT, message=claimed.message_id):
            return False
        Percept.objects.create(
            tenant_id=claimed.tenant_id,
            agent_id=peer,
            peer_id=claimed.agent_id,
            kind=PerceptKind.PEER_MESSAGE,
            content=f"{claimed.outgoing.agent} wrote in public: {claimed.outgoing.content}",
            detail={"message": str(claimed.message_id)},
            urgent=True,
        )
        HeartbeatSchedule.objects.filter(agent_id=peer).exclude(state=ScheduleState.OFF).update(
            next_due_at=Least("next_due_at", Now()),
            # Only a timer is replaced: other triggers have somebody who waits for an answer.
            next_trigger=Case(
                When(next_trigger=Trigger.TIMER, then=Value(Trigger.EVENT.value)), default=F("next_trigger")
            ),
        )
    return True
