"""Importance decays with time, never below 0 and never above the original."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.memory.forgetting import days_between, relevance

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
FRACTIONS = st.floats(0, 1)
RATES = st.floats(0, 1e6)
DAYS = st.floats(-1e6, 1e6)


def test_a_hundred_days_at_the_usual_rate_leave_a_share_of_one_in_e() -> None:
    faded = relevance(importance=0.8, decay_rate=0.01, days_since_access=100)
    assert faded == pytest.approx(0.8 / math.e)


def test_a_clock_that_jumps_back_makes_nothing_more_relevant() -> None:
    assert days_between(NOON, NOON - timedelta(days=3)) == 0
    assert relevance(importance=0.8, decay_rate=0.01, days_since_access=-50) == 0.8


def test_half_a_day_is_half_a_day() -> None:
    assert days_between(NOON, NOON + timedelta(hours=12)) == 0.5


@given(importance=FRACTIONS, rate=RATES, days=DAYS)
def test_relevance_stays_between_nothing_and_importance(importance: float, rate: float, days: float) -> None:
    assert 0 <= relevance(importance=importance, decay_rate=rate, days_since_access=days) <= importance


@given(importance=FRACTIONS, rate=RATES, days=DAYS, more=st.floats(0, 1e3))
def test_relevance_never_grows_with_time(importance: float, rate: float, days: float, more: float) -> None:
    now = relevance(importance=importance, decay_rate=rate, days_since_access=days)
    assert relevance(importance=importance, decay_rate=rate, days_since_access=days + more) <= now
