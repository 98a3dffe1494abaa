"""Celery's scheduler, which goes on when the clock is set back, and begins long periods at the last runs of their jobs."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from celery import beat

#: The shortest period of the jobs that resume after their last runs; the others begin a period after the start.
RESUMED_FROM = timedelta(minutes=10)
#: Overdue jobs are published at random moments of this time after the start, not all at once.
SPREAD = timedelta(minutes=2)
# Incompletely typed.
_Scheduler: Any = beat.Scheduler


class Scheduler(_Scheduler):  # type: ignore[misc]
    """Publishes the periodic tasks; after the clock was set back, continues with the same periods.

    Celery waits until the clock has reached the former time again: nothing would be dispatched for as long as the clock was
    set back by.
    """

    _last_tick_at: datetime | None = None

    def resume_after(self, last_runs: Mapping[str, datetime]) -> None:
        """Begin each long period at the job's last run, so that jobs also run where no scheduler runs for a whole period."""
        now: datetime = self.app.now()
        for name, entry in self.schedule.items():
            period = entry.schedule.run_every if name in last_runs else timedelta(0)
            if period >= RESUMED_FROM:
                spread = random.uniform(0, SPREAD.total_seconds())  # noqa: S311 (not for secrets)
                earliest = now - period + timedelta(seconds=spread)
                entry.last_run_at = min(now, max(earliest, last_runs[name]))
        self._heap = None  # computed again from the entries

    def tick(self, **parameters: Any) -> float:
        """Publish a due task; return the seconds until the next call."""
        now: datetime = self.app.now()
        if self._last_tick_at is not None and now < self._last_tick_at:
            for entry in self.schedule.values():
                entry.last_run_at -= self._last_tick_at - now
            self._heap = None  # computed again from the entries
        self._last_tick_at = now
        return float(super().tick(**parameters))
