"""Resolve leases to work: a heartbeat to start, one to resume, one to take over from a lost worker."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db.models.functions import Now

from apps.agents.models import HeartbeatSchedule, ScheduleState
from apps.agents.services.identity_column import IDENTITY_COLUMN, parse_identity
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.authority.services.authority_column import GRANTS_COLUMN, parse_authority
from apps.authority.services.trust_column import TRUST_COLUMN, with_trust
from apps.calls.models import CallStatus, ExternalCall
from apps.calls.services.leased_calls import execution_message
from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.heartbeats.services.legs.checkpoints import end_unloaded, waiting_lease
from apps.heartbeats.services.legs.members import (
    Lease,
    LeasedAgent,
    LeasedHeartbeat,
    LeaseToken,
    OpenHeartbeat,
)
from apps.queues import enqueue
from apps.tenants.packing import unpack
from apps.tenants.scope import current_tenant
from apps.tenants.statements import change, fetch
from arbor.agents.lifecycle import AgentStatus
from arbor.clock import Clock
from arbor.errors import ToolInterrupted
from arbor.heartbeat.needs import EndedCall
from arbor.ids import uuid7
from arbor.models.ports import CallPurpose
from arbor.quotations import counted

_CALL_ENDED = (CallStatus.COMPLETE, CallStatus.FAILED)

# Locks all rows of a batch first, in the order of ids.
_LOCK = """
SELECT s.agent_id, s.epoch, s.state, s.slot_at, s.trigger, s.interval_s, s.attempts FROM heartbeats_heartbeatschedule s
JOIN unnest(%(agents)s::uuid[], %(epochs)s::bigint[]) AS asked (agent_id, epoch)
    ON asked.agent_id = s.agent_id AND asked.epoch = s.epoch
WHERE s.tenant_id = %(tenant)s AND s.agent_id = ANY(%(agents)s::uuid[]) AND s.state IN ('queued', 'running')
ORDER BY s.agent_id FOR UPDATE OF s
"""
# A statement of its own, because the statement that waited for the lock still sees the other rows as they were before. An agent
# has one open heartbeat; LIMIT 1 makes the planner read it by its key instead of all heartbeats of the tenant.
_AGENTS_AND_HEARTBEATS = f"""
SELECT a.id, a.name, a.status, a.pipeline, a.public_id, {IDENTITY_COLUMN}, {GRANTS_COLUMN}, {TRUST_COLUMN}, h.id, h.status, h.epoch, h.step, h.slot_at, h.trigger, h.own_ms, h.elapsed_ms,
    h.checkpoint, h.situation, h.energy_end IS NOT NULL, c.id, c.status, c.reply, c.error, c.error_kind
FROM agents_agent a
LEFT JOIN LATERAL (
    SELECT id, status, epoch, step, slot_at, trigger, own_ms, elapsed_ms, checkpoint, situation, energy_end
    FROM heartbeats_heartbeat
    WHERE tenant_id = %(tenant)s AND agent_id = a.id AND status IN ('running', 'waiting') LIMIT 1
) h ON true
LEFT JOIN LATERAL (
    SELECT id, status, reply, error, error_kind FROM calls_externalcall
    WHERE tenant_id = %(tenant)s AND heartbeat_id = h.id ORDER BY requested_at DESC LIMIT 1
) c ON true
WHERE a.tenant_id = %(tenant)s AND a.id = ANY(%(agents)s::uuid[])
"""  # noqa: S608 (no external input)
_SET_RUNNING = """
UPDATE heartbeats_heartbeatschedule SET state = 'running', lease_until = now() + %(lease)s
WHERE tenant_id = %(tenant)s AND agent_id = ANY(%(agents)s::uuid[])
"""
_OPEN = """
SELECT h.* FROM unnest(%(agents)s::uuid[]) AS agent (id)
CROSS JOIN LATERAL (
    SELECT id, epoch, step, agent_id FROM heartbeats_heartbeat
    WHERE tenant_id = %(tenant)s AND agent_id = agent.id AND status IN ('running', 'waiting') LIMIT 1
) h
"""


def resolve(
    leases: Sequence[LeaseToken], *, clock: Clock, running: Collection[UUID] = ()
) -> list[LeasedHeartbeat]:
    """Lock the leases (agent, epoch) and return the heartbeats to start or resume under them, in the order of agents.

    Skips leases that are stale or need no work. Two statements. `running`: agents whose leases this worker has already
    set to running.
    """
    locked = _lock(leases)
    if not locked:
        return []
    found = _agents_and_heartbeats([lease.agent_id for lease in locked])
    due = [
        _resolve(lease, *found[lease.agent_id], clock, is_running=lease.agent_id in running)
        for lease in locked
    ]
    return [heartbeat for heartbeat in due if heartbeat is not None]


def resolve_to_end(*, agent_id: UUID, epoch: int) -> LeasedHeartbeat | None:
    """Return a leased heartbeat to end it; None if the lease is stale or the heartbeat waits for its call.

    Reads neither its graph nor its checkpoint: an error in them may be the reason to end it.
    """
    locked = _lock([(agent_id, epoch)])
    if not locked:
        return None
    agent, heartbeat = _agents_and_heartbeats([agent_id])[agent_id]
    if heartbeat is not None and heartbeat.is_waiting and heartbeat.answer is None:
        return None
    return _leased(agent, heartbeat, locked[0])


def set_running(agent_ids: Collection[UUID]) -> None:
    """Set the leases of these agents to running; a lease that expires in this state counts as an attempt."""
    change(_SET_RUNNING, agents=sorted(agent_ids), lease=settings.ARBOR_RUN_LEASE)


def set_queued_running(leases: Sequence[LeaseToken]) -> set[UUID]:
    """Set the queued ones of these leases to running; return their agents."""
    queued = {lease.agent_id for lease in _lock(leases) if lease.state == ScheduleState.QUEUED}
    if queued:
        set_running(queued)
    return queued


def fence(members: Sequence[LeasedHeartbeat]) -> list[LeasedHeartbeat]:
    """Lock the leases and check the heartbeats again; return the members that no other worker has claimed meanwhile."""
    locked = {lease.agent_id for lease in _lock([(member.agent.id, member.epoch) for member in members])}
    current = [member for member in members if member.agent.id in locked]
    if not current:
        return []
    open_heartbeats = {
        heartbeat_id: position
        for heartbeat_id, *position in fetch(_OPEN, agents=[member.agent.id for member in current])
    }
    begun = {agent_id for _, _, agent_id in open_heartbeats.values()}
    return [
        member
        for member in current
        if (
            member.agent.id not in begun
            if member.step is None
            else open_heartbeats.get(member.heartbeat_id) == [member.epoch, member.step, member.agent.id]
        )
    ]


def _lock(leases: Sequence[LeaseToken]) -> list[Lease]:
    agents, epochs = zip(*leases, strict=True)
    return [Lease(*row) for row in fetch(_LOCK, agents=list(agents), epochs=list(epochs))]


def _agents_and_heartbeats(agent_ids: Sequence[UUID]) -> dict[UUID, tuple[LeasedAgent, OpenHeartbeat | None]]:
    """Read agents, and their open heartbeats with their latest calls."""
    found: dict[UUID, tuple[LeasedAgent, OpenHeartbeat | None]] = {}
    tenant_id = current_tenant()
    tenant = str(tenant_id)
    for agent_id, name, status, pipeline, public_id, identity_text, grants, trust, *rest in fetch(
        _AGENTS_AND_HEARTBEATS, agents=list(agent_ids)
    ):
        identity = parse_identity(identity_text, public_id=public_id, tenant_id=tenant)
        agent = LeasedAgent(
            id=agent_id,
            tenant_id=tenant_id,
            name=name,
            status=status,
            pipeline=pipeline,
            identity=identity,
            authority=with_trust(parse_authority(grants, identity), trust),
        )
        heartbeat = None
        if rest[0]:
            *own, call_id, call_status, reply, error, error_kind = rest
            answer = None
            if own[1] == HeartbeatStatus.WAITING and call_status in _CALL_ENDED:
                answer = EndedCall(
                    call_id=call_id,
                    complete=call_status == CallStatus.COMPLETE,
                    text=unpack(reply),
                    error=error,
                    error_kind=error_kind,
                )
            heartbeat = OpenHeartbeat._make([*own, answer])
        found[agent_id] = agent, heartbeat
    return found


def _resolve(
    lease: Lease, agent: LeasedAgent, heartbeat: OpenHeartbeat | None, clock: Clock, *, is_running: bool
) -> LeasedHeartbeat | None:
    """Return the heartbeat to start, resume or reclaim under a lease; None if there is none, or if it is skipped or ended."""
    resumed = _resume(agent, heartbeat, lease)
    is_claimed = lease.state == ScheduleState.QUEUED or is_running
    if not is_claimed and resumed is None:
        # Only a heartbeat whose call has ended can go on; any other message is a double.
        return None
    if agent.identity.refusal:
        _refuse(lease, agent, heartbeat)
        return None
    if not is_claimed:
        return resumed
    if agent.status != AgentStatus.ACTIVE and heartbeat is None:
        _skip(lease, reason=f"the agent is {agent.status}")
        return None
    if lease.attempts >= settings.ARBOR_MAX_ATTEMPTS:
        workers = counted(lease.attempts, "worker was", "workers were")
        reason = f"given up after {workers} lost while it ran"
        end_unloaded(_leased(agent, heartbeat, lease), reason=reason)
        return None
    if heartbeat is not None:
        return _reclaim(agent, heartbeat, lease)
    _record_missed(lease, clock)
    return _leased(agent, None, lease)


def _resume(agent: LeasedAgent, heartbeat: OpenHeartbeat | None, lease: Lease) -> LeasedHeartbeat | None:
    """Return a heartbeat whose call has ended, to be resumed; None for any other."""
    if heartbeat is None or heartbeat.answer is None:
        return None
    return _leased(agent, heartbeat, lease)


def _leased(agent: LeasedAgent, heartbeat: OpenHeartbeat | None, lease: Lease) -> LeasedHeartbeat:
    return LeasedHeartbeat(
        agent=agent,
        stored=heartbeat,
        heartbeat_id=heartbeat.id if heartbeat else uuid7(),
        epoch=lease.epoch,
        slot_at=heartbeat.slot_at if heartbeat else lease.slot_at,
        trigger=heartbeat.trigger if heartbeat else lease.trigger,
        step=heartbeat.step if heartbeat else None,
        own_ms=heartbeat.own_ms if heartbeat else 0.0,
        elapsed_ms=heartbeat.elapsed_ms if heartbeat else 0.0,
        acted=heartbeat is not None and heartbeat.acted,
    )


# --- Rare cases ----------------------------------------------------------------------------------------


def _reclaim(agent: LeasedAgent, heartbeat: OpenHeartbeat, lease: Lease) -> LeasedHeartbeat | None:
    """Resume a heartbeat whose worker lost its lease."""
    if heartbeat.epoch != lease.epoch:
        Heartbeat.objects.filter(id=heartbeat.id).update(epoch=lease.epoch)
    if not heartbeat.is_waiting:
        return _leased(agent, heartbeat, lease)
    return _resume(agent, heartbeat, lease) or _enqueue_call_again(agent, heartbeat, lease)


def _enqueue_call_again(agent: LeasedAgent, heartbeat: OpenHeartbeat, lease: Lease) -> LeasedHeartbeat | None:
    """Enqueue the call of a waiting heartbeat again, which invalidates the lease of its last worker.

    A call with a valid lease is left alone, and a tool whose worker died is not called again: its call fails. A heartbeat
    whose call has ended is resumed.
    """
    call = ExternalCall.objects.select_for_update().filter(heartbeat_id=heartbeat.id).latest("requested_at")
    if call.status in _CALL_ENDED:
        _, current = _agents_and_heartbeats([agent.id])[agent.id]
        return _resume(agent, current, lease)
    waiting = waiting_lease()
    if call.status == CallStatus.RUNNING and call.lease_until and call.lease_until > datetime.now(UTC):
        waiting = call.lease_until - datetime.now(UTC) + settings.ARBOR_QUEUE_LEASE
    elif call.status == CallStatus.RUNNING and call.purpose == CallPurpose.TOOL:
        # A tool may change something, so it is called once at most.
        interrupted = ToolInterrupted()
        ExternalCall.objects.filter(id=call.id).update(
            status=CallStatus.FAILED,
            error=str(interrupted),
            error_kind=type(interrupted).__name__,
            ended_at=Now(),
            lease_until=None,
        )
        return _enqueue_call_again(agent, heartbeat, lease)
    else:
        ExternalCall.objects.filter(id=call.id).update(
            status=CallStatus.PENDING, attempts=call.attempts + 1, lease_until=None
        )
        enqueue(execution_message(call_id=call.id, tenant_id=agent.tenant_id, agent_name=agent.name))
    HeartbeatSchedule.objects.filter(agent_id=agent.id).update(
        state=ScheduleState.RUNNING, lease_until=Now() + waiting
    )
    return None


def _refuse(lease: Lease, agent: LeasedAgent, heartbeat: OpenHeartbeat | None) -> None:
    """Refuse the heartbeat of an agent whose identity is not valid: a new one is skipped, one under way ends as failed.

    The schedule is switched off; the reinstatement of the identity switches it on.
    """
    reason = agent.identity.refusal
    if heartbeat is None:
        _skip(lease, reason=reason)
    else:
        end_unloaded(_leased(agent, heartbeat, lease), reason=reason)
        HeartbeatSchedule.objects.filter(agent_id=agent.id).update(state=ScheduleState.OFF)
    record(
        action=AuditAction.REQUEST_REFUSED,
        actor="system:heartbeat",
        agent_id=agent.id,
        message=f"refused a heartbeat of {agent.name}: {reason}",
    )


def _skip(lease: Lease, *, reason: str) -> None:
    _record_skipped(lease, slot_at=lease.slot_at, reason=reason)
    HeartbeatSchedule.objects.filter(agent_id=lease.agent_id).update(
        state=ScheduleState.OFF, lease_until=None
    )


def _record_missed(lease: Lease, clock: Clock) -> None:
    """Record one skipped heartbeat for the due times that passed before this one begins.

    They passed without a worker, in a suspended tenant, during a conversation, or during a long heartbeat.
    """
    interval = timedelta(seconds=lease.interval_s)
    missed = int((clock.now() - lease.slot_at) / interval)
    if missed:
        reason = f"{counted(missed, 'heartbeat')} fell due before this one could begin; run as one"
        _record_skipped(lease, slot_at=lease.slot_at + interval, reason=reason)


def _record_skipped(lease: Lease, *, slot_at: datetime, reason: str) -> None:
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
        # A worker that reclaims the lease records it again.
        ignore_conflicts=True,
    )
