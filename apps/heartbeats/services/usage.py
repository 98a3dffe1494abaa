"""What is used in a day, by agent and by tenant: written once per beat and once per call, read at each beat."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import connections

from apps.heartbeats.models import DailyUsage
from apps.heartbeats.services.recent_activity import Limits
from apps.tenants.scope import APP, current_tenant
from apps.tenants.statements import fetch
from arbor.heartbeat.usage import Amounts, Degradation, Scarcest, level_of, scarcest
from arbor.ids import uuid7

#: A tenant's sum is read by a process at most once in so many seconds: no row of the tenant is written by every beat.
TENANT_SUM_KEPT_S = 10.0

_TENANT_SUM = """
SELECT coalesce(sum(beats), 0), coalesce(sum(tokens), 0), coalesce(sum(cost_usd), 0) FROM heartbeats_dailyusage
WHERE tenant_id = %(tenant)s AND day = (now() AT TIME ZONE 'UTC')::date
"""
_DAY = """
SELECT p.daily_beats, p.daily_tokens, p.daily_usd, t.daily_beats, t.daily_tokens, t.daily_usd,
    coalesce(u.beats, 0), coalesce(u.tokens, 0), coalesce(u.cost_usd, 0)
FROM agents_agent a JOIN tenants_tenant t ON t.id = a.tenant_id
LEFT JOIN agents_agentpolicy p ON p.tenant_id = a.tenant_id AND p.agent_id = a.id
LEFT JOIN heartbeats_dailyusage u
    ON u.tenant_id = a.tenant_id AND u.agent_id = a.id AND u.day = (now() AT TIME ZONE 'UTC')::date
WHERE a.tenant_id = %(tenant)s AND a.id = %(agent)s
"""
_WRITE_LEVELS = """
INSERT INTO heartbeats_dailyusage (tenant_id, id, agent_id, day, level)
SELECT %(tenant)s, r.id, r.agent, (now() AT TIME ZONE 'UTC')::date, r.level
FROM unnest(%(ids)s::uuid[], %(agents)s::uuid[], %(levels)s::text[]) AS r (id, agent, level) ORDER BY r.agent
ON CONFLICT (tenant_id, agent_id, day) DO UPDATE SET level = excluded.level
WHERE heartbeats_dailyusage.level <> excluded.level
RETURNING agent_id
"""
# A look that has read the limit as it was ends before those are brought forward whom it halts.
_END_LOOKS = """
SELECT FROM heartbeats_heartbeatschedule
WHERE tenant_id = %(tenant)s AND in_flight AND (%(agent)s::uuid IS NULL OR agent_id = %(agent)s)
ORDER BY agent_id FOR UPDATE
"""
# Whoever ended its last look at its budget with nothing left waits for the new day (handlers/idle.py).
_LET_GO_ON = """
UPDATE heartbeats_heartbeatschedule s
SET next_due_at = now() + s.interval_s * %(spread)s * random() * interval '1 second'
FROM heartbeats_dailyusage u
WHERE s.tenant_id = %(tenant)s AND NOT s.in_flight AND s.next_due_at > now() + s.interval_s * %(spread)s * interval '1 second'
    AND (%(agent)s::uuid IS NULL OR s.agent_id = %(agent)s)
    AND u.tenant_id = s.tenant_id AND u.agent_id = s.agent_id AND u.level = %(halt)s
    AND u.day = (now() AT TIME ZONE 'UTC')::date
"""
#: Those who go on spread over this share of their intervals.
_SPREAD = 0.05

_sums: dict[UUID, tuple[float, Amounts]] = {}


@dataclass(frozen=True, kw_only=True)
class BudgetStatus:
    """The level of a day's budget, and the amount that is scarcest."""

    level: Degradation = Degradation.NORMAL
    nearest: Scarcest | None = None


def budget_status(limits: Limits, used: Amounts) -> BudgetStatus:
    """Return how far the day's budget is used up. One statement at most, and only where the tenant has a limit."""
    pairs = [("your", limits.own, used)]
    if limits.of_tenant is not None:
        pairs.append(("your tenant's", limits.of_tenant, tenant_used()))
    nearest = scarcest(pairs)
    return BudgetStatus(level=level_of(nearest.left if nearest else None), nearest=nearest)


def day_of(agent_id: UUID) -> BudgetStatus:
    """Return the same for what is asked without a heartbeat: conversations and errands. One statement, two at most."""
    ((beats, tokens, usd, all_beats, all_tokens, all_usd, *used),) = fetch(_DAY, agent=agent_id)
    tenant = Amounts(beats=all_beats, tokens=all_tokens, usd=all_usd)
    limits = Limits(
        own=Amounts(beats=beats, tokens=tokens, usd=usd),
        of_tenant=None if tenant == Amounts() else tenant,
    )
    return budget_status(limits, Amounts(beats=used[0], tokens=used[1], usd=used[2]))


def tenant_used() -> Amounts:
    """Return what all agents of the current tenant have used today, at most `TENANT_SUM_KEPT_S` old."""
    tenant = current_tenant()
    read_at, amounts = _sums.get(tenant, (float("-inf"), Amounts()))
    now = time.monotonic()
    if now - read_at >= TENANT_SUM_KEPT_S:
        ((beats, tokens, usd),) = fetch(_TENANT_SUM)
        amounts = Amounts(beats=int(beats), tokens=int(tokens), usd=Decimal(usd))
        _sums[tenant] = now, amounts
    return amounts


def is_raised(*, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Tell whether one of a day's limits (None: none) lets more be used than before."""
    return any(
        before[name] is not None and (limit is None or limit > before[name]) for name, limit in after.items()
    )


def let_go_on(*, tenant_id: UUID, agent_id: UUID | None = None, using: str = APP) -> None:
    """Bring the beats forward of those in a tenant whom the day's budget has halted, or of one; not all at once.

    To be called when a limit is raised, in its transaction. Whom another limit still halts finds out at that beat, which asks no model.
    """
    with connections[using].cursor() as cursor:
        values = {"tenant": tenant_id, "agent": agent_id, "spread": _SPREAD, "halt": Degradation.HALT.value}
        cursor.execute(_END_LOOKS, values)
        cursor.execute(_LET_GO_ON, values)


def used_today(agent_id: UUID) -> dict[str, Any]:
    """Return what an agent has used today (UTC), for JSON."""
    row = DailyUsage.objects.filter(agent_id=agent_id, day=datetime.now(UTC).date()).first() or DailyUsage()
    return {
        "beats": row.beats,
        "calls": row.calls,
        "tokens": row.tokens,
        "usd": f"{row.cost_usd:.4f}",
        "level": row.level,
    }


def write_levels(levels: Mapping[UUID, Degradation]) -> set[UUID]:
    """Write the levels of agents' budgets; return the agents whose level was another one. One statement, none for none."""
    if not levels:
        return set()
    rows = fetch(
        _WRITE_LEVELS,
        ids=[uuid7() for _ in levels],
        agents=list(levels),
        levels=[level.value for level in levels.values()],
    )
    return {agent_id for (agent_id,) in rows}
