"""Daily limits, the budget level, and when a limit is used up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from arbor.heartbeat.usage import (
    Amounts,
    BudgetLevel,
    level_of,
    limit_skip_reason,
    nearest_limit,
    renewed_at,
    used_up_at,
)

NOW = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("left", "level"),
    [
        (None, BudgetLevel.NORMAL),
        (1.0, BudgetLevel.NORMAL),
        (0.61, BudgetLevel.NORMAL),
        (0.6, BudgetLevel.CONSERVATION),
        (0.31, BudgetLevel.CONSERVATION),
        (0.3, BudgetLevel.DEGRADATION),
        (0.11, BudgetLevel.DEGRADATION),
        (0.1, BudgetLevel.END_TIMES),
        (0.001, BudgetLevel.END_TIMES),
        (0.0, BudgetLevel.HALT),
    ],
)
def test_levels_follow_the_remaining_share(left: float | None, level: BudgetLevel) -> None:
    assert level_of(left) is level


def test_the_nearest_limit_of_agent_and_tenant_counts() -> None:
    own = (Amounts(heartbeats=10, tokens=1000), Amounts(heartbeats=2, tokens=500, usd=Decimal("3")))
    tenant = (Amounts(usd=Decimal("1.00")), Amounts(heartbeats=50, tokens=9_000, usd=Decimal("0.75")))
    limit_status = nearest_limit([("its", *own), ("its tenant's", *tenant)])
    assert limit_status is not None
    assert (limit_status.whose, limit_status.what, limit_status.left) == ("its tenant's", "US dollars", 0.25)
    assert nearest_limit([("its", Amounts(), own[1])]) is None


def test_a_limit_of_zero_is_used_up_and_none_is_negative() -> None:
    for limit, used in ((0, 0), (5, 9)):
        limit_status = nearest_limit([("its", Amounts(heartbeats=limit), Amounts(heartbeats=used))])
        assert limit_status is not None
        assert limit_status.left == 0


@pytest.mark.parametrize(
    ("limits", "used"),
    [
        (Amounts(heartbeats=10), Amounts(heartbeats=7)),
        (Amounts(usd=Decimal(1)), Amounts(usd=Decimal("0.7"))),
    ],
)
def test_a_level_begins_at_its_exact_share(limits: Amounts, used: Amounts) -> None:
    limit_status = nearest_limit([("its", limits, used)])
    assert limit_status is not None
    assert level_of(limit_status.left) is BudgetLevel.DEGRADATION


@pytest.mark.parametrize(
    ("level", "waiting", "requested", "goal", "runs"),
    [
        (BudgetLevel.NORMAL, False, False, False, True),
        (BudgetLevel.CONSERVATION, False, False, False, True),
        (BudgetLevel.DEGRADATION, False, False, False, False),
        (BudgetLevel.DEGRADATION, False, True, False, True),
        (BudgetLevel.DEGRADATION, False, False, True, True),
        (BudgetLevel.DEGRADATION, True, False, False, True),
        (BudgetLevel.END_TIMES, False, True, True, False),
        (BudgetLevel.END_TIMES, True, False, False, True),
        (BudgetLevel.HALT, True, True, True, False),
    ],
)
def test_each_budget_level_serves_fewer_heartbeats(
    level: BudgetLevel, waiting: bool, requested: bool, goal: bool, runs: bool
) -> None:
    reason = limit_skip_reason(level, user_waiting=waiting, asked_for=requested, serves_goal=goal, now=NOW)
    assert (reason == "") is runs
    if not runs:
        assert "it goes on at 2026-01-06 00:00 UTC" in reason


def test_each_budget_level_permits_no_more_than_the_one_before() -> None:
    assert [level.tiers_down for level in BudgetLevel] == [0, 1, 2, 2, 2]
    assert [level.may_follow_up for level in BudgetLevel] == [True, False, False, False, False]
    assert [level.may_maintain for level in BudgetLevel] == [True, True, True, False, False]


def test_daily_limits_are_renewed_at_midnight_utc() -> None:
    assert renewed_at(NOW) == datetime(2026, 1, 6, tzinfo=UTC)


def test_the_nearest_limit_names_heartbeats_in_full() -> None:
    nearest = nearest_limit([("its", Amounts(heartbeats=10, tokens=1_000), Amounts(heartbeats=8, tokens=10))])

    assert nearest is not None
    assert (nearest.what, nearest.whose) == ("heartbeats", "its")


# --- When a limit is used up ----------------------------------------------------------------------------


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
        (1e-6, 1e9, None),
    ],
)
def test_a_limit_is_used_up_at_the_pace_of_the_day(
    used: float, limit: float, after: timedelta | None
) -> None:
    expected = None if after is None else NOON + after
    assert used_up_at(used=used, limit=limit, now=NOON) == expected


def test_a_pace_is_measured_over_at_least_a_quarter_of_an_hour() -> None:
    early = NOON.replace(hour=0, minute=1)
    assert used_up_at(used=1, limit=10, now=early) == early + timedelta(minutes=135)
