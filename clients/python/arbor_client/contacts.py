"""Messages from agents to people: the inbox, the outbox, and the channels of delivery."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from arbor_client.agents import SentMessage
from arbor_client.calls import Call, Id, PagedCall, delete, get, listed, post, segment
from arbor_client.groups import Group, listing, operation

if TYPE_CHECKING:
    from arbor_client.clients import Arbor, AsyncArbor


@dataclass(frozen=True, kw_only=True)
class Message:
    """A message from an agent."""

    id: UUID
    agent_id: UUID
    heartbeat_id: UUID | None
    #: inbox, email, webhook or peer.
    kind: str
    #: Of a webhook the host only.
    target: str
    #: user or public.
    audience: str
    subject: str
    content: str
    #: pending, sending, sent, failed or cancelled.
    status: str
    attempts: int
    last_error: str
    created_at: datetime
    sent_at: datetime | None
    read_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Channel:
    """A delivery channel."""

    id: UUID
    name: str
    #: inbox, email or webhook.
    kind: str
    #: Of a webhook the host only.
    target: str
    #: user or public.
    audience: str
    #: None: of all agents.
    agent_id: UUID | None
    enabled: bool
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class NewChannel:
    """A new channel."""

    channel: Channel
    #: The secret that signs a webhook's requests, shown once; else empty.
    secret: str


class Inbox[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about messages that reached the inbox."""

    @listing
    def list(self, *, agent_id: Id | None = None, unread: bool = False) -> PagedCall[Message]:
        """List the messages from agents, the latest first."""
        return listed(Message, "/inbox", agent_id=agent_id, unread=unread)

    @operation
    def read(self, message_id: Id) -> Call[Message]:
        """Mark a message as read."""
        return post(Message, f"/inbox/{segment(message_id)}/read")

    @operation
    def answer(self, message_id: Id, text: str) -> Call[SentMessage]:
        """Answer a message: its agent reads the answer at its next heartbeat, which starts at once."""
        return post(SentMessage, f"/inbox/{segment(message_id)}/answer", {"text": text})


class Outbox[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about outgoing messages and their delivery."""

    @listing
    def list(self, *, agent_id: Id | None = None, status: str | None = None) -> PagedCall[Message]:
        """List outgoing messages and their delivery, the latest first."""
        return listed(Message, "/outbox", agent_id=agent_id, status=status)

    @operation
    def get(self, message_id: Id) -> Call[Message]:
        """Return a message and its delivery."""
        return get(Message, f"/outbox/{segment(message_id)}")

    @operation
    def retry(self, message_id: Id) -> Call[Message]:
        """Send a failed message again."""
        return post(Message, f"/outbox/{segment(message_id)}/retry")

    @operation
    def cancel(self, message_id: Id) -> Call[Message]:
        """Cancel a message that was not sent."""
        return post(Message, f"/outbox/{segment(message_id)}/cancel")


class Channels[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about delivery channels."""

    @listing
    def list(self) -> PagedCall[Channel]:
        """List the channels of the tenant and its agents by name."""
        return listed(Channel, "/channels")

    @operation
    def add(
        self, name: str, *, kind: str, target: str = "", audience: str = "user", agent_id: Id | None = None
    ) -> Call[NewChannel]:
        """Add a channel; the secret that signs a webhook's requests is shown once."""
        body = {"name": name, "kind": kind, "target": target, "audience": audience, "agent_id": agent_id}
        return post(NewChannel, "/channels", body)

    @operation
    def remove(self, channel_id: Id) -> Call[Channel | None]:
        """Remove a channel. Its pending messages fail; sent ones stay in the outbox."""
        return delete(Channel, f"/channels/{segment(channel_id)}")

    @operation
    def enable(self, channel_id: Id) -> Call[Channel]:
        """Enable a channel."""
        return post(Channel, f"/channels/{segment(channel_id)}/enable")

    @operation
    def disable(self, channel_id: Id) -> Call[Channel]:
        """Disable a channel. Its pending messages fail."""
        return post(Channel, f"/channels/{segment(channel_id)}/disable")

    @operation
    def test(self, channel_id: Id) -> Call[Channel]:
        """Send a test message. Raises ServerFailed if the receiver does not accept it."""
        return post(Channel, f"/channels/{segment(channel_id)}/test-message")
