"""Daily usage of agents and tenants, and budget levels."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from apps.calls.models import DailyUsage
from apps.tenants.scope import current_tenant
from apps.tenants.statements import fetch
from arbor.heartbeat.usage import Amounts, BudgetLevel, NearestLimit, level_of, nearest_limit
from arbor.ids import uuid7

#: Seconds for which a process caches a tenant's sum; a row per tenant would be contended.
TENANT_SUM_CACHED_S = 10.0

_TENANT_SUM = """
SELECT (now() AT TIME ZONE 'UTC')::date, coalesce(sum(heartbeats), 0), coalesce(sum(tokens), 0), coalesce(sum(cost_usd), 0)
FROM calls_dailyusage
WHERE tenant_id = %(tenant)s AND day = (now() AT TIME ZONE 'UTC')::date
"""
_DAY = """
SELECT p.daily_heartbeats, p.daily_tokens, p.daily_usd, t.daily_heartbeats, t.daily_tokens, t.daily_usd,
    coalesce(u.heartbeats, 0), coalesce(u.tokens, 0), coalesce(u.cost_usd, 0)
FROM agents_agent a JOIN tenants_tenant t ON t.id = a.tenant_id
LEFT JOIN agents_agentpolicy p ON p.tenant_id = a.tenant_id AND p.agent_id = a.id
LEFT JOIN calls_dailyusage u
    ON u.tenant_id = a.tenant_id AND u.agent_id = a.id AND u.day = (now() AT TIME ZONE 'UTC')::date
WHERE a.tenant_id = %(tenant)s AND a.id = %(agent)s
"""
_WRITE_LEVELS = """
INSERT INTO calls_dailyusage (tenant_id, id, agent_id, day, level)
SELECT %(tenant)s, r.id, r.agent, (now() AT TIME ZONE 'UTC')::date, r.level
FROM unnest(%(ids)s::uuid[], %(agents)s::uuid[], %(levels)s::text[]) AS r (id, agent, level) ORDER BY r.agent
ON CONFLICT (tenant_id, agent_id, day) DO UPDATE SET level = excluded.level
WHERE calls_dailyusage.level <> excluded.level
RETURNING agent_id
"""
_sums: dict[UUID, tuple[float, date, Amounts]] = {}


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Daily limits of an agent and its tenant; `of_tenant` is None for a tenant without limits."""

    own: Amounts
    of_tenant: Amounts | None


@dataclass(frozen=True, kw_only=True)
class BudgetStatus:
    """The budget level, and the amount of which the least is left."""

    level: BudgetLevel = BudgetLevel.NORMAL
    nearest: NearestLimit | None = None


def budget_status(limits: Limits, used: Amounts) -> BudgetStatus:
    """Compare usage with the daily limits. One statement, only for a tenant with limits."""
    usages = [("your", limits.own, used)]
    if limits.of_tenant is not None:
        usages.append(("your tenant's", limits.of_tenant, tenant_used()))
    nearest = nearest_limit(usages)
    return BudgetStatus(level=level_of(nearest.left if nearest else None), nearest=nearest)


def budget_status_of(agent_id: UUID) -> BudgetStatus:
    """Return the budget status for conversations and maintenance calls. One or two statements."""
    ((heartbeats, tokens, usd, all_heartbeats, all_tokens, all_usd, *used),) = fetch(_DAY, agent=agent_id)
    tenant = Amounts(heartbeats=all_heartbeats, tokens=all_tokens, usd=all_usd)
    limits = Limits(
        own=Amounts(heartbeats=heartbeats, tokens=tokens, usd=usd),
        of_tenant=None if tenant == Amounts() else tenant,
    )
    return budget_status(limits, Amounts(heartbeats=used[0], tokens=used[1], usd=used[2]))


def tenant_used() -> Amounts:
    """Return the usage of all agents of the current tenant today, cached for `TENANT_SUM_CACHED_S`."""
    tenant = current_tenant()
    read_at, day, amounts = _sums.get(tenant, (float("-inf"), date.min, Amounts()))
    now = time.monotonic()
    # The sum of the day before would halt an agent, whose next heartbeat is then a day later.
    if now - read_at >= TENANT_SUM_CACHED_S or day != datetime.now(UTC).date():
        ((day, heartbeats, tokens, usd),) = fetch(_TENANT_SUM)
        amounts = Amounts(heartbeats=int(heartbeats), tokens=int(tokens), usd=Decimal(usd))
        _sums[tenant] = now, day, amounts
    return amounts


def used_today(agent_id: UUID) -> dict[str, Any]:
    """Return an agent's usage of today (UTC) as a JSON object."""
    row = DailyUsage.objects.filter(agent_id=agent_id, day=datetime.now(UTC).date()).first() or DailyUsage()
    return {
        "heartbeats": row.heartbeats,
        "calls": row.calls,
        "tokens": row.tokens,
        "usd": f"{row.cost_usd:.4f}",
        "level": row.level,
    }


def write_levels(levels: Mapping[UUID, BudgetLevel]) -> set[UUID]:
    """Write the budget levels of agents; return the agents whose level changed. One statement at most."""
    if not levels:
        return set()
    rows = fetch(
        _WRITE_LEVELS,
        ids=[uuid7() for _ in levels],
        agents=list(levels),
        levels=[level.value for level in levels.values()],
    )
    return {agent_id for (agent_id,) in rows}
