"""Audiences, channel kinds, delivery statuses and speakers."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class Audience(StrEnum):
    """The receivers of a message."""

    #: The people an agent works for.
    USER = "user"
    #: The readers of what the tenant publishes.
    PUBLIC = "public"


class ChannelKind(StrEnum):
    """The delivery route of a channel."""

    #: The console's inbox, read by the tenant's people.
    INBOX = "inbox"
    #: An email to an address.
    EMAIL = "email"
    #: A signed request to an address on the network.
    WEBHOOK = "webhook"
    #: A percept of an agent of the same tenant that a public message mentions. No row of `Channel` has this kind.
    PEER = "peer"


class DeliveryStatus(StrEnum):
    """The status of a message's delivery."""

    #: Waits for delivery, for the first time or again.
    PENDING = "pending"
    #: Is being delivered by a worker.
    SENDING = "sending"
    #: Was accepted by its channel.
    SENT = "sent"
    #: Has used up its attempts, or cannot be delivered; a person can retry the delivery.
    FAILED = "failed"
    #: Was withdrawn by a person before it was sent.
    CANCELLED = "cancelled"


#: A receiver's confirmation counts until a person withdraws the message, even after the worker's lease expired.
DELIVERY_TRANSITIONS: Mapping[DeliveryStatus, tuple[DeliveryStatus, ...]] = MappingProxyType(
    {
        DeliveryStatus.PENDING: (DeliveryStatus.SENDING, DeliveryStatus.SENT, DeliveryStatus.CANCELLED),
        DeliveryStatus.SENDING: (DeliveryStatus.SENT, DeliveryStatus.PENDING, DeliveryStatus.FAILED),
        DeliveryStatus.SENT: (),
        DeliveryStatus.FAILED: (DeliveryStatus.PENDING, DeliveryStatus.SENT, DeliveryStatus.CANCELLED),
        DeliveryStatus.CANCELLED: (),
    }
)


class Speaker(StrEnum):
    """The speaker of a turn."""

    #: The person.
    USER = "user"
    #: The agent.
    AGENT = "agent"
