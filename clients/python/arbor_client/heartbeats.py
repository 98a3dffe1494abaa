"""Heartbeats of an agent: list, trace, replay and request them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from arbor_client.calls import Call, Id, PagedCall, get, listed, post, segment
from arbor_client.groups import Group, listing, operation

if TYPE_CHECKING:
    from arbor_client.clients import Arbor, AsyncArbor


@dataclass(frozen=True, kw_only=True)
class Heartbeat:
    """A heartbeat."""

    id: UUID
    agent_id: UUID
    #: Counts the heartbeats that ran; 0 for a skipped one.
    number: int
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
class CallTrace:
    """A model call of a heartbeat."""

    purpose: str
    model: str
    status: str
    attempts: int
    input_tokens: int | None
    output_tokens: int | None
    #: None: the price is not known.
    cost_usd: float | None
    error: str


@dataclass(frozen=True, kw_only=True)
class HeartbeatTrace(Heartbeat):
    """A heartbeat with its reasons, actions, steps and model calls."""

    tier: str
    #: The round trips to the model.
    round_trips: int
    #: Milliseconds in Arbor's own code, without the model.
    own_ms: float
    reasoning: str
    actions: Any
    goal_changes: Any
    #: The parts of the reply that were not valid, with the reasons.
    dropped: Any
    memory_id: UUID | None
    steps: list[Step]
    calls: list[CallTrace]


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A difference between a recorded heartbeat and its replay."""

    where: str
    recorded: str
    replayed: str


@dataclass(frozen=True, kw_only=True)
class Replay:
    """A recorded heartbeat, decided again by the current rules."""

    id: UUID
    same: bool
    differences: list[Difference]
    notes: list[str]


@dataclass(frozen=True, kw_only=True)
class RequestedHeartbeat:
    """A requested heartbeat."""

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
    def list(self, agent_id: Id, *, status: str | None = None) -> PagedCall[Heartbeat]:
        """List an agent's heartbeats, the latest first."""
        return listed(Heartbeat, f"/agents/{segment(agent_id)}/heartbeats", status=status)

    @operation
    def trace(self, agent_id: Id, heartbeat_id: Id) -> Call[HeartbeatTrace]:
        """Return what a heartbeat saw, decided and did."""
        return get(HeartbeatTrace, f"/agents/{segment(agent_id)}/heartbeats/{segment(heartbeat_id)}")

    @operation
    def replay(self, agent_id: Id, heartbeat_id: Id) -> Call[Replay]:
        """Decide a recorded heartbeat again by the current rules. Nothing is written."""
        return get(Replay, f"/agents/{segment(agent_id)}/heartbeats/{segment(heartbeat_id)}/replay")

    @operation
    def request(self, agent_id: Id) -> Call[RequestedHeartbeat]:
        """Request a heartbeat of an active agent now, which a worker runs. Raises Conflict while one is under way."""
        return post(RequestedHeartbeat, f"/agents/{segment(agent_id)}/heartbeats")

    @operation
    def notify(
        self,
        agent_id: Id,
        text: str,
        *,
        kind: Literal["environment", "interrupt", "error"] = "environment",
        urgent: bool = False,
        detail: dict[str, Any] | None = None,
    ) -> Call[Percept]:
        """Add an event to what an agent perceives."""
        body = {"text": text, "kind": kind, "urgent": urgent, "detail": detail or {}}
        return post(Percept, f"/agents/{segment(agent_id)}/events", body)
