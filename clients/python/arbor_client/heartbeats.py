"""Heartbeats of an agent: listed, traced, asked for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from arbor_client.calls import Call, PagedCall, get, listed, post
from arbor_client.groups import Group, listing, operation

if TYPE_CHECKING:
    from arbor_client.clients import Arbor, AsyncArbor


@dataclass(frozen=True, kw_only=True)
class Heartbeat:
    """A heartbeat."""

    id: UUID
    agent_id: UUID
    number: int | None
    #: running, waiting, done, failed or skipped.
    status: str
    #: Why it was skipped or failed.
    reason: str
    mode: str
    trigger: str
    model: str
    narrative: str
    energy_start: float | None
    energy_end: float | None
    started_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Step:
    """One run of a node of the pipeline."""

    sequence: int
    node: str
    outcome: str
    duration_ms: float
    changed: list[str]


@dataclass(frozen=True, kw_only=True)
class HeartbeatTrace(Heartbeat):
    """A heartbeat with its reasons, actions and steps."""

    tier: str
    turns: int
    own_ms: float
    reasoning: str
    actions: Any
    goal_changes: Any
    dropped: Any
    memory_id: UUID | None
    steps: list[Step]


@dataclass(frozen=True, kw_only=True)
class RequestedHeartbeat:
    """A heartbeat that was asked for."""

    agent_id: UUID
    epoch: int


@dataclass(frozen=True, kw_only=True)
class Percept:
    """An event that waits for the next heartbeat."""

    id: UUID
    kind: str
    urgent: bool


class Heartbeats[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about heartbeats."""

    @listing
    def list(self, agent_id: UUID | str) -> PagedCall[Heartbeat]:
        """List an agent's heartbeats, the latest first."""
        return listed(Heartbeat, f"/agents/{agent_id}/heartbeats")

    @operation
    def trace(self, agent_id: UUID | str, heartbeat_id: UUID | str) -> Call[HeartbeatTrace]:
        """Return what a heartbeat saw, decided and did."""
        return get(HeartbeatTrace, f"/agents/{agent_id}/heartbeats/{heartbeat_id}")

    @operation
    def ask(self, agent_id: UUID | str) -> Call[RequestedHeartbeat]:
        """Ask for a heartbeat of an active agent now."""
        return post(RequestedHeartbeat, f"/agents/{agent_id}/heartbeats")

    @operation
    def notify(
        self,
        agent_id: UUID | str,
        text: str,
        *,
        kind: Literal["environment", "interrupt", "error"] = "environment",
        urgent: bool = False,
        detail: dict[str, Any] | None = None,
    ) -> Call[Percept]:
        """Add an event to what an agent perceives."""
        body = {"text": text, "kind": kind, "urgent": urgent, "detail": detail or {}}
        return post(Percept, f"/agents/{agent_id}/events", body)
