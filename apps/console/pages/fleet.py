"""Read the first page of a tenant by a fixed number of queries, each over a limited number of rows or over the processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db.models import Count, Min, QuerySet, Sum
from django.db.models.functions import Now
from django.utils import timezone

from apps.agents.models import DUE_AT, Agent, HeartbeatSchedule
from apps.agents.services.energy import energy_terms_of
from apps.authority.services.approvals import expired_undecided
from apps.calls.models import DailyUsage, LedgerEntry
from apps.console.pages.models import default_of_tenant
from apps.console.pictures.hours import Hour, draw_hours
from apps.contacts.services.outbox import OutboxFigures, outbox_figures
from apps.heartbeats.models import Heartbeat, HeartbeatStatus, Process
from apps.heartbeats.services.processes import SILENT_AFTER, fleet_model
from apps.heartbeats.services.reports.hourly_counts import count_by_hour
from apps.tools.models import Tool
from arbor.agents.lifecycle import AgentStatus
from arbor.heartbeat.usage import BudgetLevel
from arbor.models.handles import is_reflex
from arbor.tools.status import SUSPENDED

WINDOW = timedelta(hours=24)
#: Figures are computed from the latest rows, this number at most: 100,000 agents write too many rows in a day.
SAMPLE = 20_000
RECENT_HEARTBEATS = 12
#: Agents whose last heartbeats are drawn, and heartbeats drawn of each.
STRIPS = 8
CELLS = 40


@dataclass(frozen=True, kw_only=True)
class Strip:
    """An agent and its last heartbeats, oldest first."""

    agent: Agent
    heartbeats: Sequence[Heartbeat]

    @property
    def latest(self) -> Heartbeat:
        """Return the last heartbeat."""
        return self.heartbeats[-1]

    @property
    def energy_max(self) -> float:
        """Return the maximum of the agent's energy."""
        return energy_terms_of(self.agent).maximum


@dataclass(frozen=True, kw_only=True)
class FleetPage:
    """The first page of a tenant."""

    #: The numbers of agents by status.
    agents: dict[str, int]
    #: The numbers of heartbeats of the last 24 hours by status.
    heartbeats: dict[str, int]
    hours: Sequence[Hour]
    #: Whether the heartbeats are the newest SAMPLE only.
    sampled: bool
    due: int
    oldest_due: datetime | None
    under_way: int
    input_tokens: int
    output_tokens: int
    calls: int
    cost: Decimal | None
    unpriced: int
    processes: Sequence[Process]
    silent: int
    model: str
    recent: Sequence[Heartbeat]
    strips: Sequence[Strip]
    outbox: OutboxFigures
    #: Tools that their servers have changed or removed since they were allowed.
    suspended_tools: int
    #: Requests for approval that expired in the last 24 hours without a decision.
    undecided: int
    #: The numbers of agents whose daily budget runs low, and of halted ones among them.
    low_budget: int
    halted: int

    #: The most heartbeats, calls and due agents that are counted.
    sample = SAMPLE

    @property
    def calls_sampled(self) -> bool:
        """Return whether tokens and cost are those of the newest SAMPLE calls only."""
        return self.calls == SAMPLE

    @property
    def due_sampled(self) -> bool:
        """Return whether more agents may be due than were counted."""
        return self.due == SAMPLE

    @property
    def under_way_sampled(self) -> bool:
        """Return whether more heartbeats may be under way than were counted."""
        return self.under_way == SAMPLE

    @property
    def agent_count(self) -> int:
        """Return the number of agents."""
        return sum(self.agents.values())

    @property
    def active(self) -> int:
        """Return the number of active agents."""
        return self.agents.get(AgentStatus.ACTIVE, 0)

    @property
    def done(self) -> int:
        """Return the number of completed heartbeats."""
        return self.heartbeats.get(HeartbeatStatus.DONE, 0)

    @property
    def failed(self) -> int:
        """Return the number of failed heartbeats."""
        return self.heartbeats.get(HeartbeatStatus.FAILED, 0)

    @property
    def skipped(self) -> int:
        """Return the number of skipped heartbeats."""
        return self.heartbeats.get(HeartbeatStatus.SKIPPED, 0)

    @property
    def is_reflex(self) -> bool:
        """Return whether agents without a model of their own decide by the reflex policy."""
        return is_reflex(self.model)


def read_fleet() -> FleetPage:
    """Read the current tenant's fleet."""
    now = timezone.now()
    agents = dict(Agent.objects.order_by().values_list("status").annotate(Count("id")))
    heartbeats, hours, sampled = _heartbeats_of_day(now)
    due = (
        due_schedules(now)
        .order_by("next_due_at")[:SAMPLE]
        .aggregate(count=Count("pk"), oldest=Min("claimable_at"))
    )
    spent = _spent(now)
    levels = _count_low_budgets()
    # All rows, which `delete_silent_rows` bounds: without the last ones, a living scheduler or worker would be missed.
    processes = list(Process.objects.defer("calls").order_by("kind", "name"))
    alive = [process for process in processes if process.seen_at >= now - SILENT_AFTER]
    recent = list(_heartbeats().order_by("-started_at", "-id")[:RECENT_HEARTBEATS])
    return FleetPage(
        agents=agents,
        heartbeats=heartbeats,
        hours=hours,
        sampled=sampled,
        due=due["count"],
        oldest_due=due["oldest"],
        under_way=HeartbeatSchedule.objects.filter(in_flight=True)[:SAMPLE].count(),
        processes=alive,
        silent=len(processes) - len(alive),
        model=default_of_tenant() or fleet_model(alive),
        recent=recent,
        strips=_strips(recent),
        outbox=outbox_figures(),
        low_budget=sum(levels.values()),
        halted=levels[BudgetLevel.HALT.value],
        suspended_tools=Tool.objects.filter(status__in=SUSPENDED).order_by()[:SAMPLE].count(),
        undecided=expired_undecided(since=now - WINDOW, now=now).order_by()[:SAMPLE].count(),
        **spent,
    )


def due_schedules(now: datetime | Now) -> QuerySet[HeartbeatSchedule]:
    """Return the schedules of agents that are due and not claimed, with their due time as `claimable_at`."""
    # `next_due_at` is repeated because it has an index; `DUE_AT` excludes agents in a conversation.
    schedules: QuerySet[HeartbeatSchedule] = HeartbeatSchedule.objects.annotate(claimable_at=DUE_AT).filter(
        in_flight=False, next_due_at__lte=now, claimable_at__lte=now
    )
    return schedules


def _count_low_budgets() -> Counter[str]:
    """Count the agents whose daily budget runs low, by level."""
    return Counter(
        DailyUsage.objects.filter(day=datetime.now(UTC).date())
        .exclude(level=BudgetLevel.NORMAL)
        .order_by()
        .values_list("level", flat=True)[:SAMPLE]
    )


def _heartbeats() -> QuerySet[Heartbeat]:
    """Return heartbeats without their wide columns."""
    heartbeats: QuerySet[Heartbeat] = Heartbeat.objects.select_related("agent").only(
        "tenant_id",
        "number",
        "status",
        "mode",
        "trigger",
        "started_at",
        "ended_at",
        "own_ms",
        "model",
        "reason",
        "narrative",
        "energy_start",
        "energy_end",
        "energy_unit",
        "agent__name",
        "agent__tenant_id",
    )
    return heartbeats


def _heartbeats_of_day(now: datetime) -> tuple[dict[str, int], list[Hour], bool]:
    counts = count_by_hour(since=now - WINDOW, most=SAMPLE)
    last = now.replace(minute=0, second=0, microsecond=0)
    # The first bar is of the hour in which the time begins, so that the bars have all counted heartbeats.
    starts = [last - timedelta(hours=back) for back in range(int(WINDOW / timedelta(hours=1)), -1, -1)]
    return dict(counts.total), draw_hours(starts, counts.by_hour), counts.total.total() == SAMPLE


def _spent(now: datetime) -> dict[str, Any]:
    latest = LedgerEntry.objects.filter(at__gte=now - WINDOW).order_by("-at")[:SAMPLE]
    sums = latest.aggregate(
        calls=Count("id"),
        priced=Count("cost_usd"),
        cost=Sum("cost_usd"),
        input=Sum("input_tokens"),
        output=Sum("output_tokens"),
    )
    return {
        "calls": sums["calls"],
        "cost": sums["cost"],
        "unpriced": sums["calls"] - sums["priced"],
        "input_tokens": sums["input"] or 0,
        "output_tokens": sums["output"] or 0,
    }


def _strips(recent: Sequence[Heartbeat]) -> list[Strip]:
    """Return the last heartbeats of the most recently active agents, filled up with others. Three queries at most."""
    agent_ids = list(dict.fromkeys(heartbeat.agent_id for heartbeat in recent))[:STRIPS]
    agents = Agent.objects.select_related("state", "schedule", "policy", "tenant").only(
        "tenant__energy",
        "name",
        "status",
        "model",
        "state__tenant_id",
        "state__energy",
        "state__heartbeats",
        "policy__tenant_id",
        "policy__energy",
        "schedule__tenant_id",
        "schedule__next_due_at",
        "schedule__paused_until",
        "schedule__state",
    )
    shown = list(agents.filter(id__in=agent_ids)) if agent_ids else []
    if len(shown) < STRIPS:
        shown += list(agents.exclude(id__in=agent_ids).order_by("name")[: STRIPS - len(shown)])
    heartbeats = last_heartbeats([agent.id for agent in shown], limit=CELLS)
    place = {agent_id: position for position, agent_id in enumerate(agent_ids)}
    shown.sort(key=lambda agent: (place.get(agent.id, STRIPS), agent.name))
    return [Strip(agent=agent, heartbeats=heartbeats.get(agent.id, [])) for agent in shown]


def last_heartbeats(agent_ids: Sequence[UUID], *, limit: int) -> dict[UUID, list[Heartbeat]]:
    """Return the last heartbeats of each agent, `limit` at most, oldest first. One query, through the index by agent."""
    if not agent_ids:
        return {}
    parts = [
        Heartbeat.objects.filter(agent_id=agent_id)
        .order_by("-started_at")
        .only("tenant_id", "agent_id", "number", "status", "mode", "started_at", "reason")[:limit]
        for agent_id in agent_ids
    ]
    rows = parts[0].union(*parts[1:], all=True) if len(parts) > 1 else parts[0]
    by_agent: dict[UUID, list[Heartbeat]] = {}
    for heartbeat in rows:
        by_agent.setdefault(heartbeat.agent_id, []).append(heartbeat)
    for heartbeats in by_agent.values():
        heartbeats.sort(key=lambda heartbeat: heartbeat.started_at)
    return by_agent
