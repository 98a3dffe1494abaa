"""Record job runs, one row per job, so that health notices a job that has stopped."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import connections

from apps.memories.services.jobs.rounds import Round
from apps.tenants.scope import APP

_RECORD = """
INSERT INTO memories_jobrun AS r (name, period_s, first_at, ended_at, seconds, succeeded_at, done, failed, error)
VALUES (%(name)s, %(period_s)s, now(), now(), %(seconds)s, CASE WHEN %(error)s = '' THEN now() END, %(done)s, %(failed)s,
    %(error)s)
ON CONFLICT (name) DO UPDATE SET period_s = EXCLUDED.period_s, ended_at = EXCLUDED.ended_at,
    seconds = EXCLUDED.seconds, succeeded_at = coalesce(EXCLUDED.succeeded_at, r.succeeded_at),
    done = EXCLUDED.done, failed = EXCLUDED.failed, error = EXCLUDED.error
"""
_EXPECT = """
INSERT INTO memories_jobrun AS r (name, period_s, first_at, ended_at, seconds, done, failed, error)
SELECT name, period_s, now(), now(), 0, 0, 0, ''
FROM unnest(%(names)s::text[], %(periods)s::float8[]) AS expected (name, period_s) ORDER BY name
ON CONFLICT (name) DO UPDATE SET period_s = EXCLUDED.period_s
"""


def expect_runs(periods: Mapping[str, float]) -> None:
    """Record the expected jobs with their periods in seconds, so that one that never runs is noticed. One statement."""
    with connections[APP].cursor() as cursor:
        cursor.execute(_EXPECT, {"names": list(periods), "periods": list(periods.values())})


def note_run(
    *, name: str, period_s: float, seconds: float, result: object = None, error: Exception | None = None
) -> None:
    """Record the end of a run: its result, a Round or a count, or the error that ended it. One statement.

    Of an error only its kind is kept: what it says may name somebody's data.
    """
    done, failed = 0, 0
    if isinstance(result, Round):
        done, failed = result.done, result.failed
    elif isinstance(result, int):
        done = result
    with connections[APP].cursor() as cursor:
        cursor.execute(
            _RECORD,
            {
                "name": name,
                "period_s": period_s,
                "seconds": seconds,
                "done": done,
                "failed": failed,
                "error": type(error).__name__ if error else "",
            },
        )
