"""Read a message's page and the inbox by a fixed number of queries, without marking messages as read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from apps.contacts.models import OutboxMessage
from apps.contacts.services.inbox import count_unread, inbox
from arbor.contacts.delivery import MAX_TRIES
from arbor.contacts.values import DELIVERY_TRANSITIONS, ChannelKind, DeliveryStatus

#: Messages on one page of the inbox.
LISTED = 40


@dataclass(frozen=True, kw_only=True)
class MessagePage:
    """A message, as its page shows it."""

    message: OutboxMessage
    in_inbox: bool
    may_retry: bool
    may_cancel: bool
    tries_at_most: int = MAX_TRIES


@dataclass(frozen=True, kw_only=True)
class InboxPage:
    """The inbox of a tenant, as its page shows it."""

    messages: Sequence[OutboxMessage]
    unread: int
    only_unread: bool
    #: Older ones begin after this message; none if there are none.
    older: UUID | None


def read_message(message: OutboxMessage) -> MessagePage:
    """Return what the page of a message shows."""
    after = DELIVERY_TRANSITIONS[DeliveryStatus(message.status)]
    return MessagePage(
        message=message,
        in_inbox=message.kind == ChannelKind.INBOX,
        may_retry=message.status == DeliveryStatus.FAILED,
        may_cancel=DeliveryStatus.CANCELLED in after,
    )


def read_inbox(*, only_unread: bool, before: UUID | None) -> InboxPage:
    """Read one page of the current tenant's inbox, the latest first. Three queries."""
    rows = inbox(unread=only_unread).select_related("agent")
    moment = _moment_of(before)
    if moment is not None:
        rows = rows.filter(created_at__lt=moment)
    found = list(
        rows.only(
            "tenant_id",
            "subject",
            "content",
            "audience",
            "created_at",
            "read_at",
            "agent__name",
            "agent__tenant_id",
        )[: LISTED + 1]
    )
    return InboxPage(
        messages=found[:LISTED],
        unread=count_unread(),
        only_unread=only_unread,
        older=found[LISTED - 1].id if len(found) > LISTED else None,
    )


def _moment_of(message_id: UUID | None) -> datetime | None:
    if message_id is None:
        return None
    moment: datetime | None = inbox().filter(id=message_id).values_list("created_at", flat=True).first()
    return moment
