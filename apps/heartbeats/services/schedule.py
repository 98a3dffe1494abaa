"""Schedule heartbeats: claim due agents, reclaim expired leases, claim one agent now."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.db import connections, transaction
from django.db.models import F
from django.db.models.functions import Now

from apps.agents.models import Agent, HeartbeatSchedule, ScheduleState, Trigger
from apps.agents.services.identity import identity_of
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.queues import Task, TaskMessage, enqueue
from apps.tenants.models import TenantStatus
from apps.tenants.scope import OPS, current_tenant
from arbor.agents.lifecycle import AgentStatus
from arbor.errors import AgentDormant, AgentNotActive, NotFound, TransitionIllegal

#: While claimed agents wait for a worker, due agents are claimed after this time, so that they share a batch.
BATCH_DELAY = timedelta(seconds=1)
#: The random share of the interval by which due times are shifted, to spread the agents.
JITTER = 0.05

# The name is read by its key for each agent: in a join, the planner, which expects many agents, would read all of them.
_RETURNING = """RETURNING s.agent_id, s.tenant_id, s.epoch,
    (SELECT name FROM agents_agent a WHERE a.tenant_id = s.tenant_id AND a.id = s.agent_id)"""

# The first agents of each tenant, in a random order of tenants, so that none starves. MATERIALIZED prevents the planner from
# running a limited subselect twice, which would claim more rows than the limit.
_CLAIM_DUE = f"""
WITH tenants AS MATERIALIZED (
    SELECT id FROM tenants_tenant WHERE status = %(active)s {{of_tenants}} ORDER BY (id < %(pivot)s), id
), due AS MATERIALIZED (
    SELECT s.tenant_id, s.agent_id FROM tenants t CROSS JOIN LATERAL (
        SELECT tenant_id, agent_id FROM heartbeats_heartbeatschedule
        WHERE tenant_id = t.id AND NOT in_flight AND next_due_at <= now()
            AND (paused_until IS NULL OR paused_until <= now())
        ORDER BY next_due_at LIMIT %(per_tenant)s FOR UPDATE SKIP LOCKED
    ) s LIMIT %(budget)s
)
UPDATE heartbeats_heartbeatschedule s
SET state = 'queued', epoch = s.epoch + 1, slot_at = s.next_due_at, trigger = s.next_trigger,
    next_trigger = 'timer',
    lease_until = now() + %(lease)s * interval '1 second',
    next_due_at = greatest(now(), s.next_due_at)
        + s.interval_s * (1 - %(jitter)s + 2 * %(jitter)s * random()) * interval '1 second'
FROM due WHERE s.tenant_id = due.tenant_id AND s.agent_id = due.agent_id
{_RETURNING}
"""  # noqa: S608 (no external input)
_CLAIM_DUE_OF_ALL = _CLAIM_DUE.format(of_tenants="")
_CLAIM_DUE_OF_SOME = _CLAIM_DUE.format(of_tenants="AND id = ANY(%(tenants)s::uuid[])")

# A lease that expired while running counts as an attempt; one that expired in the queue, or while its call waited for a
# worker or a model, does not.
_RECLAIM_LOST = f"""
WITH lost AS MATERIALIZED (
    SELECT s.tenant_id, s.agent_id FROM heartbeats_heartbeatschedule s
    JOIN tenants_tenant t ON t.id = s.tenant_id AND t.status = %(active)s
    WHERE s.in_flight AND s.lease_until < now()
    ORDER BY s.lease_until LIMIT %(budget)s FOR UPDATE OF s SKIP LOCKED
)
UPDATE heartbeats_heartbeatschedule s
SET state = 'queued', epoch = s.epoch + 1, lease_until = now() + %(lease)s * interval '1 second',
    attempts = s.attempts + (s.state = 'running' AND (
        SELECT true FROM heartbeats_heartbeat h
        JOIN calls_externalcall c ON c.tenant_id = h.tenant_id AND c.heartbeat_id = h.id
        WHERE h.tenant_id = s.tenant_id AND h.agent_id = s.agent_id AND h.status = 'waiting'
            AND c.status IN ('pending', 'running') LIMIT 1
    ) IS NULL)::int
FROM lost WHERE s.tenant_id = lost.tenant_id AND s.agent_id = lost.agent_id
{_RETURNING}
"""  # noqa: S608 (no external input)

# The agents that are due longest. The statement has no parameter: for an unknown value, the planner expects many agents to be due, and
# reads the whole table to find the first.
_LONGEST_DUE = """
SELECT count(*), max(now() - next_due_at), array_agg(DISTINCT tenant_id) FROM (
    SELECT tenant_id, next_due_at FROM heartbeats_heartbeatschedule
    WHERE NOT in_flight AND next_due_at <= now() AND (paused_until IS NULL OR paused_until <= now())
    ORDER BY next_due_at LIMIT {most}
) due
"""
# Agents under valid leases, under expired ones, and all that wait for a worker.
_IN_FLIGHT = """
SELECT count(*) FILTER (WHERE lease_until >= now()), count(*) FILTER (WHERE lease_until < now()),
    count(*) FILTER (WHERE state = 'queued')
FROM heartbeats_heartbeatschedule WHERE in_flight
"""


@dataclass(frozen=True, kw_only=True)
class DispatchCounts:
    """Numbers of agents that one run of the dispatcher claimed."""

    due: int = 0
    lost: int = 0


def dispatch() -> DispatchCounts:
    """Claim due agents and expired leases, and enqueue them. Any number of dispatchers may run at once."""
    with transaction.atomic(using=OPS), connections[OPS].cursor() as cursor:
        cursor.execute(_IN_FLIGHT)
        leased, expired, queued = cursor.fetchone()
        lost = (
            _run(cursor, _RECLAIM_LOST, budget=settings.ARBOR_CLAIM_BATCH, active=TenantStatus.ACTIVE.value)
            if expired
            else []
        )
        due = _claim_due(
            cursor, room=settings.ARBOR_MAX_IN_FLIGHT - leased - len(lost), others_wait=bool(queued or lost)
        )
        messages = [
            advance_message(agent_id=agent_id, tenant_id=tenant_id, epoch=epoch, name=name, lost=was_lost)
            for rows, was_lost in ((lost, True), (due, False))
            for agent_id, tenant_id, epoch, name in rows
        ]
        enqueue(*messages, using=OPS)
    return DispatchCounts(due=len(due), lost=len(lost))


def _claim_due(cursor: Any, *, room: int, others_wait: bool) -> list[tuple[UUID, UUID, int, str]]:
    """Claim due agents. While others wait for a worker, agents are claimed once one is due for BATCH_DELAY."""
    budget = min(settings.ARBOR_CLAIM_BATCH, room)
    if budget <= 0:
        return []
    cursor.execute(_LONGEST_DUE.format(most=settings.ARBOR_CLAIM_BATCH + 1))
    due, longest, tenants = cursor.fetchone()
    if not due or (others_wait and longest < BATCH_DELAY):
        return []
    # Tenants without due agents, of which there may be many thousands, are left out where all due agents were counted.
    all_counted = due <= settings.ARBOR_CLAIM_BATCH
    return _run(
        cursor,
        _CLAIM_DUE_OF_SOME if all_counted else _CLAIM_DUE_OF_ALL,
        **({"tenants": tenants} if all_counted else {}),
        budget=budget,
        per_tenant=min(settings.ARBOR_TENANT_CLAIM_LIMIT, budget),
        pivot=uuid4(),
        jitter=JITTER,
        active=TenantStatus.ACTIVE.value,
    )


def _run(cursor: Any, statement: str, **parameters: Any) -> list[tuple[UUID, UUID, int, str]]:
    cursor.execute(statement, {**parameters, "lease": settings.ARBOR_QUEUE_LEASE.total_seconds()})
    rows: list[tuple[UUID, UUID, int, str]] = cursor.fetchall()
    return rows


def advance_message(
    *, agent_id: UUID, tenant_id: UUID, epoch: int, name: str, lost: bool = False
) -> TaskMessage:
    """Return the message to run an agent's heartbeat; `lost` if its last worker lost the lease."""
    return TaskMessage(
        task=Task.ADVANCE,
        tenant_id=tenant_id,
        arguments={"agent_id": str(agent_id), "epoch": epoch, **({"lost": True} if lost else {})},
        shown=f"agent={name} ({agent_id}) epoch={epoch}",
        # Run it alone, as it may have killed its last worker.
        alone=lost,
    )


def first_due(*, agent_id: UUID, now: datetime, interval: timedelta) -> datetime:
    """Return the first due time of a started agent: a phase of its interval derived from its id."""
    phase = zlib.crc32(agent_id.bytes) / 2**32
    return now + interval * phase


def create_schedules(*, intervals: Mapping[Agent, timedelta], now: datetime) -> None:
    """Create the schedules of new agents with these intervals, off until the agents start. One statement."""
    HeartbeatSchedule.objects.bulk_create(
        [
            HeartbeatSchedule(
                tenant_id=agent.tenant_id, agent=agent, next_due_at=now, interval_s=interval.total_seconds()
            )
            for agent, interval in intervals.items()
        ]
    )


def switch_on(*, agent_id: UUID, now: datetime) -> None:
    """Set the schedule of a started or resumed agent to idle, due at the phase of its interval; leave one that is on."""
    schedule = HeartbeatSchedule.objects.select_for_update().get(agent_id=agent_id)
    if schedule.state != ScheduleState.OFF:
        return
    interval = timedelta(seconds=schedule.interval_s)
    schedule.state = ScheduleState.IDLE
    schedule.next_due_at = first_due(agent_id=agent_id, now=now, interval=interval)
    schedule.attempts = 0
    schedule.save(update_fields=["state", "next_due_at", "attempts"])


def switch_off(*, agent_id: UUID) -> None:
    """Set an idle schedule to off, so that no heartbeat is claimed.

    A running heartbeat runs to its end; a claimed one that has not begun is recorded as skipped.
    """
    HeartbeatSchedule.objects.filter(agent_id=agent_id, state=ScheduleState.IDLE).update(
        state=ScheduleState.OFF, slot_at=None
    )


def claim_now(*, agent_id: UUID, trigger: Trigger = Trigger.OPERATOR) -> int:
    """Claim the agent for a heartbeat now and enqueue it; return the epoch of the lease.

    Raises NotFound, and TransitionIllegal if the agent is not active or its heartbeat is under way.
    """
    agent = _require_active(agent_id)
    claimed = HeartbeatSchedule.objects.filter(agent_id=agent_id, state=ScheduleState.IDLE).update(
        state=ScheduleState.QUEUED,
        epoch=F("epoch") + 1,
        slot_at=Now(),
        next_due_at=Now() + F("interval_s") * timedelta(seconds=1),
        trigger=trigger,
        next_trigger=Trigger.TIMER,
        lease_until=Now() + settings.ARBOR_QUEUE_LEASE,
    )
    schedule = HeartbeatSchedule.objects.get(agent_id=agent_id)
    if not claimed:
        raise _claim_error(agent, schedule)
    epoch: int = schedule.epoch
    enqueue(advance_message(agent_id=agent_id, tenant_id=current_tenant(), epoch=epoch, name=agent.name))
    return epoch


def request_heartbeat(*, agent_id: UUID, actor: str) -> int:
    """Claim the agent for a heartbeat now on behalf of an actor; return the epoch of the lease. Raises as `claim_now` does."""
    epoch = claim_now(agent_id=agent_id)
    record(
        action=AuditAction.OPERATOR_ACT,
        actor=actor,
        agent_id=agent_id,
        message="asked for a heartbeat now",
    )
    return epoch


def require_claimable(*, agent_id: UUID) -> None:
    """Raise the errors of `claim_now`: NotFound, and TransitionIllegal if the agent cannot be claimed."""
    agent = _require_active(agent_id)
    schedule = HeartbeatSchedule.objects.get(agent_id=agent_id)
    if schedule.state != ScheduleState.IDLE:
        raise _claim_error(agent, schedule)


def _require_active(agent_id: UUID) -> Agent:
    agent: Agent | None = Agent.objects.select_related("tenant").filter(id=agent_id).first()
    if agent is None:
        raise NotFound(f"there is no agent {agent_id} in this tenant")
    if agent.tenant.status != TenantStatus.ACTIVE:
        raise AgentNotActive(f"the tenant {agent.tenant.slug} is suspended; resume it first")
    if agent.status != AgentStatus.ACTIVE:
        dormant = agent.status == AgentStatus.DORMANT
        raise (AgentDormant if dormant else AgentNotActive)(
            f"{agent.name} is {agent.status}; only an active agent has heartbeats: start or resume it first"
        )
    return agent


def _claim_error(agent: Agent, schedule: HeartbeatSchedule) -> TransitionIllegal:
    """Return the error for an agent whose schedule is not idle: its identity is refused, it was paused, or a heartbeat is under way."""
    if refusal := identity_of(agent.id).refusal:
        return TransitionIllegal(f"{agent.name} has no heartbeats: {refusal}")
    if schedule.state == ScheduleState.OFF:
        return TransitionIllegal(f"{agent.name} was paused or stopped meanwhile; start or resume it first")
    return TransitionIllegal(
        f"a heartbeat of {agent.name} is under way already (state {schedule.state}); wait for its end"
    )
