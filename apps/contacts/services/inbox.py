"""The inbox of a tenant."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from apps.contacts.models import ANSWER_LENGTH, OutboxMessage
from arbor.contacts.values import ChannelKind
from arbor.errors import NotFound
from arbor.quotations import shorten

#: Counting stops at this number, which the navigation shows as "100+".
COUNTED_AT_MOST = 100


def inbox(*, agent_id: UUID | None = None, unread: bool = False) -> QuerySet[OutboxMessage]:
    """Return the current tenant's inbox, or one agent's messages in it, the latest first."""
    messages: QuerySet[OutboxMessage] = OutboxMessage.objects.filter(kind=ChannelKind.INBOX).order_by(
        "-created_at", "-id"
    )
    if agent_id is not None:
        messages = messages.filter(agent_id=agent_id)
    return messages.filter(read_at__isnull=True) if unread else messages


def unread_to_count(*, agent_id: UUID | None = None) -> QuerySet[OutboxMessage]:
    """Return a query of unread messages, of all agents or of one, a hundred at most, for counts."""
    return inbox(agent_id=agent_id, unread=True).order_by()[:COUNTED_AT_MOST]


def count_unread(*, agent_id: UUID | None = None) -> int:
    """Count the unread messages of all agents or of one, up to a hundred. One statement."""
    return unread_to_count(agent_id=agent_id).count()


@transaction.atomic
def mark_read(*, message_id: UUID) -> OutboxMessage:
    """Mark a message as read; the first time counts. Raises NotFound."""
    message: OutboxMessage | None = (
        inbox().select_for_update(of=("self",)).select_related("agent").filter(id=message_id).first()
    )
    if message is None:
        raise NotFound(f"there is no message {message_id} in the inbox of this tenant")
    if message.read_at is None:
        message.read_at = timezone.now()
        message.save(update_fields=["read_at"])
    return message


def count_answer(*, message_id: UUID, text: str) -> None:
    """Count a person's answer to a message, and store the beginning of the answer, which the agent's next prompts show."""
    beginning = shorten(" ".join(text.split()), ANSWER_LENGTH)
    OutboxMessage.objects.filter(id=message_id).update(answers=F("answers") + 1, last_answer=beginning)
