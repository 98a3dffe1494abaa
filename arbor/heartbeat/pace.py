"""Estimate when a daily limit is reached at the pace of the day so far."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

#: The least part of the day that an estimate is made from.
LEAST_ELAPSED = timedelta(minutes=15)


def used_up_at(*, used: float, limit: float, now: datetime) -> datetime | None:
    """Return the time at which a limit of the UTC day is used up at the pace so far; None: not today.

    A limit that is used up already returns `now`. The pace is that since midnight, of a quarter of an hour at least.
    """
    if used >= limit:
        return now
    today = now.astimezone(UTC)
    midnight = datetime.combine(today.date(), time(), UTC)
    if used <= 0:
        return None
    elapsed = max(now - midnight, LEAST_ELAPSED)
    left = elapsed * ((limit - used) / used)
    until_midnight = midnight + timedelta(days=1) - now
    return now + left if left < until_midnight else None
