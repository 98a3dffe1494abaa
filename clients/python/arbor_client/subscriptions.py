"""Subscriptions of agents to signals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from arbor_client.calls import Call, Id, Rows, delete, get, post, rows_of, segment
from arbor_client.groups import Group, operation

if TYPE_CHECKING:
    from arbor_client.clients import Arbor, AsyncArbor


@dataclass(frozen=True, kw_only=True)
class Subscription:
    """A subscription of an agent."""

    id: UUID
    #: Names of signals, or patterns.
    names: list[str]
    #: self, peer or shared.
    source: str
    peer_id: UUID | None
    created_by: str
    created_at: datetime


class Subscriptions[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about the signals that agents are subscribed to."""

    @operation
    def list(self, agent_id: Id) -> Call[Rows[Subscription]]:
        """Return the subscriptions of an agent."""
        return rows_of(get(Subscription, f"/agents/{segment(agent_id)}/subscriptions"))

    @operation
    def add(
        self, agent_id: Id, *, names: Sequence[str], source: str, peer_id: Id | None = None
    ) -> Call[Subscription]:
        """Subscribe an agent to signals about itself (self), another agent (peer) or what agents share (shared)."""
        body = {"names": names, "source": source, "peer_id": peer_id}
        return post(Subscription, f"/agents/{segment(agent_id)}/subscriptions", body)

    @operation
    def remove(self, agent_id: Id, subscription_id: Id) -> Call[Subscription | None]:
        """End a subscription of an agent."""
        return delete(Subscription, f"/agents/{segment(agent_id)}/subscriptions/{segment(subscription_id)}")
