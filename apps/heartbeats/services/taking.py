"""What there is to do under a lease: a heartbeat to begin, one to go on with, one to take over from a lost worker."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models.functions import Now

from apps.heartbeats.models import (
    CallStatus,
    ExternalCall,
    Heartbeat,
    HeartbeatSchedule,
    HeartbeatStatus,
    ScheduleState,
)
from apps.heartbeats.services.schedule import fulfil_message
from apps.heartbeats.services.storing import finish, waiting_lease
from apps.heartbeats.services.values import (
    LastCall,
    Lease,
    OpenBeat,
    Walk,
    Walker,
    ending_walk,
    new_walk,
    stored_walk,
)
from apps.queues import enqueue
from apps.tenants.scope import current_tenant
from apps.tenants.statements import fetch
from arbor.agents.lifecycle import AgentStatus
from arbor.clock import Clock

_LOCK = """
SELECT state, slot_at, trigger, interval_s, attempts FROM heartbeats_heartbeatschedule
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND epoch = %(epoch)s AND state IN ('queued', 'running')
FOR UPDATE
"""
# Not joined with the lock: a statement that has waited for a lock still sees the other rows as they were before.
_AGENT_AND_BEAT = """
SELECT a.name, a.status, a.pipeline, h.id, h.status, h.epoch, h.step, h.slot_at, h.trigger, h.own_ms, h.checkpoint,
    h.situation, h.energy_end IS NOT NULL, c.id, c.status, c.reply, c.error, c.error_kind
FROM agents_agent a LEFT JOIN heartbeats_heartbeat h
    ON h.tenant_id = a.tenant_id AND h.agent_id = a.id AND h.status IN ('running', 'waiting')
LEFT JOIN LATERAL (
    SELECT id, status, reply, error, error_kind FROM heartbeats_externalcall
    WHERE tenant_id = %(tenant)s AND heartbeat_id = h.id ORDER BY requested_at DESC LIMIT 1
) c ON true
WHERE a.tenant_id = %(tenant)s AND a.id = %(agent)s
"""
_RUN = f"""
WITH run AS (
    UPDATE heartbeats_heartbeatschedule SET state = 'running', lease_until = now() + %(lease)s
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s
)
{_AGENT_AND_BEAT}
"""  # noqa: S608 (our own words)


def take(*, agent_id: UUID, epoch: int, clock: Clock) -> Walk | None:
    """Find out what there is to do under this lease; None when there is nothing."""
    lease = _lock(agent_id, epoch)
    if lease is None:
        return None
    queued = lease.state == ScheduleState.QUEUED
    agent, beat = _agent_and_beat(agent_id, run=queued)
    if not queued:
        # The call it waits for has ended; anything else is a doubled message.
        return _resume(agent, beat, lease) if beat and beat.status == HeartbeatStatus.WAITING else None
    if agent.status != AgentStatus.ACTIVE and beat is None:
        _skip(lease, reason=f"the agent is {agent.status}")
        return None
    if lease.attempts >= settings.ARBOR_MAX_ATTEMPTS:
        reason = f"given up after {lease.attempts} workers were lost while it ran"
        finish(ending_walk(agent, beat, lease), HeartbeatStatus.FAILED, reason=reason)
        return None
    if beat is not None:
        return _take_over(agent, beat, lease)
    _note_missed(lease, clock)
    return new_walk(agent, lease)


def retake(*, agent_id: UUID, epoch: int) -> Walk | None:
    """Take once more what this worker has held, only to end it; None when it is not its own, or waits for its call.

    Neither its graph nor its checkpoint is read: a fault in them is among the reasons to end it.
    """
    lease = _lock(agent_id, epoch)
    if lease is None:
        return None
    agent, beat = _agent_and_beat(agent_id)
    if beat is not None and beat.status == HeartbeatStatus.WAITING and not beat.call.has_ended:
        return None
    return ending_walk(agent, beat, lease)


def _lock(agent_id: UUID, epoch: int) -> Lease | None:
    rows = fetch(_LOCK, agent=agent_id, epoch=epoch)
    if not rows:
        return None
    state, slot_at, trigger, interval_s, attempts = rows[0]
    return Lease(
        agent_id=agent_id,
        epoch=epoch,
        state=state,
        slot_at=slot_at,
        trigger=trigger,
        interval_s=interval_s,
        attempts=attempts,
    )


def _agent_and_beat(agent_id: UUID, *, run: bool = False) -> tuple[Walker, OpenBeat | None]:
    """Read the agent, and its open heartbeat with its latest call; `run` has the lease run from now on."""
    if run:
        rows = fetch(_RUN, agent=agent_id, lease=settings.ARBOR_RUN_LEASE)
    else:
        rows = fetch(_AGENT_AND_BEAT, agent=agent_id)
    ((name, status, pipeline, *beat),) = rows
    agent = Walker(id=agent_id, tenant_id=current_tenant(), name=name, status=status, pipeline=pipeline)
    if not beat[0]:
        return agent, None
    *own, call_id, call_status, reply, error, error_kind = beat
    call = LastCall(id=call_id, status=call_status, reply=reply, error=error, error_kind=error_kind)
    return agent, OpenBeat(**dict(zip(_BEAT, own, strict=True)), call=call)


_BEAT = ("id", "status", "epoch", "step", "slot_at", "trigger", "own_ms", "checkpoint", "situation", "acted")


def _resume(agent: Walker, beat: OpenBeat, lease: Lease) -> Walk | None:
    """Go on with a heartbeat whose call has ended; None while it has not."""
    call = beat.call
    if not call.has_ended:
        return None
    walk = stored_walk(agent, beat, epoch=lease.epoch)
    walk.result = {
        "call_id": str(call.id),
        "status": call.status,
        "text": call.reply,
        "error": call.error,
        "error_kind": call.error_kind,
    }
    return walk


# --- What is rare --------------------------------------------------------------------------------------


def _take_over(agent: Walker, beat: OpenBeat, lease: Lease) -> Walk | None:
    """Go on with a heartbeat whose worker lost its lease."""
    Heartbeat.objects.filter(id=beat.id).update(epoch=lease.epoch)
    if beat.status != HeartbeatStatus.WAITING:
        return stored_walk(agent, beat, epoch=lease.epoch)
    return _resume(agent, beat, lease) or _ask_again(agent, beat, lease)


def _ask_again(agent: Walker, beat: OpenBeat, lease: Lease) -> Walk | None:
    """Hand out the call of a waiting heartbeat once more; whoever had it can no longer store a reply.

    A call that a worker still has is left to it; one that has ended meanwhile is gone on with.
    """
    call = ExternalCall.objects.select_for_update().filter(heartbeat_id=beat.id).latest("requested_at")
    if call.status in (CallStatus.COMPLETE, CallStatus.FAILED):
        return _resume(*_now(agent), lease)
    waiting = waiting_lease()
    if call.status == CallStatus.RUNNING and call.lease_until and call.lease_until > datetime.now(UTC):
        waiting = call.lease_until - datetime.now(UTC) + settings.ARBOR_QUEUE_LEASE
    else:
        ExternalCall.objects.filter(id=call.id).update(
            status=CallStatus.PENDING, attempts=call.attempts + 1, lease_until=None
        )
        enqueue(fulfil_message(call_id=call.id, tenant_id=agent.tenant_id, agent_name=agent.name))
    HeartbeatSchedule.objects.filter(agent_id=agent.id).update(lease_until=Now() + waiting)
    return None


def _now(agent: Walker) -> tuple[Walker, OpenBeat]:
    """Read the open heartbeat anew: its call has ended since it was read."""
    walker, beat = _agent_and_beat(agent.id)
    assert beat is not None
    return walker, beat


def _skip(lease: Lease, *, reason: str) -> None:
    _leave_receipt(lease, slot_at=lease.slot_at, reason=reason)
    HeartbeatSchedule.objects.filter(agent_id=lease.agent_id).update(
        state=ScheduleState.OFF, lease_until=None
    )


def _note_missed(lease: Lease, clock: Clock) -> None:
    """Leave one receipt for the beats that were due meanwhile and are run as one."""
    interval = timedelta(seconds=lease.interval_s)
    missed = int((clock.now() - lease.slot_at) / interval)
    if missed:
        beats = "beat" if missed == 1 else "beats"
        reason = f"{missed} {beats} fell due while no worker ran; run as one"
        _leave_receipt(lease, slot_at=lease.slot_at + interval, reason=reason)


def _leave_receipt(lease: Lease, *, slot_at: Any, reason: str) -> None:
    Heartbeat.objects.bulk_create(
        [
            Heartbeat(
                tenant_id=current_tenant(),
                agent_id=lease.agent_id,
                slot_at=slot_at,
                trigger=lease.trigger,
                status=HeartbeatStatus.SKIPPED,
                epoch=lease.epoch,
                reason=reason,
                started_at=Now(),
                ended_at=Now(),
            )
        ],
        # A worker that takes over notes the same slot again.
        ignore_conflicts=True,
    )
