"""Metrics of the installation, read from the database without the broker, and figures of an agent's last day."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import connections
from django.db.models import Avg, F
from django.db.models.functions import Now

from apps.contacts.models import OutboxMessage
from apps.contacts.services.outbox import installation_figures
from apps.heartbeats.models import Heartbeat, HeartbeatStatus, Process
from apps.heartbeats.services.processes import fleet_model, living_processes, provider_calls
from apps.memories.services.jobs.health import read_health
from apps.queues import Queue
from apps.tenants.scope import OPS
from arbor.agents.lifecycle import AgentStatus
from arbor.heartbeat.situation import NoticeKind
from arbor.memory.maintenance.health import Metric

#: The period of the figures: counted heartbeats began in it.
WINDOW = timedelta(hours=24)

# Count per tenant, to use the index on tenant and time.
_HEARTBEATS = """
SELECT b.status, count(*) FROM tenants_tenant t CROSS JOIN LATERAL (
    SELECT status FROM heartbeats_heartbeat
    WHERE tenant_id = t.id AND started_at > now() - %s * interval '1 second' OFFSET 0
) b GROUP BY b.status
"""
# A conversation postpones the due time of its agent (`HeartbeatSchedule.due_at`). Agents of a suspended tenant are not
# claimed, so they are neither due nor lost, however long it is suspended.
_DUE = """
SELECT count(*) FILTER (WHERE idle AND due_at <= now()),
    coalesce(extract(epoch FROM now() - min(due_at) FILTER (WHERE idle AND due_at <= now())), 0),
    count(*) FILTER (WHERE state = 'queued'), count(*) FILTER (WHERE state = 'running'),
    count(*) FILTER (WHERE active AND state IN ('queued', 'running') AND lease_until < now()),
    extract(epoch FROM min(due_at) FILTER (WHERE idle) - now())
FROM (
    SELECT s.state, s.lease_until, greatest(s.next_due_at, s.paused_until) AS due_at,
        t.status = 'active' AS active, t.status = 'active' AND s.state = 'idle' AS idle
    FROM heartbeats_heartbeatschedule s JOIN tenants_tenant t ON t.id = s.tenant_id
) s
"""
_AGENTS = "SELECT status, count(*) FROM agents_agent GROUP BY status"
#: The most agents whose notices are counted.
_MAX_AGENTS_WITH_NOTICES = 10_000
# Uses the partial index of states with notices.
_NOTICES = """
SELECT notice ->> 'kind', count(*) FROM (
    SELECT notices FROM agents_agentstate WHERE NOT (notices = '[]'::jsonb) LIMIT %s
) state, jsonb_array_elements(state.notices) notice WHERE jsonb_typeof(notice) = 'object' GROUP BY 1
"""
_PENDING = """
SELECT (SELECT count(*) FROM calls_externalcall c JOIN tenants_tenant t ON t.id = c.tenant_id AND t.status = 'active'
        WHERE c.status = 'pending'),
    (SELECT count(*) FROM selves_proposal WHERE status = 'pending')
"""
# Of today (UTC), per tenant, to use the index on tenant and day.
_USAGE = """
SELECT coalesce(sum(u.calls), 0), coalesce(sum(u.tokens), 0), coalesce(sum(u.cost_usd), 0),
    count(*) FILTER (WHERE u.level <> 'normal')
FROM tenants_tenant t JOIN calls_dailyusage u ON u.tenant_id = t.id AND u.day = (now() AT TIME ZONE 'UTC')::date
"""


@dataclass(frozen=True, kw_only=True)
class HeartbeatFigures:
    """Numbers of heartbeats: ended ones that began in the last `window_h` hours, and due, queued or running ones now."""

    window_h: float
    completed: int
    failed: int
    skipped: int
    due: int
    oldest_due_s: float
    queued: int
    running: int
    lost_leases: int
    next_due_in_s: float | None


@dataclass(frozen=True, kw_only=True)
class UsageToday:
    """The usage of models today (UTC), by all agents."""

    calls: int
    tokens: int
    cost_usd: float
    #: Agents whose day's budget is low or used up.
    agents_short: int


@dataclass(frozen=True, kw_only=True)
class FleetStatus:
    """Metrics of the installation."""

    heartbeats: HeartbeatFigures
    agents: dict[str, int]
    #: The number of processes that consume each queue.
    queues: dict[str, int]
    workers: list[dict[str, Any]]
    #: The model of agents without one of their own, as the running workers have it.
    model: str
    #: By provider: calls sent at once at most, sent, and waiting for their turn.
    provider_calls: dict[str, dict[str, int]]
    backlogs: dict[str, int]
    #: `apps.memories.services.jobs.health.Health.as_json`.
    maintenance: dict[str, Any]
    #: `apps.contacts.services.outbox.OutboxFigures`.
    outbox: dict[str, Any]
    scheduler_alive: bool
    #: Numbers of agents by `arbor.heartbeat.situation.NoticeKind`, among at most 10,000 that have notices.
    notices: dict[str, int]
    usage: UsageToday
    #: Proposals that wait for a decision.
    pending_proposals: int

    def as_json(self) -> dict[str, Any]:
        """Return the metrics as a JSON object."""
        return asdict(self)


def fleet_status() -> FleetStatus:
    """Read the metrics of all tenants. Fourteen queries."""
    with connections[OPS].cursor() as cursor:
        cursor.execute(_HEARTBEATS, [WINDOW.total_seconds()])
        heartbeats: dict[str, int] = dict(cursor.fetchall())
        cursor.execute(_DUE)
        due, oldest, queued, running, lost, next_in = cursor.fetchone()
        cursor.execute(_AGENTS)
        agents = dict.fromkeys((status.value for status in AgentStatus), 0) | dict(cursor.fetchall())
        cursor.execute(_NOTICES, [_MAX_AGENTS_WITH_NOTICES])
        notices = dict.fromkeys((kind.value for kind in NoticeKind), 0) | dict(cursor.fetchall())
        cursor.execute(_PENDING)
        calls, proposals = cursor.fetchone()
        cursor.execute(_USAGE)
        usage = cursor.fetchone()
    health = read_health()
    backlogs = {figure.metric: figure.count for figure in health.figures}
    processes = living_processes()
    return FleetStatus(
        heartbeats=HeartbeatFigures(
            window_h=WINDOW / timedelta(hours=1),
            completed=heartbeats.get(HeartbeatStatus.DONE, 0),
            failed=heartbeats.get(HeartbeatStatus.FAILED, 0),
            skipped=heartbeats.get(HeartbeatStatus.SKIPPED, 0),
            due=due,
            oldest_due_s=round(max(float(oldest), 0.0), 1),
            queued=queued,
            running=running,
            lost_leases=lost,
            next_due_in_s=None if next_in is None else round(float(next_in), 1),
        ),
        agents=agents,
        queues={
            queue.value: sum(queue.value in process.queues.split(",") for process in processes)
            for queue in Queue
        },
        workers=[_worker(process) for process in processes if process.kind == "worker"],
        model=fleet_model(processes),
        provider_calls=provider_calls(processes),
        backlogs={
            "unembedded_memories": backlogs[Metric.UNEMBEDDED],
            "expired_memories": backlogs[Metric.EXPIRED],
            "pending_calls": calls,
        },
        maintenance=health.as_json(),
        outbox=asdict(installation_figures()),
        scheduler_alive=any(process.kind == "scheduler" for process in processes),
        notices=notices,
        usage=UsageToday(
            calls=int(usage[0]), tokens=int(usage[1]), cost_usd=float(usage[2]), agents_short=usage[3]
        ),
        pending_proposals=proposals,
    )


def _worker(process: Process) -> dict[str, Any]:
    return {
        "name": process.name,
        "queues": process.queues.split(","),
        "pool": process.pool,
        "concurrency": process.concurrency,
        "since": process.started_at.isoformat(),
    }


@dataclass(frozen=True, kw_only=True)
class DayFigures:
    """An agent's use of energy, and its messages, in the last 24 hours."""

    #: The mean change of energy by a heartbeat; None without a completed one, or under another budget.
    energy_delta: float | None
    #: Messages to users and to the public.
    reach_outs: int


def day_figures(agent_id: UUID) -> DayFigures:
    """Read the figures of an agent's last day."""
    heartbeats = Heartbeat.objects.filter(
        agent_id=agent_id,
        status=HeartbeatStatus.DONE,
        energy_unit="energy",
        started_at__gt=Now() - WINDOW,
    )
    delta = heartbeats.aggregate(mean=Avg(F("energy_end") - F("energy_start")))["mean"]
    messages = OutboxMessage.objects.filter(agent_id=agent_id, created_at__gt=Now() - WINDOW)
    return DayFigures(
        energy_delta=None if delta is None else round(delta, 2),
        # A message to several channels is one.
        reach_outs=len(set(messages.values_list("heartbeat_id", "content"))),
    )
