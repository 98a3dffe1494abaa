"""Leases, and leased heartbeats: the members of a batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from apps.agents.services.identity_column import AgentIdentity
from apps.heartbeats.models import HeartbeatStatus
from arbor.authority.authorization import AgentAuthority
from arbor.errors import ArborError
from arbor.heartbeat.needs import EndedCall
from arbor.heartbeat.situation import Situation
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.steps import HANDLERS
from arbor.pipeline.engine import Checkpoint, NodeOutcome, Progress, ProgressStatus, Run, StepRecord
from arbor.pipeline.graph import heartbeat_text, load_graph
from arbor.pipeline.values import Graph

#: An agent, and the epoch of its lease.
type LeaseToken = tuple[UUID, int]

_ENDED = {
    NodeOutcome.SUCCESS: HeartbeatStatus.DONE,
    NodeOutcome.PARTIAL: HeartbeatStatus.DONE,
    NodeOutcome.SKIPPED: HeartbeatStatus.SKIPPED,
    NodeOutcome.FAILURE: HeartbeatStatus.FAILED,
    NodeOutcome.RETRY: HeartbeatStatus.FAILED,
}


class Lease(NamedTuple):
    """The right to run an agent's heartbeat: the locked row of its schedule."""

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


class OpenHeartbeat(NamedTuple):
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
    #: The result of the call that the heartbeat waits for, once the call has ended.
    answer: EndedCall | None

    @property
    def is_waiting(self) -> bool:
        """Return whether the heartbeat waits for a call."""
        return self.status == HeartbeatStatus.WAITING


@dataclass(kw_only=True, slots=True, eq=False)
class LeasedHeartbeat:
    """A heartbeat leased by this worker, from its checkpoint to its next suspension or end."""

    agent: LeasedAgent
    heartbeat_id: UUID
    epoch: int
    slot_at: datetime
    trigger: str
    #: The row of a heartbeat to resume; None for a new one.
    stored: OpenHeartbeat | None = None
    #: The number of the checkpoint; None before the heartbeat has a row.
    step: int | None = None
    #: The situation in the heartbeat's row.
    stored_situation: Situation | None = None
    #: Steps since the last checkpoint.
    steps: list[StepRecord] = field(default_factory=list)
    own_ms: float = 0.0
    elapsed_ms: float = 0.0
    #: Whether actions were committed in an earlier leg.
    acted: bool = False
    #: Where the leg begins, and the running pipeline; not set for a heartbeat that is ended unloaded.
    checkpoint: Checkpoint[HeartbeatState] = field(init=False, repr=False)
    pipeline: Run[HeartbeatState] = field(init=False, repr=False)
    #: The need that the pipeline waits for; None at the end of the leg.
    need: Any = None
    #: Set at the end of the leg.
    progress: Progress[HeartbeatState] = field(init=False, repr=False)

    @property
    def source(self) -> str:
        """Return the source that rows of this heartbeat record."""
        return f"heartbeat:{self.heartbeat_id}"

    @property
    def heartbeat(self) -> HeartbeatState:
        """Return the state of the heartbeat at the end of the leg."""
        return self.progress.checkpoint.state

    @property
    def ended_as(self) -> HeartbeatStatus | None:
        """Return the status of an ended heartbeat; None if it is suspended."""
        if self.progress.status is ProgressStatus.SUSPENDED:
            return None
        return _ENDED[self.progress.outcome or NodeOutcome.FAILURE]

    def resume(self, answer: Any) -> None:
        """Send an answer to the pipeline, or raise an error in it; run to the next need or the end of the leg."""
        try:
            if isinstance(answer, ArborError):
                self.need = self.pipeline.throw(answer)
            else:
                self.need = self.pipeline.send(answer)
        except StopIteration as stop:
            self.need, self.progress = None, stop.value
