"""What the services of heartbeats hand to each other."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.heartbeats.handlers.registry import HANDLERS
from apps.heartbeats.models import CallStatus
from apps.tenants.packing import pack, unpack, unpack_text
from arbor.heartbeat.context import revive_context
from arbor.heartbeat.situation import Situation
from arbor.ids import uuid7
from arbor.pipeline.engine import Checkpoint, StepRecord, begin
from arbor.pipeline.graph import heartbeat_text, load_graph
from arbor.pipeline.values import Graph


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
class Walker:
    """The agent whose heartbeat it is, as far as the walk needs to know it."""

    id: UUID
    tenant_id: UUID
    name: str
    status: str
    #: Its own graph, or nothing.
    pipeline: str


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
class OpenBeat:
    """A heartbeat that was begun and has not ended, as it was last stored."""

    id: UUID
    #: A `HeartbeatStatus`: running or waiting.
    status: str
    epoch: int
    step: int
    slot_at: datetime
    trigger: str
    own_ms: float
    #: `arbor.pipeline.progress.Checkpoint` as packed JSON, and what the agent saw as that of a `Situation`.
    checkpoint: bytes
    situation: bytes
    #: Whether its actions were carried out, as far as it was stored.
    acted: bool
    call: LastCall


@dataclass(kw_only=True)
class Walk:
    """A heartbeat in this worker's hands."""

    heartbeat_id: UUID
    tenant_id: UUID
    agent_id: UUID
    agent_name: str
    epoch: int
    slot_at: datetime
    trigger: str
    graph: Graph
    checkpoint: Checkpoint
    #: What the external call brought, when it waits for one.
    result: dict[str, Any] | None = None
    #: None until the heartbeat has a row; then the number of its checkpoint.
    step: int | None = None
    #: What the agent sees, as the heartbeat's row has it.
    seen: Situation | None = None
    #: Steps taken since the last one stored.
    steps: list[StepRecord] = field(default_factory=list)
    own_ms: float = 0.0
    #: Whether actions of it stand although nothing else is known of it any more.
    acted: bool = False


def new_walk(agent: Walker, lease: Lease) -> Walk:
    """Return the walk of a heartbeat that has not begun."""
    graph = _graph(agent)
    heartbeat_id = uuid7()
    context = {
        "tenant_id": str(agent.tenant_id),
        "agent_id": str(agent.id),
        "heartbeat_id": str(heartbeat_id),
        "trigger": lease.trigger,
    }
    return Walk(
        heartbeat_id=heartbeat_id,
        tenant_id=agent.tenant_id,
        agent_id=agent.id,
        agent_name=agent.name,
        epoch=lease.epoch,
        slot_at=lease.slot_at,
        trigger=lease.trigger,
        graph=graph,
        checkpoint=begin(graph, context),
    )


def stored_walk(agent: Walker, beat: OpenBeat, *, epoch: int) -> Walk:
    """Return the walk of a heartbeat from where it was last stored."""
    stored = Checkpoint.from_json(unpack(beat.checkpoint))
    context = dict(stored.context)
    if "situation" not in context and beat.situation != _NOTHING:
        context["situation"] = Situation.model_validate_json(unpack_text(beat.situation))
    context = revive_context(context)
    return Walk(
        heartbeat_id=beat.id,
        tenant_id=agent.tenant_id,
        agent_id=agent.id,
        agent_name=agent.name,
        epoch=epoch,
        slot_at=beat.slot_at,
        trigger=beat.trigger,
        graph=_graph(agent),
        checkpoint=replace(stored, context=context),
        seen=context.get("situation"),
        step=beat.step,
        own_ms=beat.own_ms,
    )


def ending_walk(agent: Walker, beat: OpenBeat | None, lease: Lease) -> Walk:
    """Return the walk of a heartbeat that only has to be ended: it has no graph, and knows nothing any more."""
    return Walk(
        heartbeat_id=beat.id if beat else uuid7(),
        tenant_id=agent.tenant_id,
        agent_id=agent.id,
        agent_name=agent.name,
        epoch=lease.epoch,
        slot_at=beat.slot_at if beat else lease.slot_at,
        trigger=beat.trigger if beat else lease.trigger,
        graph=_NOWHERE,
        checkpoint=Checkpoint(cursor=""),
        step=beat.step if beat else None,
        own_ms=beat.own_ms if beat else 0.0,
        acted=beat is not None and beat.acted,
    )


_NOTHING = pack({})
_NOWHERE = Graph(name="", nodes={}, edges={}, start="")


def _graph(agent: Walker) -> Graph:
    return load_graph(agent.pipeline or heartbeat_text(), handlers=HANDLERS)
