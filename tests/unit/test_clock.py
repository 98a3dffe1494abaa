"""Times of any offset, converted to UTC."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from arbor.clock import to_utc
from arbor.errors import Invalid


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2026-01-31T18:00", datetime(2026, 1, 31, 18, tzinfo=UTC)),
        ("2026-01-31T18:00+20:43", datetime(2026, 1, 30, 21, 17, tzinfo=UTC)),
        ("0001-01-01T00:00-23:59", datetime(1, 1, 1, 23, 59, tzinfo=UTC)),
    ],
)
def test_a_time_is_converted_to_utc(written: str, expected: datetime) -> None:
    converted = to_utc(datetime.fromisoformat(written))
    assert (converted, converted.tzinfo) == (expected, UTC)


@pytest.mark.parametrize("written", ["9999-12-31T23:59-10:00", "0001-01-01T00:00+00:01"])
def test_a_time_outside_of_the_calendar_is_refused(written: str) -> None:
    with pytest.raises(Invalid, match=r"years 1 to 9999 in UTC, got \d{4}-"):
        to_utc(datetime.fromisoformat(written))
