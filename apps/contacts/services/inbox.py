"""The inbox: what agents wrote to the people of their tenant, read there."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from apps.contacts.models import OutboxMessage
from arbor.contacts.values import ChannelKind
from arbor.errors import NotFound

#: The navigation says "99+" beyond.
COUNTED_AT_MOST = 100


def inbox(*, agent_id: UUID | None = None, unread: bool = False) -> QuerySet[OutboxMessage]:
    """Return the inbox of the current tenant, or what one agent wrote there, the latest first."""
    found: QuerySet[OutboxMessage] = OutboxMessage.objects.filter(kind=ChannelKind.INBOX).order_by(
        "-created_at", "-id"
    )
    if agent_id is not None:
        found = found.filter(agent_id=agent_id)
    return found.filter(read_at__isnull=True) if unread else found


def unread_to_count() -> QuerySet[OutboxMessage]:
    """Return the messages nobody has read, a hundred at most, to be counted."""
    return inbox(unread=True).order_by()[:COUNTED_AT_MOST]


def count_unread() -> int:
    """Return how many messages nobody has read, counted up to a hundred. One statement."""
    return unread_to_count().count()


@transaction.atomic
def mark_read(*, message_id: UUID) -> OutboxMessage:
    """Note that somebody has read a message; the first time counts. Raises NotFound."""
    message: OutboxMessage | None = (
        inbox().select_for_update(of=("self",)).select_related("agent").filter(id=message_id).first()
    )
    if message is None:
        raise NotFound(f"there is no message {message_id} in the inbox of this tenant")
    if message.read_at is None:
        message.read_at = timezone.now()
        message.save(update_fields=["read_at"])
    return message
