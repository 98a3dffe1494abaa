"""The outbox: messages stored in the transaction of their decision and enqueued after its commit."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Min, QuerySet
from django.db.models.functions import Lower
from django.utils import timezone

from apps.agents.models import Agent
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.contacts.models import Channel, OutboxMessage
from apps.contacts.services.channels import channels_for
from apps.queues import Task, TaskMessage, enqueue
from apps.signals.services.emission import emit
from apps.tenants.models import TenantStatus
from apps.tenants.scope import OPS, current_tenant
from arbor.agents.lifecycle import REACHABLE
from arbor.contacts.delivery import mentioned_ids, possible_names
from arbor.contacts.values import DELIVERY_TRANSITIONS, Audience, ChannelKind, DeliveryStatus
from arbor.errors import NotFound, TransitionIllegal
from arbor.ids import uuid7
from arbor.memory.content import check_text
from arbor.quotations import bounded
from arbor.signals import Signal, SignalName, signal

_INBOX = "inbox"


@dataclass(frozen=True, kw_only=True)
class OutgoingMessage:
    """A text that an agent decided to send, to its users or the public."""

    agent_id: UUID
    heartbeat_id: UUID
    #: The action's position in the reply.
    index: int
    audience: Audience
    subject: str
    content: str
    at: datetime
    #: The name of the channel to send it through; empty: all channels of the audience.
    platform: str = ""

    @property
    def key(self) -> str:
        """Return the idempotency key of the decision."""
        digest = hashlib.sha256(f"{self.subject}\n{self.content}".encode(errors="replace")).hexdigest()
        return f"{self.heartbeat_id}:{self.index}:{digest[:12]}"


def add_to_outbox(message: OutgoingMessage) -> list[OutboxMessage]:
    """Store the rows of a message in the open transaction, one for each channel and mentioned agent, and return them.

    Messages to the inbox are delivered by being stored; the others are enqueued after the commit. A message that is added twice
    is stored once. At most three statements besides that of the signals; one more if a public text has a name after `@`. Raises
    Invalid, and NotFound for a platform without a channel.
    """
    check_text("a message", message.subject)
    check_text("a message", message.content)
    channels = channels_for(agent_id=message.agent_id, audience=message.audience, platform=message.platform)
    rows = [_new_row(message, channel) for channel in channels] or [_new_row(message, None)]
    rows += [_new_peer_row(message, agent_id) for agent_id in _mentioned(message)]
    OutboxMessage.objects.bulk_create(rows, ignore_conflicts=True)
    emit(*map(_posted_signal, rows))
    for row in rows:
        if row.status == DeliveryStatus.PENDING:
            enqueue(delivery_message(message_id=row.id, tenant_id=row.tenant_id, kind=row.kind))
    return rows


def _posted_signal(row: OutboxMessage) -> Signal:
    return signal(
        SignalName.MESSAGE_POSTED,
        row.agent_id,
        message=row.id,
        kind=ChannelKind(row.kind).value,
        audience=Audience(row.audience).value,
    )


def delivery_message(*, message_id: UUID, tenant_id: UUID, kind: str) -> TaskMessage:
    """Build the task message for the delivery of a message of the outbox."""
    return TaskMessage(
        task=Task.DELIVER,
        tenant_id=tenant_id,
        arguments={"message_id": str(message_id)},
        shown=f"{kind} message={message_id}",
    )


@transaction.atomic
def retry_message(*, message_id: UUID, actor: str) -> OutboxMessage:
    """Enqueue a failed message again, with as many attempts as a new one. Raises NotFound, TransitionIllegal.

    A message that is being sent cannot be retried before its attempt has failed.
    """
    message = _change_status(
        message_id, DeliveryStatus.PENDING, actor, "retried a message", only=DeliveryStatus.FAILED
    )
    message.tries_before = message.attempts
    message.due_at = timezone.now()
    message.lease_until = timezone.now() + settings.ARBOR_QUEUE_LEASE
    message.save(update_fields=["status", "tries_before", "due_at", "lease_until"])
    enqueue(delivery_message(message_id=message.id, tenant_id=message.tenant_id, kind=message.kind))
    return message


@transaction.atomic
def cancel_message(*, message_id: UUID, actor: str) -> OutboxMessage:
    """Cancel an unsent message; one that is being sent is not stopped. Raises NotFound, TransitionIllegal."""
    message = _change_status(message_id, DeliveryStatus.CANCELLED, actor, "withdrew a message")
    message.lease_until = None
    message.save(update_fields=["status", "lease_until"])
    return message


def _change_status(
    message_id: UUID, status: DeliveryStatus, actor: str, what: str, *, only: DeliveryStatus | None = None
) -> OutboxMessage:
    """Change a message's status; with `only`, from that status alone."""
    message: OutboxMessage | None = (
        OutboxMessage.objects.select_for_update(of=("self",))
        .select_related("agent")
        .filter(id=message_id)
        .first()
    )
    if message is None:
        raise NotFound(f"there is no message {message_id} in this tenant")
    present = DeliveryStatus(message.status)
    possible = status in DELIVERY_TRANSITIONS[present] and present is not status
    if not possible or only not in (None, present):
        may = ", ".join(DELIVERY_TRANSITIONS[present]) or "nothing else: it is over"
        raise TransitionIllegal(
            f"the message {message_id} is {present}; only one that is {only} is tried again"
            if possible
            else f"the message {message_id} is {present} and cannot become {status}; it can become {may}"
        )
    message.status = status
    record(
        action=AuditAction.OPERATOR_ACT,
        actor=actor,
        agent_id=message.agent_id,
        message=f"{what} of {message.agent.name}",
        detail={
            "message": str(message_id),
            "kind": message.kind,
            "was": present,
            "attempts": message.attempts,
        },
    )
    return message


def _new_row(message: OutgoingMessage, channel: Channel | None) -> OutboxMessage:
    kind = ChannelKind(channel.kind) if channel else ChannelKind.INBOX
    arrived = kind is ChannelKind.INBOX
    return OutboxMessage(
        id=uuid7(),
        tenant_id=current_tenant(),
        agent_id=message.agent_id,
        heartbeat_id=message.heartbeat_id,
        channel=channel,
        kind=kind,
        audience=message.audience,
        target=channel.target if channel else "",
        subject=message.subject,
        content=message.content,
        idempotency_key=f"{message.key}:{channel.id if channel else _INBOX}",
        status=DeliveryStatus.SENT if arrived else DeliveryStatus.PENDING,
        due_at=message.at,
        lease_until=None if arrived else timezone.now() + settings.ARBOR_QUEUE_LEASE,
        created_at=message.at,
        sent_at=message.at if arrived else None,
    )


def _new_peer_row(message: OutgoingMessage, agent_id: str) -> OutboxMessage:
    row = _new_row(message, None)
    row.kind = ChannelKind.PEER
    row.target = agent_id
    row.idempotency_key = f"{message.key}:{agent_id}"
    row.status, row.sent_at = DeliveryStatus.PENDING, None
    row.lease_until = timezone.now() + settings.ARBOR_QUEUE_LEASE
    return row


def _mentioned(message: OutgoingMessage) -> tuple[str, ...]:
    """Return the ids of the tenant's other, reachable agents that a public message mentions; a private one mentions none."""
    if message.audience is not Audience.PUBLIC or "@" not in message.content:
        return ()
    names = {name for names in possible_names(message.content) for name in names}
    if not names:
        return ()
    named = Agent.objects.annotate(lowered=Lower("name")).filter(lowered__in=names)
    rows = list(named.values_list("lowered", "id", "status"))
    # Names of agents that are not written to are known too: otherwise a part of such a name could name another agent.
    known: dict[str, str | None] = dict.fromkeys(name for name, _, _ in rows)
    known |= {
        name: str(agent_id)
        for name, agent_id, status in rows
        if status in REACHABLE and agent_id != message.agent_id
    }
    return mentioned_ids(message.content, known)


#: The number at which each count stops.
MAX_COUNTED = 100_000


@dataclass(frozen=True, kw_only=True)
class OutboxFigures:
    """Counts of unsent and failed messages, at most MAX_COUNTED each, and the delay of the oldest unsent one in seconds."""

    waiting: int
    oldest_due_s: float
    failed: int

    @property
    def waiting_in_words(self) -> str:
        """Return the number of unsent messages as text, with "or more" where counting stopped."""
        return f"{bounded(self.waiting, MAX_COUNTED)} waiting"

    @property
    def failed_in_words(self) -> str:
        """Return the number of failed messages as text, with "or more" where counting stopped."""
        return f"{bounded(self.failed, MAX_COUNTED)} failed"

    @property
    def in_words(self) -> str:
        """Return both counts as text."""
        return f"{self.waiting_in_words}, {self.failed_in_words}"


def outbox_figures(*, agent_id: UUID | None = None) -> OutboxFigures:
    """Return the figures of the current tenant, or of one agent. Three queries."""
    messages = OutboxMessage.objects.all()
    return _figures(messages if agent_id is None else messages.filter(agent_id=agent_id))


def installation_figures() -> OutboxFigures:
    """Return the figures of all active tenants together. Three queries, by the operations role."""
    messages: QuerySet[OutboxMessage] = QuerySet(OutboxMessage, using=OPS)
    # Messages of a suspended tenant are not sent before it is resumed.
    return _figures(messages.filter(tenant__status=TenantStatus.ACTIVE))


def _figures(messages: QuerySet[OutboxMessage]) -> OutboxFigures:
    # Each count uses a partial index, up to a bound; finished messages are not read.
    waiting = messages.filter(status__in=[DeliveryStatus.PENDING, DeliveryStatus.SENDING])
    oldest = waiting.aggregate(due_at=Min("due_at"))["due_at"]
    late = (timezone.now() - oldest).total_seconds() if oldest else 0.0
    return OutboxFigures(
        waiting=waiting[:MAX_COUNTED].count(),
        oldest_due_s=round(max(late, 0.0), 1),
        failed=messages.filter(status=DeliveryStatus.FAILED)[:MAX_COUNTED].count(),
    )
