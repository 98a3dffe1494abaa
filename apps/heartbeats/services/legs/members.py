"""Leases, and the leased heartbeats that are the members of a batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from apps.agents.services.identity_column import AgentIdentity
from apps.calls.models import CallStatus
from apps.heartbeats.models import HeartbeatStatus
from arbor.authority.authorization import AgentAuthority
from arbor.heartbeat.needs import EndedCall
from arbor.heartbeat.situation import Situation
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.steps import HANDLERS
from arbor.pipeline.engine import Checkpoint, NodeOutcome, Progress, ProgressStatus, StepRecord
from arbor.pipeline.graph import heartbeat_text, load_graph
from arbor.pipeline.values import Graph

_ENDED = {
    NodeOutcome.SUCCESS: HeartbeatStatus.DONE,
    NodeOutcome.PARTIAL: HeartbeatStatus.DONE,
    NodeOutcome.SKIPPED: HeartbeatStatus.SKIPPED,
    NodeOutcome.FAILURE: HeartbeatStatus.FAILED,
    NodeOutcome.RETRY: HeartbeatStatus.FAILED,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Lease:
    """The right to run an agent's heartbeat: its schedule row, locked."""

    agent_id: UUID
    epoch: int
    #: A `ScheduleState`: queued or running.
    state: str
    #: The due time, set by each claim.
    slot_at: datetime
    trigger: str
    interval_s: float
    attempts: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LeasedAgent:
    """The agent of a leased heartbeat."""

    id: UUID
    tenant_id: UUID
    name: str
    status: str
    #: The agent's own pipeline as DOT; empty for the built-in one.
    pipeline: str
    #: The agent's keys and endorsement, verified.
    identity: AgentIdentity
    #: What the agent may do, as it is now.
    authority: AgentAuthority

    @property
    def graph(self) -> Graph:
        """Return the pipeline of its heartbeats."""
        return load_graph(self.pipeline or heartbeat_text(), handlers=HANDLERS)


@dataclass(frozen=True, kw_only=True, slots=True)
class LastCall:
    """The latest call of a heartbeat; all None if it has none."""

    id: UUID | None
    #: A `CallStatus`.
    status: str | None
    reply: str | None
    error: str | None
    error_kind: str | None

    @property
    def has_ended(self) -> bool:
        """Return whether the call is complete or failed."""
        return self.status in (CallStatus.COMPLETE, CallStatus.FAILED)

    @property
    def result(self) -> EndedCall:
        """Return the result of an ended call."""
        assert self.id is not None
        return EndedCall(
            call_id=self.id,
            complete=self.status == CallStatus.COMPLETE,
            text=self.reply or "",
            error=self.error or "",
            error_kind=self.error_kind or "",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenHeartbeat:
    """A stored heartbeat that has begun and not ended."""

    id: UUID
    #: A `HeartbeatStatus`: running or waiting.
    status: str
    epoch: int
    step: int
    slot_at: datetime
    trigger: str
    own_ms: float
    elapsed_ms: float
    #: Packed JSON of the checkpoint and the situation.
    checkpoint: bytes
    situation: bytes
    #: Whether the stored record has actions.
    acted: bool
    call: LastCall


@dataclass(frozen=True, kw_only=True, slots=True)
class Due:
    """A heartbeat to start or resume under a lease."""

    lease: Lease
    agent: LeasedAgent
    #: None for a new heartbeat.
    open: OpenHeartbeat | None = None
    #: The result that an open heartbeat waited for.
    result: EndedCall | None = None


@dataclass(kw_only=True, slots=True)
class LeasedHeartbeat:
    """A heartbeat leased by this worker, from its checkpoint to its next suspension or end."""

    agent: LeasedAgent
    heartbeat_id: UUID
    epoch: int
    slot_at: datetime
    trigger: str
    #: None for a heartbeat that is only to be ended.
    checkpoint: Checkpoint[HeartbeatState] | None = None
    result: EndedCall | None = None
    #: The number of the checkpoint; None before the heartbeat has a row.
    step: int | None = None
    #: The situation in the heartbeat's row.
    stored_view: Situation | None = None
    #: Steps since the last checkpoint.
    steps: list[StepRecord] = field(default_factory=list)
    own_ms: float = 0.0
    elapsed_ms: float = 0.0
    #: Whether actions were committed in an earlier leg.
    acted: bool = False
    progress: Progress[HeartbeatState] | None = None

    @property
    def heartbeat(self) -> HeartbeatState | None:
        """Return the current state of the heartbeat."""
        if self.progress is not None:
            return self.progress.checkpoint.state
        return self.checkpoint.state if self.checkpoint is not None else None

    @property
    def ended_as(self) -> HeartbeatStatus | None:
        """Return the status of an ended heartbeat; None if it is suspended."""
        progress = self.progress
        assert progress is not None
        if progress.status is ProgressStatus.SUSPENDED:
            return None
        return _ENDED[progress.outcome or NodeOutcome.FAILURE]
