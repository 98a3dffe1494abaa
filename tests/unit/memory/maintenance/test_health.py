"""Limits of the health figures."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.errors import ConfigurationInvalid
from arbor.memory.maintenance.health import (
    METRIC_RULES,
    HealthState,
    Limit,
    Metric,
    judge,
    judge_job,
    judge_metric,
    parse_limits,
    worst,
)


def test_every_metric_has_a_limit_and_a_remedy() -> None:
    assert set(METRIC_RULES) == set(Metric)
    for metric in Metric:
        bad = judge_metric(metric, count=10**9, most=10**9, age_s=1e12, limits={})
        assert bad.state is not HealthState.OK
        assert bad.title
        assert bad.remedy
        fine = judge_metric(metric, count=0, limits={})
        assert (fine.state, fine.remedy) == (HealthState.OK, "")


@pytest.mark.parametrize(
    ("value", "state"),
    [
        (99, HealthState.OK),
        (100, HealthState.WARN),
        (999, HealthState.WARN),
        (1000, HealthState.CRITICAL),
        (math.nan, HealthState.CRITICAL),
    ],
)
def test_a_limit_applies_from_its_value_on(value: float, state: HealthState) -> None:
    assert judge(value, Limit(warn=100, critical=1000)) is state


def test_limits_apply_to_the_memory_of_one_agent() -> None:
    stale = Metric.STALE_NEIGHBORHOODS
    assert judge_metric(stale, count=5_000, most=99, limits={}).state is HealthState.OK
    assert judge_metric(stale, count=5_000, most=100, limits={}).state is HealthState.WARN
    episodes = Metric.UNSUMMARIZED_EPISODES
    assert [judge_metric(episodes, count=10, most=most, limits={}).state for most in (9, 10)] == [
        HealthState.OK,
        HealthState.WARN,
    ]


@given(st.floats(0, 1e9), st.floats(0, 1e9))
def test_more_is_never_better(value: float, more: float) -> None:
    limit = Limit(warn=10, critical=1000)
    assert judge(value + more, limit).rank >= judge(value, limit).rank


def test_operators_configure_the_limits() -> None:
    limits = parse_limits(" stale_neighborhoods=200:5000, expired=60:inf,")
    assert limits == {
        Metric.STALE_NEIGHBORHOODS: Limit(warn=200, critical=5000),
        Metric.EXPIRED: Limit(warn=60, critical=math.inf),
    }
    assert parse_limits("") == {}
    assert judge_metric(Metric.EXPIRED, count=1, age_s=1e9, limits=limits).state is HealthState.WARN


@pytest.mark.parametrize(
    "text",
    ["nonsense=1:2", "expired", "expired=1", "expired=a:b", "expired=5:1", "expired=0:1", "expired=nan:1"],
)
def test_invalid_limits_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=r"ARBOR_HEALTH_LIMITS has .*WARN:CRITICAL"):
        parse_limits(text)


@pytest.mark.parametrize(
    ("since_success", "since_first", "state"),
    # Three periods of a minute and ten, each with five minutes for the start.
    [
        (0, 0, HealthState.OK),
        (479, 9999, HealthState.OK),
        (480, 9999, HealthState.WARN),
        (900, 9999, HealthState.CRITICAL),
        (None, 100, HealthState.OK),
        (None, 9999, HealthState.CRITICAL),
        (-50, 0, HealthState.OK),
    ],
)
def test_a_job_is_late_after_three_periods_and_dead_after_ten(
    since_success: float | None, since_first: float, state: HealthState
) -> None:
    assert judge_job(period_s=60, since_success_s=since_success, since_first_s=since_first) is state


def test_a_job_that_is_switched_off_is_no_fault() -> None:
    assert judge_job(period_s=0, since_success_s=9999, since_first_s=9999, failed=1) is HealthState.OK


def test_a_run_with_failed_steps_is_reported() -> None:
    late = {"period_s": 60, "since_first_s": 9999}
    assert judge_job(**late, since_success_s=0, failed=1) is HealthState.WARN
    assert judge_job(**late, since_success_s=9999, failed=1) is HealthState.CRITICAL


def test_the_worst_of_several_states_counts() -> None:
    assert worst([]) is HealthState.OK
    assert worst([HealthState.OK, HealthState.CRITICAL, HealthState.WARN]) is HealthState.CRITICAL
