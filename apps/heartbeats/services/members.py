"""The members of a batch: heartbeats in this worker's hands."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from apps.heartbeats.models import CallStatus
from arbor.heartbeat.beat import Beat
from arbor.heartbeat.needs import CallResult
from arbor.heartbeat.situation import Situation
from arbor.heartbeat.steps.registry import HANDLERS
from arbor.pipeline.engine import Checkpoint, Progress, StepRecord
from arbor.pipeline.graph import heartbeat_text, load_graph
from arbor.pipeline.values import Graph


@dataclass(frozen=True, kw_only=True, slots=True)
class Lease:
    """The right to walk an agent's heartbeat: its schedule row, locked."""

    agent_id: UUID
    epoch: int
    #: A `ScheduleState`: queued or running.
    state: str
    #: Set by every claim.
    slot_at: datetime
    trigger: str
    interval_s: float
    attempts: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LeasedAgent:
    """The agent whose heartbeat it is, as far as the walk needs to know it."""

    id: UUID
    tenant_id: UUID
    name: str
    status: str
    #: Its own graph, or nothing.
    pipeline: str

    @property
    def graph(self) -> Graph:
        """Return the pipeline of its heartbeats."""
        return load_graph(self.pipeline or heartbeat_text(), handlers=HANDLERS)


@dataclass(frozen=True, kw_only=True, slots=True)
class LastCall:
    """The call that a heartbeat asked last; all None while it has asked none."""

    id: UUID | None
    #: A `CallStatus`.
    status: str | None
    reply: str | None
    error: str | None
    error_kind: str | None

    @property
    def has_ended(self) -> bool:
        """Tell whether there is a reply, or will be none."""
        return self.status in (CallStatus.COMPLETE, CallStatus.FAILED)

    @property
    def result(self) -> CallResult:
        """Return how it has ended."""
        assert self.id is not None
        return CallResult(
            call_id=self.id,
            complete=self.status == CallStatus.COMPLETE,
            text=self.reply or "",
            error=self.error or "",
            error_kind=self.error_kind or "",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenHeartbeat:
    """A heartbeat that was begun and has not ended, as it was last stored."""

    id: UUID
    #: A `HeartbeatStatus`: running or waiting.
    status: str
    epoch: int
    step: int
    slot_at: datetime
    trigger: str
    own_ms: float
    elapsed_ms: float
    #: Packed JSON of a checkpoint, and of what the agent saw.
    checkpoint: bytes
    situation: bytes
    #: Whether its actions were carried out, as far as it was stored.
    acted: bool
    call: LastCall


@dataclass(frozen=True, kw_only=True, slots=True)
class Due:
    """A heartbeat that can go on under a lease: a new one, or one that is open."""

    lease: Lease
    agent: LeasedAgent
    #: None: it begins.
    open: OpenHeartbeat | None = None
    #: The answer that an open one waited for.
    result: CallResult | None = None


@dataclass(kw_only=True, slots=True)
class LeasedHeartbeat:
    """A heartbeat in this worker's hands, from its checkpoint to its next suspension or its end."""

    agent: LeasedAgent
    heartbeat_id: UUID
    epoch: int
    slot_at: datetime
    trigger: str
    #: None: it only has to be ended, and nothing else is known of it any more.
    checkpoint: Checkpoint[Beat] | None = None
    result: CallResult | None = None
    #: None until the heartbeat has a row; then the number of its checkpoint.
    step: int | None = None
    #: What the agent saw, as the heartbeat's row has it.
    stored_view: Situation | None = None
    #: Steps taken since the last one stored.
    steps: list[StepRecord] = field(default_factory=list)
    own_ms: float = 0.0
    elapsed_ms: float = 0.0
    #: Actions of it were committed before.
    acted: bool = False
    progress: Progress[Beat] | None = None

    @property
    def beat(self) -> Beat | None:
        """Return the beat as far as it has come."""
        if self.progress is not None:
            return self.progress.checkpoint.state
        return self.checkpoint.state if self.checkpoint is not None else None
