"""The scheduler after a start and under a clock that jumps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from celery import Celery

from workers.app import app
from workers.schedule import entries
from workers.scheduler import Scheduler


def test_a_clock_that_is_set_back_stops_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    published: list[str] = []
    clock = [datetime(2026, 1, 1, tzinfo=UTC)]
    jobs = Celery("jobs", broker="memory://")
    jobs.conf.beat_schedule = {
        name: {"task": name, "schedule": timedelta(seconds=period)}
        for name, period in (("dispatch", 1), ("sweep", 10))
    }
    monkeypatch.setattr(jobs, "now", lambda: clock[0])
    scheduler = Scheduler(jobs)
    monkeypatch.setattr(scheduler, "apply_entry", lambda entry, **_: published.append(entry.task))

    def run(seconds: int) -> dict[str, int]:
        published.clear()
        for _ in range(seconds):
            clock[0] += timedelta(seconds=1)
            for _ in range(5):
                scheduler.tick()
        return {name: published.count(name) for name in ("dispatch", "sweep")}

    assert run(20) == {"dispatch": 20, "sweep": 2}
    clock[0] -= timedelta(hours=1)
    # The second in which the clock was set back is lost.
    assert run(21) == {"dispatch": 20, "sweep": 2}


def test_jobs_of_long_periods_continue_after_their_last_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime(2026, 1, 1, 12, tzinfo=UTC)
    clock = [now]
    jobs = Celery("jobs", broker="memory://")
    minutes = {"overdue": 60, "recent": 60, "ahead": 60, "new": 60, "short": 1}
    jobs.conf.beat_schedule = {
        name: {"task": name, "schedule": timedelta(minutes=period)} for name, period in minutes.items()
    }
    monkeypatch.setattr(jobs, "now", lambda: clock[0])
    scheduler = Scheduler(jobs)
    published: dict[str, datetime] = {}
    monkeypatch.setattr(
        scheduler, "apply_entry", lambda entry, **_: published.setdefault(entry.task, clock[0])
    )
    ended = {"overdue": timedelta(days=3), "recent": timedelta(minutes=40), "ahead": -timedelta(days=1)}
    scheduler.resume_after({name: now - ago for name, ago in ended.items()} | {"short": now - timedelta(1)})
    for _ in range(70):
        clock[0] += timedelta(minutes=1)
        for _ in range(5):
            scheduler.tick()
    after = {name: (at - now) // timedelta(minutes=1) for name, at in published.items()}
    assert 1 <= after.pop("overdue") <= 3
    assert after == {"short": 1, "recent": 20, "ahead": 60, "new": 60}


@pytest.mark.parametrize("entry", entries().values(), ids=lambda entry: str(entry["task"]))
def test_a_worker_whose_clock_is_ahead_drops_no_message(entry: dict[str, Any]) -> None:
    sent_at = datetime.now(UTC)
    expires: float = entry["options"]["expires"]
    message = app.amqp.as_task_v2("id", entry["task"], expires=expires, now=sent_at)
    expires_at = datetime.fromisoformat(message.headers["expires"])
    assert expires_at - sent_at >= timedelta(seconds=59)


def test_the_application_uses_this_scheduler() -> None:
    assert app.conf.beat_scheduler == f"{Scheduler.__module__}:{Scheduler.__name__}"
