"""A bar chart of heartbeats by hour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from apps.console.pictures.bars import BAR_WIDTH, CHART_HEIGHT
from apps.heartbeats.models import HeartbeatStatus


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
    most = max((sum(by_hour.get(start, none).values()) for start in starts), default=0) or 1
    hours = []
    for index, start in enumerate(starts):
        counts = by_hour.get(start, none)
        ended = (HeartbeatStatus.DONE, HeartbeatStatus.SKIPPED, HeartbeatStatus.FAILED)
        done, skipped, failed = (counts[status] for status in ended)
        heights = [count / most * CHART_HEIGHT for count in (done, skipped, failed)]
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
