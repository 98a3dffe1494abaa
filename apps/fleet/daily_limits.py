"""Check daily limits, and resume agents that a limit has halted when the limit is raised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Any
from uuid import UUID

from django.db import connections

from apps.tenants.scope import APP
from arbor.errors import Invalid
from arbor.heartbeat.usage import BudgetLevel


@dataclass(frozen=True, kw_only=True)
class DailyLimit:
    """The values that a daily limit may have, by the size and the scale of its columns."""

    unit: str
    largest: int
    decimals: int


#: The daily limits of agents and tenants.
LIMITS: Mapping[str, DailyLimit] = MappingProxyType(
    {
        "daily_heartbeats": DailyLimit(unit="heartbeats", largest=2**31 - 1, decimals=0),
        "daily_tokens": DailyLimit(unit="tokens", largest=10**15, decimals=0),
        "daily_usd": DailyLimit(unit="US dollars", largest=10**8 - 1, decimals=4),
    }
)
# Waits for heartbeats that have read the old limit.
_LOCK_SCHEDULES = """
SELECT FROM heartbeats_heartbeatschedule
WHERE tenant_id = %(tenant)s AND in_flight AND (%(agent)s::uuid IS NULL OR agent_id = %(agent)s)
ORDER BY agent_id FOR UPDATE
"""
# Halted agents are scheduled for the next day.
_RESUME_HALTED = """
UPDATE heartbeats_heartbeatschedule s
SET next_due_at = now() + s.interval_s * %(spread)s * random() * interval '1 second'
FROM calls_dailyusage u
WHERE s.tenant_id = %(tenant)s AND NOT s.in_flight AND s.next_due_at > now() + s.interval_s * %(spread)s * interval '1 second'
    AND (%(agent)s::uuid IS NULL OR s.agent_id = %(agent)s)
    AND u.tenant_id = s.tenant_id AND u.agent_id = s.agent_id AND u.level = %(halt)s
    AND u.day = (now() AT TIME ZONE 'UTC')::date
"""
#: The share of their intervals over which resumed agents are spread.
_SPREAD = 0.05


def check_daily_limits(limits: Mapping[str, float | Decimal | None]) -> None:
    """Raise Invalid for an unknown name, and unless each daily limit is None, or from 0 to its largest value, with no more decimals than it may have."""
    for name, limit in limits.items():
        if name not in LIMITS:
            raise Invalid(f"daily limits are {', '.join(LIMITS)}, got {name!r}")
        allowed = LIMITS[name]
        if limit is None:
            continue
        # By its digits: as a binary fraction, a float such as 0.1 has many decimals.
        exact = Decimal(str(limit))
        if not (exact.is_finite() and 0 <= exact <= allowed.largest):
            raise Invalid(
                f"a limit of {allowed.unit} a day is 0 to {allowed.largest:,}, or none, got {limit}"
            )
        # A finer limit would be rounded, perhaps to 0, which permits nothing.
        if round(exact, allowed.decimals) != exact:
            form = f"has at most {allowed.decimals} decimals" if allowed.decimals else "is a whole number"
            raise Invalid(f"a limit of {allowed.unit} a day {form}, got {limit}")


def is_raised(*, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return whether a daily limit (None: unlimited) was raised."""
    return any(
        before[name] is not None and (limit is None or limit > before[name]) for name, limit in after.items()
    )


def resume_halted_agents(*, tenant_id: UUID, agent_id: UUID | None = None, using: str = APP) -> None:
    """Bring forward the heartbeats of halted agents of a tenant, or of one agent, spread over time.

    Call it in the transaction that raises a limit. An agent that another limit halts skips that heartbeat.
    """
    with connections[using].cursor() as cursor:
        values = {"tenant": tenant_id, "agent": agent_id, "spread": _SPREAD, "halt": BudgetLevel.HALT.value}
        cursor.execute(_LOCK_SCHEDULES, values)
        cursor.execute(_RESUME_HALTED, values)
