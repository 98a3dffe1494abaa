"""Who an agent can reach, by which way, and how far a message has come."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class Audience(StrEnum):
    """Whom a message is for."""

    #: The people an agent works for.
    USER = "user"
    #: Whoever reads what its tenant publishes.
    PUBLIC = "public"


class ChannelKind(StrEnum):
    """By which way messages leave."""

    #: The console's inbox, read by the tenant's people.
    INBOX = "inbox"
    #: A mail to an address.
    EMAIL = "email"
    #: A signed request to an address on the network.
    WEBHOOK = "webhook"
    #: To an agent of the same tenant that a public message names; it perceives it. No row of `Channel` is of this kind.
    PEER = "peer"


class DeliveryStatus(StrEnum):
    """How far a message has come."""

    #: It waits to be delivered, for the first time or again.
    PENDING = "pending"
    #: A worker delivers it now.
    SENDING = "sending"
    #: Its channel took it.
    SENT = "sent"
    #: It was tried as often as is allowed, or cannot be delivered; a person can have it tried again.
    FAILED = "failed"
    #: A person withdrew it before it was sent.
    CANCELLED = "cancelled"


#: A receiver's word counts whenever it comes: also after the worker that asked was given up.
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
    """Who said a turn of a conversation."""

    #: The person.
    USER = "user"
    #: The agent.
    AGENT = "agent"
