"""Read the costs of model calls in groups, and the daily budgets, from a limited number of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Avg, Case, Count, F, IntegerField, Max, Q, QuerySet, Sum, Value, When
from django.db.models.functions import TruncDay, TruncHour

from apps.agents.models import Agent, AgentPolicy
from apps.calls.models import DailyUsage, LedgerEntry
from apps.calls.services.usage import tenant_used
from apps.console.cells import dollars
from apps.console.forms import agent_choices, chosen_agent
from apps.console.pages.fleet import SAMPLE
from apps.console.pictures.bars import Bar, draw_bars
from apps.console.windows import latest_rows
from apps.tenants.models import Tenant
from apps.tenants.scope import current_tenant
from arbor.heartbeat.usage import Amounts, BudgetLevel, used_up_at
from arbor.quotations import counted

#: The choices of the page: days back, and what calls are grouped by.
DAYS: Mapping[str, str] = {"1": "24 hours", "7": "7 days", "30": "30 days"}
GROUPS: Mapping[str, str] = {"model": "model", "agent": "agent", "purpose": "purpose", "day": "day"}
GROUPS_SHOWN = 50
#: Agents shown whose budget runs low.
LOW_SHOWN = 20


@dataclass(frozen=True, kw_only=True)
class LedgerGroup:
    """The calls of one model, agent, purpose or day."""

    title: str
    agent_id: UUID | None
    calls: int
    failed: int
    retries: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    #: None where the price of no call is known.
    cost: Decimal | None
    unpriced: int
    latency_ms: float
    slowest_ms: float

    def as_row(self, by: str) -> dict[str, Any]:
        """Return the group as a row of an export; `by`, such as `model`, names the column of its title."""
        values = asdict(self)
        return {by: values.pop("title"), **values}


@dataclass(frozen=True, kw_only=True)
class BudgetLine:
    """A daily limit, the used amount, and the time when the limit is reached at the pace of today."""

    what: str
    used: Decimal | int
    limit: Decimal | int
    #: None: not today.
    ends_at: datetime | None

    @property
    def amounts(self) -> str:
        """Return the used amount and the limit as text."""
        used, limit = self.used, self.limit
        return (
            f"{dollars(used)} of {dollars(limit)}" if isinstance(limit, Decimal) else f"{used:,} of {limit:,}"
        )

    @property
    def share(self) -> float:
        """Return the used share, 0 to 1."""
        return min(1.0, float(self.used) / float(self.limit)) if self.limit else 1.0

    @property
    def tone(self) -> str:
        """Return the tone of the line, by the used share and the pace."""
        return "bad" if self.share >= 1 else "warn" if self.ends_at or self.share > 0.7 else "good"


@dataclass(frozen=True, kw_only=True)
class LedgerPage:
    """Costs in groups, their chart, and the budgets of the day."""

    agents: Sequence[tuple[str, str]]
    agent: Agent | None
    days: str
    by: str
    groups: Sequence[LedgerGroup]
    has_more_groups: bool
    total: LedgerGroup
    bars: Sequence[Bar]
    #: Whether the bars are costs; else tokens, because no price is known.
    priced: bool
    sampled: bool
    tenant_budget: Sequence[BudgetLine]
    agent_budget: Sequence[BudgetLine]
    #: The agents whose budget runs low today, the worst first.
    low: Sequence[DailyUsage]

    @property
    def export_address(self) -> str:
        """Return the beginning of the address of an export with the same choice."""
        choice = {"agent": str(self.agent.id) if self.agent else "", "days": self.days, "by": self.by}
        return f"?{urlencode(choice)}&"

    all_days = tuple(DAYS.items())
    all_groups = tuple(GROUPS.items())
    sample = SAMPLE

    @property
    def width(self) -> int:
        """Return the width of the chart."""
        return max(len(self.bars), 1) * 20


def read_ledger(parameters: Any, *, now: datetime | None = None, max_groups: int | None = None) -> LedgerPage:
    """Read the page of the current tenant for the parameters of its address, with at most `max_groups` groups; None: all."""
    now = now or datetime.now(UTC)
    days = parameters.get("days", "") if parameters.get("days", "") in DAYS else "7"
    by = parameters.get("by", "") if parameters.get("by", "") in GROUPS else "model"
    agent = chosen_agent(parameters)
    entries = _latest(now - timedelta(days=int(days)), agent)
    bars, priced = _bars(entries, now=now, days=int(days))
    total = _group("all", None, entries.aggregate(**_SUMS))
    groups = _groups(entries, by, most=None if max_groups is None else max_groups + 1)
    return LedgerPage(
        agents=agent_choices(),
        agent=agent,
        days=days,
        by=by,
        groups=groups[:max_groups],
        has_more_groups=max_groups is not None and len(groups) > max_groups,
        total=total,
        bars=bars,
        priced=priced,
        sampled=total.calls >= SAMPLE,
        tenant_budget=_tenant_budget(now),
        agent_budget=_agent_budget(agent, now) if agent else (),
        low=_low_budgets(now),
    )


def _latest(since: datetime, agent: Agent | None) -> QuerySet[LedgerEntry]:
    """Return the latest entries since then, about SAMPLE at most: more would take longer than a page may."""
    among = {} if agent is None else {"agent_id": agent.id}
    entries = LedgerEntry.objects.filter(at__gte=since, **among)
    return latest_rows(entries, order="-at", most=SAMPLE, **among)[0]


_SUMS: dict[str, Any] = {
    "calls": Count("id"),
    "failed": Count("id", filter=~Q(error_kind="")),
    "priced": Count("cost_usd"),
    "tries": Sum("tries"),
    "input": Sum("input_tokens"),
    "output": Sum("output_tokens"),
    "cached": Sum("cached_tokens"),
    "cost": Sum("cost_usd"),
    "latency": Avg("latency_ms"),
    "slowest": Max("latency_ms"),
}


def _groups(entries: QuerySet[LedgerEntry], by: str, *, most: int | None) -> list[LedgerGroup]:
    match by:
        case "agent":
            keys = ["agent_id", "agent__name"]
        case "day":
            entries, keys = entries.annotate(day=TruncDay("at", tzinfo=UTC)), ["day"]
        case "purpose":
            keys = ["purpose"]
        case _:
            keys = ["provider", "model"]
    order = F("day").desc() if by == "day" else F("cost").desc(nulls_last=True)
    rows = entries.order_by().values(*keys).annotate(**_SUMS).order_by(order, "-calls", *keys)[:most]
    return [_group(_title(by, row), row.get("agent_id"), row) for row in rows]


def _title(by: str, row: Mapping[str, Any]) -> str:
    match by:
        case "agent":
            return str(row["agent__name"])
        case "day":
            return f"{row['day']:%Y-%m-%d}"
        case "purpose":
            return str(row["purpose"])
        case _:
            model = str(row["model"])
            return model if model.startswith(f"{row['provider']}/") else f"{row['provider']}/{model}"


def _group(title: str, agent_id: UUID | None, row: Mapping[str, Any]) -> LedgerGroup:
    calls = row["calls"]
    return LedgerGroup(
        title=title,
        agent_id=agent_id,
        calls=calls,
        failed=row["failed"],
        retries=max(0, (row["tries"] or 0) - calls),
        input_tokens=row["input"] or 0,
        output_tokens=row["output"] or 0,
        cached_tokens=row["cached"] or 0,
        # Without a call nothing was paid; the sum of no row is NULL.
        cost=row["cost"] if calls else Decimal(0),
        unpriced=calls - row["priced"],
        latency_ms=row["latency"] or 0.0,
        slowest_ms=row["slowest"] or 0.0,
    )


def _bars(entries: QuerySet[LedgerEntry], *, now: datetime, days: int) -> tuple[list[Bar], bool]:
    """Return a bar for each hour or day: its cost, or its tokens where no price is known, and whether one is.

    The first bar is of the hour or day in which the time begins, so that the bars are the sum of the page.
    """
    hourly = days == 1
    step = timedelta(hours=1) if hourly else timedelta(days=1)
    last = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    last = last if hourly else last.replace(hour=0)
    starts = [last - step * back for back in range(24 if hourly else days, -1, -1)]
    truncated = TruncHour("at", tzinfo=UTC) if hourly else TruncDay("at", tzinfo=UTC)
    rows = {
        row["start"]: row
        for row in entries.order_by()
        .annotate(start=truncated)
        .values("start")
        .annotate(cost=Sum("cost_usd"), tokens=Sum(F("input_tokens") + F("output_tokens")), calls=Count("id"))
    }
    values = []
    for start in starts:
        row: Mapping[str, Any] = rows.get(start, {})
        tokens, calls = row.get("tokens") or 0, row.get("calls") or 0
        # Without a call nothing was paid; the sum of calls of unknown price is NULL.
        cost = row.get("cost") if calls else Decimal(0)
        shown = f"{start:%Y-%m-%d %H:%M} UTC" if hourly else f"{start:%Y-%m-%d}"
        title = f"{shown}: {counted(calls, 'call')}, {counted(tokens, 'token')}, {dollars(cost)}"
        values.append((float(cost or 0), float(tokens), title))
    priced = any(cost for cost, _, _ in values)
    return draw_bars([(cost if priced else tokens, title) for cost, tokens, title in values]), priced


def _tenant_budget(now: datetime) -> list[BudgetLine]:
    tenant = Tenant.objects.only("daily_heartbeats", "daily_tokens", "daily_usd").get(id=current_tenant())
    limits = Amounts(heartbeats=tenant.daily_heartbeats, tokens=tenant.daily_tokens, usd=tenant.daily_usd)
    return [] if limits == Amounts() else _lines(limits, tenant_used(), now)


def _agent_budget(agent: Agent, now: datetime) -> list[BudgetLine]:
    policy = AgentPolicy.objects.filter(agent_id=agent.id).first()
    if policy is None:
        return []
    usage = DailyUsage.objects.filter(agent_id=agent.id, day=now.astimezone(UTC).date()).first()
    used = usage or DailyUsage()
    return _lines(
        Amounts(heartbeats=policy.daily_heartbeats, tokens=policy.daily_tokens, usd=policy.daily_usd),
        Amounts(heartbeats=used.heartbeats, tokens=used.tokens, usd=Decimal(used.cost_usd)),
        now,
    )


def _lines(limits: Amounts, used: Amounts, now: datetime) -> list[BudgetLine]:
    return [
        BudgetLine(
            what=what,
            used=spent or 0,
            limit=limit,
            ends_at=used_up_at(used=float(spent or 0), limit=float(limit), now=now),
        )
        for what, limit, spent in (
            ("Heartbeats", limits.heartbeats, used.heartbeats),
            ("Tokens", limits.tokens, used.tokens),
            ("US dollars", limits.usd, used.usd),
        )
        if limit is not None
    ]


#: The severity of a budget level, in SQL.
_SEVERITY = Case(
    *(When(level=level.value, then=Value(level.rank)) for level in BudgetLevel),
    default=Value(0),
    output_field=IntegerField(),
)


def _low_budgets(now: datetime) -> list[DailyUsage]:
    """Return the usage of the agents whose budget runs low today, the worst first, LOW_SHOWN at most."""
    return list(
        DailyUsage.objects.filter(day=now.astimezone(UTC).date())
        .exclude(level=BudgetLevel.NORMAL)
        .select_related("agent")
        .only("tenant_id", "level", "heartbeats", "tokens", "cost_usd", "agent__name", "agent__tenant_id")
        .order_by(_SEVERITY.desc(), "id")[:LOW_SHOWN]
    )
