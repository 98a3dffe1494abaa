"""Celery's scheduler, which a clock that is set back does not stop."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from celery import beat

# Incompletely typed.
_Scheduler: Any = beat.Scheduler


class Scheduler(_Scheduler):  # type: ignore[misc]
    """Publishes the periodic tasks; after the clock was set back, continues with the same periods.

    Celery waits until the clock has reached the former time again: nothing would be dispatched for as long as the clock was
    set back by.
    """

    _last_tick_at: datetime | None = None

    def tick(self, **parameters: Any) -> float:
        """Publish a due task; return the seconds until the next call."""
        now: datetime = self.app.now()
        if self._last_tick_at is not None and now < self._last_tick_at:
            for entry in self.schedule.values():
                entry.last_run_at -= self._last_tick_at - now
            self._heap = None  # computed again from the entries
        self._last_tick_at = now
        return float(super().tick(**parameters))
