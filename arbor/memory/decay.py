"""How memories fade: functions of time, computed when asked for, never written row by row."""

from __future__ import annotations

import math
from datetime import datetime

_SECONDS_PER_DAY = 86_400


def days_between(earlier: datetime, later: datetime) -> float:
    """Return the days from one moment to another, 0 when the clock has jumped back."""
    return max(0.0, (later - earlier).total_seconds() / _SECONDS_PER_DAY)


def relevance(*, importance: float, decay_rate: float, days_since_access: float) -> float:
    """Return `importance · e^(−decay_rate · days since the last access)`, from 0 to `importance` (seed 004).

    Importance is from 0 to 1, the rate is per day. A memory that was never accessed counts from when it was made.
    """
    return importance * math.exp(-decay_rate * max(0.0, days_since_access))
