"""A heartbeat walked from where it stands to its next suspension or its end, in short transactions.

Law 2: each transaction first locks the schedule row under its epoch (the lease's token) and the heartbeat at its step.
A worker whose lease was lost finds no row, and writes nothing. Steps that changed nothing are not stored when the walk
leaves the database: whoever takes over repeats them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.db.models import Case, Value, When
from django.db.models.functions import Now

from apps.agents.models import Agent
from apps.heartbeats.handlers.registry import HANDLERS
from apps.heartbeats.models import (
    CallStatus,
    ExternalCall,
    Heartbeat,
    HeartbeatSchedule,
    HeartbeatStatus,
    ScheduleState,
    Step,
)
from apps.heartbeats.services.calls import fulfil_message
from apps.queues import enqueue
from apps.tenants.scope import tenant_transaction
from arbor.agents.lifecycle import AgentStatus
from arbor.clock import Clock, SystemClock
from arbor.errors import StaleLease
from arbor.ids import uuid7
from arbor.pipeline.engine import (
    Checkpoint,
    Outcome,
    Phase,
    Progress,
    ProgressStatus,
    StepRecord,
    Suspension,
    advance,
    begin,
)
from arbor.pipeline.graph import heartbeat_text, load_graph
from arbor.pipeline.values import Graph

log = structlog.get_logger(__name__)

OPEN = (HeartbeatStatus.RUNNING, HeartbeatStatus.WAITING)


@dataclass(kw_only=True)
class Walk:
    """A heartbeat in this worker's hands."""

    heartbeat_id: UUID
    tenant_id: UUID
    agent_id: UUID
    agent_name: str
    epoch: int
    slot_at: Any
    trigger: str
    graph: Graph
    checkpoint: Checkpoint
    #: What the external call brought, when it waits for one.
    result: dict[str, Any] | None = None
    #: None until the heartbeat has a row; then the number of its checkpoint.
    step: int | None = None
    #: Steps taken since the last one stored.
    steps: list[StepRecord] = field(default_factory=list)
    own_ms: float = 0.0


def advance_heartbeat(*, agent_id: UUID, tenant_id: UUID, epoch: int, clock: Clock | None = None) -> bool:
    """Walk the agent's heartbeat on under this lease, until it waits for a model or has ended.

    Returns False when the message was stale or doubled: nothing is done then.
    """
    clock = clock or SystemClock()
    started = time.perf_counter()
    try:
        with tenant_transaction(tenant_id):
            walk = _take(agent_id=agent_id, epoch=epoch, clock=clock)
            if walk is None:
                log.info("stale_message", agent_id=str(agent_id), epoch=epoch)
                return False
            progress = _walk_inside(walk, started, clock)
        while progress.status is ProgressStatus.CROSSING:
            started = time.perf_counter()
            progress = _step(walk, Phase.OUTSIDE, clock)
            if progress.status is not ProgressStatus.CROSSING:
                raise RuntimeError(
                    f"a node outside a transaction may not end or suspend, yet it {progress.status}"
                )
            with tenant_transaction(tenant_id):
                _fence(walk)
                progress = _walk_inside(walk, started, clock)
    except StaleLease:
        log.warning("stale_lease", agent_id=str(agent_id), epoch=epoch)
        return False
    except (OperationalError, InterfaceError):
        # The database went away: the lease brings the heartbeat back.
        raise
    except Exception as error:
        # A fault in a handler would come again at each retry: it is this heartbeat's failure, recorded as such.
        log.exception("heartbeat_fault", agent_id=str(agent_id), epoch=epoch)
        _fail(agent_id=agent_id, tenant_id=tenant_id, epoch=epoch, clock=clock, error=error)
    return True


def _fail(*, agent_id: UUID, tenant_id: UUID, epoch: int, clock: Clock, error: Exception) -> None:
    """Take the heartbeat anew, as it was last stored, and end it as failed."""
    with tenant_transaction(tenant_id):
        walk = _take(agent_id=agent_id, epoch=epoch, clock=clock)
        if walk is not None:
            notes = "; ".join(getattr(error, "__notes__", ()))
            _finish(walk, HeartbeatStatus.FAILED, reason=f"{type(error).__name__}: {error} {notes}".strip())


def _walk_inside(walk: Walk, started: float, clock: Clock) -> Progress:
    """Walk the nodes that run in the transaction that is open, and store how far it came."""
    progress = _step(walk, Phase.INSIDE, clock)
    walk.own_ms += (time.perf_counter() - started) * 1000
    if progress.status is ProgressStatus.SUSPENDED and progress.suspension is not None:
        _suspend(walk, progress.suspension)
    elif progress.status is ProgressStatus.FINISHED:
        done = progress.outcome is Outcome.SUCCESS
        _finish(walk, HeartbeatStatus.DONE if done else HeartbeatStatus.FAILED, reason=progress.fault)
    elif any(step.changed for step in walk.steps):
        _store(walk, status=HeartbeatStatus.RUNNING, checkpoint=walk.checkpoint.to_json())
    return progress


def _step(walk: Walk, phase: Phase, clock: Clock) -> Progress:
    progress = advance(
        walk.graph,
        walk.checkpoint,
        HANDLERS,
        phase=phase,
        clock=clock,
        resume_with=walk.result,
        observer=walk.steps.append,
    )
    if progress.status is not ProgressStatus.CROSSING or not progress.checkpoint.waiting:
        walk.result = None
    walk.checkpoint = progress.checkpoint
    return progress


# --- Taking ------------------------------------------------------------------------------------------


def _take(*, agent_id: UUID, epoch: int, clock: Clock) -> Walk | None:
    """Find out what there is to do under this lease; None when there is nothing."""
    schedule = (
        HeartbeatSchedule.objects.select_for_update()
        .filter(agent_id=agent_id, epoch=epoch, state__in=[ScheduleState.QUEUED, ScheduleState.RUNNING])
        .first()
    )
    if schedule is None:
        return None
    agent: Agent = Agent.objects.get(id=agent_id)
    beat: Heartbeat | None = Heartbeat.objects.filter(agent_id=agent_id, status__in=OPEN).first()
    if schedule.state == ScheduleState.RUNNING:
        # The call it waits for has ended; anything else is a doubled message.
        return _resume(agent, beat) if beat and beat.status == HeartbeatStatus.WAITING else None
    if agent.status != AgentStatus.ACTIVE and beat is None:
        _skip(schedule, reason=f"the agent is {agent.status}")
        HeartbeatSchedule.objects.filter(agent_id=agent_id).update(state=ScheduleState.OFF, lease_until=None)
        return None
    HeartbeatSchedule.objects.filter(agent_id=agent_id).update(
        state=ScheduleState.RUNNING, lease_until=Now() + settings.ARBOR_RUN_LEASE
    )
    if beat is not None:
        return _take_over(agent, beat, schedule)
    _note_missed(schedule, clock)
    return _begin(agent, schedule)


def _begin(agent: Agent, schedule: HeartbeatSchedule) -> Walk:
    graph = _graph(agent)
    heartbeat_id = uuid7()
    context = {
        "tenant_id": str(agent.tenant_id),
        "agent_id": str(agent.id),
        "heartbeat_id": str(heartbeat_id),
    }
    return Walk(
        heartbeat_id=heartbeat_id,
        tenant_id=agent.tenant_id,
        agent_id=agent.id,
        agent_name=agent.name,
        epoch=schedule.epoch,
        slot_at=schedule.slot_at,
        trigger=schedule.trigger,
        graph=graph,
        checkpoint=begin(graph, context),
    )


def _resume(agent: Agent, beat: Heartbeat) -> Walk | None:
    """Go on with a heartbeat whose call has ended; None while it has not."""
    call = (
        ExternalCall.objects.filter(heartbeat_id=beat.id).order_by("-requested_at").defer("request").first()
    )
    if call is None or call.status not in (CallStatus.COMPLETE, CallStatus.FAILED):
        return None
    walk = _stored_walk(agent, beat)
    walk.result = {
        "call_id": str(call.id),
        "status": call.status,
        "text": call.reply,
        "error": call.error,
        "error_kind": call.error_kind,
    }
    return walk


def _take_over(agent: Agent, beat: Heartbeat, schedule: HeartbeatSchedule) -> Walk | None:
    """Go on with a heartbeat whose worker lost its lease."""
    Heartbeat.objects.filter(id=beat.id).update(epoch=schedule.epoch)
    beat.epoch = schedule.epoch
    if schedule.attempts >= settings.ARBOR_MAX_ATTEMPTS:
        _finish(
            _stored_walk(agent, beat),
            HeartbeatStatus.FAILED,
            reason=f"given up after {schedule.attempts} workers were lost while it ran",
        )
        return None
    if not beat.checkpoint["waiting"]:
        return _stored_walk(agent, beat)
    walk = _resume(agent, beat)
    if walk is None:
        _ask_again(agent, beat)
    return walk


def _ask_again(agent: Agent, beat: Heartbeat) -> None:
    """Hand out the call of a waiting heartbeat once more; whoever had it can no longer store a reply."""
    call = ExternalCall.objects.select_for_update().filter(heartbeat_id=beat.id).latest("requested_at")
    ExternalCall.objects.filter(id=call.id).update(
        status=CallStatus.PENDING, attempts=call.attempts + 1, lease_until=None
    )
    HeartbeatSchedule.objects.filter(agent_id=agent.id).update(lease_until=Now() + _waiting_lease())
    enqueue(fulfil_message(call_id=call.id, tenant_id=agent.tenant_id, agent_name=agent.name))


def _stored_walk(agent: Agent, beat: Heartbeat) -> Walk:
    return Walk(
        heartbeat_id=beat.id,
        tenant_id=agent.tenant_id,
        agent_id=agent.id,
        agent_name=agent.name,
        epoch=beat.epoch,
        slot_at=beat.slot_at,
        trigger=beat.trigger,
        graph=_graph(agent),
        checkpoint=Checkpoint.from_json(beat.checkpoint),
        step=beat.step,
        own_ms=beat.own_ms,
    )


def _graph(agent: Agent) -> Graph:
    return load_graph(agent.pipeline or heartbeat_text(), handlers=HANDLERS)


# --- Storing -----------------------------------------------------------------------------------------


def _fence(walk: Walk) -> None:
    """Lock the lease and the heartbeat; raises StaleLease when another worker has either."""
    held = (
        HeartbeatSchedule.objects.select_for_update()
        .filter(agent_id=walk.agent_id, epoch=walk.epoch, state=ScheduleState.RUNNING)
        .values_list("epoch", flat=True)
    )
    if not list(held):
        raise StaleLease
    if walk.step is not None:
        same = Heartbeat.objects.filter(
            id=walk.heartbeat_id, epoch=walk.epoch, step=walk.step, status__in=OPEN
        ).values_list("id", flat=True)
        if not list(same):
            raise StaleLease


def _suspend(walk: Walk, suspension: Suspension) -> None:
    _store(walk, status=HeartbeatStatus.WAITING, checkpoint=walk.checkpoint.to_json())
    payload = suspension.payload
    call = ExternalCall.objects.create(
        tenant_id=walk.tenant_id,
        agent_id=walk.agent_id,
        heartbeat_id=walk.heartbeat_id,
        purpose=suspension.kind,
        model=payload["model"],
        request=payload["request"],
        sections=payload["sections"],
        requested_at=Now(),
    )
    HeartbeatSchedule.objects.filter(agent_id=walk.agent_id).update(lease_until=Now() + _waiting_lease())
    enqueue(fulfil_message(call_id=call.id, tenant_id=walk.tenant_id, agent_name=walk.agent_name))


def _finish(walk: Walk, status: HeartbeatStatus, *, reason: str) -> None:
    """End the heartbeat and let its agent wait for the next one, or rest if it may no longer beat."""
    failure: Mapping[str, Any] = walk.checkpoint.context.get("failure") or {}
    why = reason or str(failure.get("reason", ""))
    _store(
        walk,
        status=status,
        checkpoint={},
        ended_at=Now(),
        reason=why if status != HeartbeatStatus.DONE else "",
    )
    active = Agent.objects.filter(status=AgentStatus.ACTIVE)
    HeartbeatSchedule.objects.filter(agent_id=walk.agent_id).update(
        state=Case(When(agent__in=active, then=Value(ScheduleState.IDLE)), default=Value(ScheduleState.OFF)),
        attempts=0,
        lease_until=None,
        slot_at=None,
        last_error=why if status != HeartbeatStatus.DONE else "",
    )
    log.info(
        "heartbeat",
        agent=walk.agent_name,
        status=str(status),
        heartbeat_id=str(walk.heartbeat_id),
        mode=walk.checkpoint.context.get("mode", ""),
        own_ms=round(walk.own_ms, 1),
        **({"reason": why} if why else {}),
    )


def _store(walk: Walk, **values: Any) -> None:
    """Write the heartbeat's row as it stands, and the steps taken since the last time."""
    context = walk.checkpoint.context
    values |= {"own_ms": walk.own_ms, **context.get("record", {})}
    values["mode"] = context.get("mode", "")
    if walk.step is None:
        Heartbeat.objects.create(
            id=walk.heartbeat_id,
            tenant_id=walk.tenant_id,
            agent_id=walk.agent_id,
            slot_at=walk.slot_at,
            trigger=walk.trigger,
            epoch=walk.epoch,
            started_at=walk.steps[0].started_at if walk.steps else Now(),
            **values,
        )
        walk.step = 0
    else:
        walk.step += 1
        Heartbeat.objects.filter(id=walk.heartbeat_id).update(step=walk.step, **values)
    Step.objects.bulk_create(
        [
            Step(
                tenant_id=walk.tenant_id,
                heartbeat_id=walk.heartbeat_id,
                sequence=step.seq,
                node=step.node,
                handler=step.handler,
                phase=step.phase,
                outcome="waiting" if step.suspended else step.outcome,
                changed=list(step.changed),
                started_at=step.started_at,
                duration_ms=step.duration_ms,
            )
            for step in walk.steps
        ]
    )
    walk.steps.clear()


def _waiting_lease() -> timedelta:
    """Return how long a heartbeat may wait for a model: its deadline, and the time its call waits for a worker."""
    lease: timedelta = timedelta(seconds=settings.ARBOR_MODEL_DEADLINE_S) + settings.ARBOR_QUEUE_LEASE
    return lease


# --- Receipts for what did not run -------------------------------------------------------------------


def _skip(schedule: HeartbeatSchedule, *, reason: str) -> None:
    _receipt(schedule, slot_at=schedule.slot_at, reason=reason)


def _note_missed(schedule: HeartbeatSchedule, clock: Clock) -> None:
    """Leave one receipt for the beats that were due meanwhile and are run as one."""
    if schedule.slot_at is None:
        return
    late = clock.now() - schedule.slot_at
    missed = int(late / timedelta(seconds=schedule.interval_s))
    if missed:
        first = schedule.slot_at + timedelta(seconds=schedule.interval_s)
        beats = "beat" if missed == 1 else "beats"
        _receipt(schedule, slot_at=first, reason=f"{missed} {beats} fell due while no worker ran; run as one")


def _receipt(schedule: HeartbeatSchedule, *, slot_at: Any, reason: str) -> None:
    Heartbeat.objects.bulk_create(
        [
            Heartbeat(
                tenant_id=schedule.tenant_id,
                agent_id=schedule.agent_id,
                slot_at=slot_at,
                trigger=schedule.trigger,
                status=HeartbeatStatus.SKIPPED,
                epoch=schedule.epoch,
                reason=reason,
                started_at=Now(),
                ended_at=Now(),
            )
        ],
        # A worker that takes over notes the same slot again.
        ignore_conflicts=True,
    )
