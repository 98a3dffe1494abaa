"""A bar chart of heartbeats by hour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from apps.console.pictures.bars import BAR_WIDTH, CHART_HEIGHT
from apps.heartbeats.models import HeartbeatStatus

#: The statuses of drawn heartbeats, from the bottom of a bar to its top; the others are under way.
_DRAWN = (HeartbeatStatus.DONE, HeartbeatStatus.SKIPPED, HeartbeatStatus.FAILED)


@dataclass(frozen=True, kw_only=True)
class Hour:
    """One bar of the chart: counts and positions of the heartbeats that began in an hour."""

    start: datetime
    done: int
    failed: int
    skipped: int
    x: float = 0.0
    done_y: float = 0.0
    done_height: float = 0.0
    failed_y: float = 0.0
    failed_height: float = 0.0
    skipped_y: float = 0.0
    skipped_height: float = 0.0

    @property
    def total(self) -> int:
        """Return the number of all heartbeats of the hour."""
        return self.done + self.failed + self.skipped


def draw_hours(starts: Sequence[datetime], by_hour: Mapping[datetime, Counter[str]]) -> list[Hour]:
    """Return the bars, scaled so that the highest has the chart's height."""
    none: Counter[str] = Counter()
    ended = [[by_hour.get(start, none)[status] for status in _DRAWN] for start in starts]
    most = max(map(sum, ended), default=0) or 1
    hours = []
    for index, (start, counts) in enumerate(zip(starts, ended, strict=True)):
        done, skipped, failed = counts
        heights = [count / most * CHART_HEIGHT for count in counts]
        hours.append(
            Hour(
                start=start,
                done=done,
                failed=failed,
                skipped=skipped,
                x=round(index * BAR_WIDTH, 1),
                done_y=round(CHART_HEIGHT - heights[0], 1),
                done_height=round(heights[0], 1),
                skipped_y=round(CHART_HEIGHT - heights[0] - heights[1], 1),
                skipped_height=round(heights[1], 1),
                failed_y=round(CHART_HEIGHT - sum(heights), 1),
                failed_height=round(heights[2], 1),
            )
        )
    return hours
