"""Decay of importance: functions of time, computed when asked for, never written row by row."""

from __future__ import annotations

import math
from datetime import datetime

_SECONDS_PER_DAY = 86_400
_DAYS_PER_WEEK = 7
#: What a week without retrieval leaves of importance (seed 001, "Importance Decay").
KEPT_PER_WEEK = 0.95
#: Of the distance to 1, what importance gains by each e-fold of uses: `+0.1·ln(1+n)` (seed 004).
BOOST = 0.1


def days_between(earlier: datetime, later: datetime) -> float:
    """Return the days from one moment to another, 0 when the clock has jumped back."""
    return max(0.0, (later - earlier).total_seconds() / _SECONDS_PER_DAY)


def relevance(*, importance: float, decay_rate: float, days_since_access: float) -> float:
    """Return `importance · e^(−decay_rate · days since the last access)`, from 0 to `importance` (seed 004).

    Importance is from 0 to 1, the rate is per day. A memory that was never accessed counts from when it was made.
    """
    return importance * math.exp(-decay_rate * max(0.0, days_since_access))


def effective_importance(*, importance: float, uses: int) -> float:
    """Return importance, from 0 to 1, with what use has added to it: from `importance` to 1.

    Each use, a recall by the agent or a reinforcement, counts less than the one before: `0.1 · ln(1 + uses)` of the
    distance to 1. It is computed, so no use is counted twice.
    """
    gained = min(1.0, BOOST * math.log1p(max(0, uses)))
    return importance + (1.0 - importance) * gained


def decayed_importance(*, importance: float, days_since_use: float) -> float:
    """Return `importance · 0.95^(weeks since the last use)`, from 0 to `importance` (seed 001).

    A memory that was never used counts from when it was made.
    """
    return importance * math.pow(KEPT_PER_WEEK, max(0.0, days_since_use) / _DAYS_PER_WEEK)
