"""The estimate of when a daily limit is used up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from arbor.heartbeat.usage import used_up_at

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("used", "limit", "after"),
    [
        (0, 10, None),
        (1, 10, None),
        (5, 10, None),
        (8, 10, timedelta(hours=3)),
        (10, 10, timedelta()),
        (12, 10, timedelta()),
        (0, 0, timedelta()),
    ],
)
def test_a_limit_ends_at_the_pace_of_the_day(used: float, limit: float, after: timedelta | None) -> None:
    expected = None if after is None else NOON + after
    assert used_up_at(used=used, limit=limit, now=NOON) == expected


def test_the_first_minutes_of_a_day_are_no_pace() -> None:
    early = NOON.replace(hour=0, minute=1)
    assert used_up_at(used=1, limit=10, now=early) == early + timedelta(minutes=135)
