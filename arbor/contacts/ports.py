"""The port that delivers messages, with the fake that tests use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from arbor.contacts.values import Audience


@dataclass(frozen=True, kw_only=True)
class DeliverableMessage:
    """A message to deliver. `key` is the same at every attempt, so that a receiver can recognize a repeated message."""

    id: str
    key: str
    #: The name of the agent that wrote it.
    agent: str
    audience: Audience
    #: An e-mail address or a URL.
    target: str
    subject: str
    content: str
    #: The heartbeat that decided to send the message; empty for a test of the channel.
    heartbeat: str
    at: datetime
    #: The key that signs a webhook's request.
    secret: bytes = field(default=b"", repr=False)


class Carrier(Protocol):
    """Delivers messages to one kind of channel."""

    def deliver(self, message: DeliverableMessage) -> None:
        """Deliver the message; return only when the receiver has confirmed it.

        Raises DeliveryFailed, `final` where a retry does not help.
        """


class FakeCarrier:
    """Records the messages; `before` is called with each message first, and may raise."""

    def __init__(self, before: Callable[[DeliverableMessage], None] | None = None) -> None:
        self.carried: list[DeliverableMessage] = []
        self._before = before

    def deliver(self, message: DeliverableMessage) -> None:
        """Record the message."""
        if self._before is not None:
            self._before(message)
        self.carried.append(message)
