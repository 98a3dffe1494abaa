"""Daily limits that are refused before they are stored."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from apps.fleet.daily_limits import check_daily_limits
from arbor.errors import Invalid


@pytest.mark.parametrize(
    ("name", "limit", "message"),
    [
        ("daily_joules", 1, "daily limits are daily_heartbeats, "),
        ("daily_heartbeats", -1, "a limit of heartbeats a day is 0 to"),
        ("daily_heartbeats", 1.5, "is a whole number, got 1.5"),
        ("daily_usd", Decimal("0.00001"), "has at most 4 decimals"),
        ("daily_usd", Decimal("NaN"), "or none, got NaN"),
    ],
)
def test_a_limit_that_cannot_be_stored_is_refused(name: str, limit: Any, message: str) -> None:
    with pytest.raises(Invalid, match=message):
        check_daily_limits({name: limit})


def test_limits_in_their_range_and_none_are_accepted() -> None:
    check_daily_limits({"daily_heartbeats": 0, "daily_tokens": None, "daily_usd": Decimal("0.0001")})
