"""Forgetting: rules, protected memories, and the decay of importance."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from arbor.errors import ConfigurationInvalid
from arbor.memory.forgetting import (
    ForgettableMemory,
    ForgettingPolicy,
    ForgettingReason,
    days_between,
    decayed_importance,
    effective_importance,
    forgetting_reason,
    relevance,
)
from arbor.memory.values import MemoryType, Retention

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
POLICY = ForgettingPolicy()
FRACTIONS = st.floats(0, 1)
USES = st.integers(0, 10**9)
AGES = st.timedeltas(timedelta(0), timedelta(days=20_000))
MOMENTS = st.timedeltas(timedelta(days=-20_000), timedelta(days=20_000)).map(lambda age: NOON + age)
RETENTIONS = st.sampled_from(Retention)
TYPES = st.sampled_from(MemoryType)


def memory_with(*, age: timedelta = timedelta(days=2), **parts: Any) -> ForgettableMemory:
    values: dict[str, Any] = {
        "type": MemoryType.EPISODIC,
        "importance": 0.5,
        "retention": Retention.LASTING,
        "created_at": NOON - age,
        **parts,
    }
    return ForgettableMemory(**values)


@st.composite
def memories(draw: st.DrawFn) -> ForgettableMemory:
    created_at = NOON - draw(AGES)
    return ForgettableMemory(
        type=draw(TYPES),
        importance=draw(FRACTIONS),
        retention=draw(RETENTIONS),
        created_at=created_at,
        used_at=draw(st.none() | MOMENTS),
        uses=draw(USES),
        expires_at=draw(st.none() | AGES.map(lambda age: NOON + age)),
        needed=draw(st.booleans()),
    )


WEEK = timedelta(weeks=1)


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({}, None),
        ({"importance": 0.19}, ForgettingReason.TRIVIAL),
        ({"importance": 0.2}, None),
        ({"importance": 0.19, "age": timedelta(hours=23)}, None),
        # A fact is not small talk: it is forgotten when it has faded.
        ({"importance": 0.19, "type": MemoryType.SEMANTIC}, None),
        # 0.15 + 0.85 · 0.1 · ln(1 + 1) = 0.209
        ({"importance": 0.15, "uses": 1}, None),
        ({"importance": 0.09, "type": MemoryType.SEMANTIC}, ForgettingReason.FADED),
        ({"importance": 0.09, "age": timedelta(hours=1)}, None),
        # 0.5 · 0.95^31 = 0.102, and a week later 0.097
        ({"age": 31 * WEEK}, None),
        ({"age": 32 * WEEK}, ForgettingReason.FADED),
        ({"age": 32 * WEEK, "used_at": NOON - 2 * WEEK, "uses": 1}, None),
        ({"age": 32 * WEEK, "retention": Retention.PERMANENT}, None),
        ({"age": 32 * WEEK, "needed": True}, None),
        ({"importance": 0.0, "retention": Retention.PERMANENT}, None),
        ({"expires_at": NOON}, ForgettingReason.EXPIRED),
        ({"expires_at": NOON + timedelta(seconds=1)}, None),
        # An explicit expiry applies to protected memories too.
        ({"expires_at": NOON, "retention": Retention.PERMANENT}, ForgettingReason.EXPIRED),
    ],
)
def test_each_rule_has_its_limit(parts: dict[str, Any], reason: ForgettingReason | None) -> None:
    assert forgetting_reason(memory_with(**parts), now=NOON, policy=POLICY) is reason


@given(memory=memories(), later=AGES)
def test_a_forgotten_memory_would_also_be_forgotten_later(
    memory: ForgettableMemory, later: timedelta
) -> None:
    if forgetting_reason(memory, now=NOON, policy=POLICY):
        assert forgetting_reason(memory, now=NOON + later, policy=POLICY)


@given(memory=memories(), more=st.integers(1, 1000), later=AGES)
def test_use_never_causes_forgetting(memory: ForgettableMemory, more: int, later: timedelta) -> None:
    used = replace(memory, used_at=max(memory.touched_at, NOON), uses=memory.uses + more)
    if not forgetting_reason(memory, now=NOON + later, policy=POLICY):
        assert not forgetting_reason(used, now=NOON + later, policy=POLICY)


@given(memory=memories(), later=AGES)
def test_a_protected_memory_expires_only_by_its_own_date(memory: ForgettableMemory, later: timedelta) -> None:
    assume(memory.is_protected)
    assert forgetting_reason(memory, now=NOON + later, policy=POLICY) in (None, ForgettingReason.EXPIRED)


@given(memory=memories(), back=AGES)
def test_a_clock_that_jumps_back_forgets_nothing_more(memory: ForgettableMemory, back: timedelta) -> None:
    if not forgetting_reason(memory, now=NOON, policy=POLICY):
        assert not forgetting_reason(memory, now=NOON - back, policy=POLICY)


@given(importance=FRACTIONS, uses=USES)
def test_use_adds_to_importance_and_never_beyond_one(importance: float, uses: int) -> None:
    now = effective_importance(importance=importance, uses=uses)
    assert importance <= now <= 1
    assert now <= effective_importance(importance=importance, uses=uses + 1)


@given(importance=FRACTIONS, days=st.floats(-1e9, 1e9), more=st.floats(0, 1e9))
def test_importance_decays_with_time_and_never_below_zero(
    importance: float, days: float, more: float
) -> None:
    now = decayed_importance(importance=importance, days_since_use=days)
    assert 0 <= decayed_importance(importance=importance, days_since_use=days + more) <= now <= importance


def test_the_boost_is_a_share_of_the_remaining_distance() -> None:
    assert effective_importance(importance=0.5, uses=0) == 0.5
    assert effective_importance(importance=0.5, uses=1) == pytest.approx(0.5347, abs=1e-4)
    assert effective_importance(importance=1.0, uses=50) == 1.0
    assert effective_importance(importance=0.5, uses=-3) == 0.5


def test_a_week_leaves_nineteen_twentieths() -> None:
    assert decayed_importance(importance=0.8, days_since_use=7) == pytest.approx(0.76)


@pytest.mark.parametrize(
    "limits",
    [
        {"archive_below": float("nan")},
        {"archive_below": 1.1},
        {"cleanup_below": -0.1},
        {"grace": timedelta(seconds=-1)},
        {"quota": 0},
    ],
)
def test_invalid_limits_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationInvalid, match=r"must"):
        ForgettingPolicy(**limits)


RATES = st.floats(0, 1e6)
DAYS = st.floats(-1e6, 1e6)


def test_a_hundred_days_at_the_usual_rate_leave_one_in_e() -> None:
    faded = relevance(importance=0.8, decay_rate=0.01, days_since_access=100)
    assert faded == pytest.approx(0.8 / math.e)


def test_a_clock_that_jumps_back_raises_no_relevance() -> None:
    assert days_between(NOON, NOON - timedelta(days=3)) == 0
    assert relevance(importance=0.8, decay_rate=0.01, days_since_access=-50) == 0.8


def test_hours_count_as_a_part_of_a_day() -> None:
    assert days_between(NOON, NOON + timedelta(hours=12)) == 0.5


@given(importance=FRACTIONS, rate=RATES, days=DAYS)
def test_relevance_stays_between_zero_and_importance(importance: float, rate: float, days: float) -> None:
    assert 0 <= relevance(importance=importance, decay_rate=rate, days_since_access=days) <= importance


@given(importance=FRACTIONS, rate=RATES, days=DAYS, more=st.floats(0, 1e3))
def test_relevance_never_grows_with_time(importance: float, rate: float, days: float, more: float) -> None:
    now = relevance(importance=importance, decay_rate=rate, days_since_access=days)
    assert relevance(importance=importance, decay_rate=rate, days_since_access=days + more) <= now
