"""What carries a message to its receiver, as a port, with the fake that tests use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from arbor.contacts.values import Audience


@dataclass(frozen=True, kw_only=True)
class Outgoing:
    """A message on its way. `key` is the same at every try, so that a receiver can tell a message that comes twice."""

    id: str
    key: str
    #: The name of the agent that wrote it.
    agent: str
    audience: Audience
    #: An e-mail address or a URL.
    target: str
    subject: str
    content: str
    #: The heartbeat that decided it; empty for a test of the channel.
    heartbeat: str
    at: datetime
    #: What signs a webhook's request.
    secret: bytes = field(default=b"", repr=False)


class Carrier(Protocol):
    """A way by which messages leave."""

    def carry(self, message: Outgoing) -> None:
        """Hand the message to its receiver; return only when the receiver has confirmed it.

        Raises DeliveryFailed: `final` where trying again does not help.
        """


class FakeCarrier:
    """Keeps what it carried; `before` is called with each message first, and may raise."""

    def __init__(self, before: Callable[[Outgoing], None] | None = None) -> None:
        self.carried: list[Outgoing] = []
        self._before = before

    def carry(self, message: Outgoing) -> None:
        """Keep the message."""
        if self._before is not None:
            self._before(message)
        self.carried.append(message)
