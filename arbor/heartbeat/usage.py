"""Daily limits: the budget level, and when a limit is reached."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum

#: The least part of the day that a pace is estimated from.
MIN_ELAPSED = timedelta(minutes=15)


class BudgetLevel(StrEnum):
    """The used part of the daily limits, as a level (the origin of seed 003)."""

    #: More than 60 % is left, or nothing is limited.
    NORMAL = "normal"
    #: More than 30 %: one round trip, and a cheaper tier.
    CONSERVATION = "conservation"
    #: More than 10 %: the cheapest tier; only requested heartbeats, or for an active goal.
    DEGRADATION = "degradation"
    #: A remainder: only for waiting users.
    END_TIMES = "end_times"
    #: Nothing: no heartbeat before the next day.
    HALT = "halt"

    @property
    def rank(self) -> int:
        """Return the severity, 0 for normal."""
        return list(BudgetLevel).index(self)

    @property
    def may_follow_up(self) -> bool:
        """Return whether a further round trip is allowed."""
        return self is BudgetLevel.NORMAL

    @property
    def may_maintain(self) -> bool:
        """Return whether maintenance may ask models."""
        return self.rank < BudgetLevel.END_TIMES.rank

    @property
    def tiers_down(self) -> int:
        """Return by how many tiers thinking is cheaper, at most 2."""
        return min(self.rank, 2)


#: The least remaining share of each level, exclusive.
_ABOVE: Mapping[BudgetLevel, float] = {
    BudgetLevel.NORMAL: 0.6,
    BudgetLevel.CONSERVATION: 0.3,
    BudgetLevel.DEGRADATION: 0.1,
    BudgetLevel.END_TIMES: 0.0,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Amounts:
    """Heartbeats, tokens and US dollars; as a limit, None is unlimited."""

    heartbeats: int | None = None
    tokens: int | None = None
    usd: Decimal | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NearestLimit:
    """The nearest limit and its remaining share."""

    #: "heartbeats", "tokens" or "US dollars", and whose: "your" or "your tenant's".
    what: str
    whose: str
    left: float


def nearest_limit(usages: Iterable[tuple[str, Amounts, Amounts]]) -> NearestLimit | None:
    """Return the nearest limit among (whose, limits, used); None without limits. A limit of 0 is used up."""
    limited = [
        NearestLimit(
            # Subtracted before the division, because 1 - 0.7 is more than 0.3.
            what=what,
            whose=whose,
            left=max(0.0, float((limit - (spent or 0)) / limit)) if limit > 0 else 0.0,
        )
        for whose, limits, used in usages
        for what, limit, spent in (
            ("heartbeats", limits.heartbeats, used.heartbeats),
            ("tokens", limits.tokens, used.tokens),
            ("US dollars", limits.usd, used.usd),
        )
        if limit is not None
    ]
    return min(limited, key=lambda nearest: nearest.left, default=None)


def level_of(left: float | None) -> BudgetLevel:
    """Return the level for a remaining share; None: no limits."""
    if left is None:
        return BudgetLevel.NORMAL
    return next((level for level, above in _ABOVE.items() if left > above), BudgetLevel.HALT)


def limit_skip_reason(
    level: BudgetLevel, *, user_waiting: bool, asked_for: bool, serves_goal: bool, now: datetime
) -> str:
    """Return why a heartbeat is skipped at this level, and when the limits are renewed; empty if the heartbeat runs.

    `asked_for`: a person, a conversation, an event or a cycle requested the heartbeat; `serves_goal`: an objective or
    task is active, or an intent pending.
    """
    again = f"it goes on at {renewed_at(now):%Y-%m-%d %H:%M} UTC"
    match level:
        case BudgetLevel.HALT:
            return f"the day's budget is used up; {again}"
        case BudgetLevel.END_TIMES if not user_waiting:
            return f"the day's budget is nearly used up, and what is left is for users who wait; {again}"
        case BudgetLevel.DEGRADATION if not (user_waiting or asked_for or serves_goal):
            return f"the day's budget runs low, and this heartbeat serves no goal and nobody asked for it; {again}"
        case _:
            return ""


def renewed_at(now: datetime) -> datetime:
    """Return the beginning of the next UTC day."""
    return datetime.combine(now.astimezone(UTC).date() + timedelta(days=1), time(), UTC)


def used_up_at(*, used: float, limit: float, now: datetime) -> datetime | None:
    """Return the time at which a limit of the UTC day is used up at the pace so far; None: not today.

    A limit that is used up already returns `now`. The pace is the mean since midnight, over a quarter of an hour at least.
    """
    if used >= limit:
        return now
    if used <= 0:
        return None
    midnight = renewed_at(now)
    elapsed = max(now - (midnight - timedelta(days=1)), MIN_ELAPSED)
    share = (limit - used) / used
    # Compared before the multiplication, because a large limit is centuries away.
    return now + elapsed * share if share < (midnight - now) / elapsed else None
