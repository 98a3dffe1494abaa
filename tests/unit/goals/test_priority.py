"""The formula that orders goals, and the flags of a review."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.agents.genome import AgentTraits
from arbor.goals.priority import (
    REWARD_BY_SOURCE,
    PriorityTerms,
    PriorityWeights,
    estimate_terms,
    priority,
    urgency,
)
from arbor.goals.review import GoalFlag, flag_goal
from arbor.goals.values import GoalSource, GoalState

NOW = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
TERMS = PriorityTerms(urgency=1.5, reward=0.8, capability=0.5, novelty=0.4, social=0.6)


def traits(risk: float, collaboration: float, breadth: float, speed: float) -> AgentTraits:
    return AgentTraits(
        risk_tolerance=risk, collaboration=collaboration, depth_vs_breadth=breadth, quality_vs_speed=speed
    )


@pytest.mark.parametrize(
    ("who", "expected"),
    [
        # urgency 1.5 + reward w·.8 + capability w·.5 + novelty w·.4 + social w·.6, by hand
        (traits(0, 0, 0, 0), 1.5 + 1.0 * 0.8 + 1.0 * 0.5),
        (traits(1, 1, 1, 1), 1.5 + 0.5 * 0.8 + 0.5 * 0.5 + 0.5 * 0.4 + 0.5 * 0.6),
        (traits(0.5, 0.5, 0.5, 0.5), 1.5 + 0.75 * 0.8 + 0.75 * 0.5 + 0.25 * 0.4 + 0.25 * 0.6),
        (traits(0.9, 0.4, 0.7, 0.7), 1.5 + 0.65 * 0.8 + 0.65 * 0.5 + 0.45 * 0.4 + 0.2 * 0.6),
        (traits(0.3, 0.8, 0.4, 0.1), 1.5 + 0.95 * 0.8 + 0.8 * 0.5 + 0.15 * 0.4 + 0.4 * 0.6),
    ],
)
def test_the_priority_is_the_weighted_sum_of_the_seed(who: AgentTraits, expected: float) -> None:
    assert priority(TERMS, PriorityWeights.of(who)) == pytest.approx(expected)


def test_an_agent_without_traits_counts_as_balanced() -> None:
    assert PriorityWeights() == PriorityWeights.of(traits(0.5, 0.5, 0.5, 0.5))


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        (None, 1.0),
        (timedelta(seconds=-1), 2.0),
        (timedelta(0), 2.0),
        (timedelta(minutes=1), 1.8),
        (timedelta(hours=1), 1.8),
        (timedelta(hours=1, seconds=1), 1.5),
        (timedelta(hours=24), 1.5),
        (timedelta(days=2), 1.2),
        (timedelta(days=7), 1.2),
        (timedelta(days=7, seconds=1), 1.0),
        (timedelta(days=3650), 1.0),
    ],
)
def test_a_goal_presses_more_the_nearer_its_deadline(left: timedelta | None, expected: float) -> None:
    assert urgency(None if left is None else NOW + left, NOW) == expected


def test_what_the_user_wants_goes_before_what_merely_interests() -> None:
    asked, curious = (
        priority(estimate_terms(source, fraction=0.0, deadline=None, now=NOW), PriorityWeights())
        for source in (GoalSource.USER_REQUEST, GoalSource.CURIOSITY)
    )

    assert asked > curious


def test_every_source_has_a_reward() -> None:
    assert set(REWARD_BY_SOURCE) == set(GoalSource)


@given(
    st.sampled_from(GoalSource),
    st.floats(0, 1),
    st.none() | st.datetimes(timezones=st.just(UTC)),
    st.tuples(*[st.floats(0, 1)] * 4),
)
def test_a_priority_is_always_between_one_and_five_and_a_half(
    source: GoalSource,
    fraction: float,
    deadline: datetime | None,
    leanings: tuple[float, float, float, float],
) -> None:
    terms = estimate_terms(source, fraction=fraction, deadline=deadline, now=NOW)

    assert 1.0 <= priority(terms, PriorityWeights.of(traits(*leanings))) <= 5.5


@pytest.mark.parametrize(
    ("state", "idle", "blocked_by", "due", "expected"),
    [
        (GoalState.ACTIVE, timedelta(days=7), "", None, ()),
        (GoalState.ACTIVE, timedelta(days=7, seconds=1), "", None, (GoalFlag.STALE,)),
        (GoalState.QUEUED, timedelta(days=30), "", None, ()),
        (GoalState.QUEUED, timedelta(0), "the survey", None, (GoalFlag.BLOCKED,)),
        (GoalState.BACKBURNER, timedelta(0), "  ", timedelta(hours=-1), (GoalFlag.OVERDUE,)),
        (GoalState.ACTIVE, timedelta(0), "", timedelta(hours=1), ()),
        (
            GoalState.ACTIVE,
            timedelta(days=8),
            "x",
            timedelta(days=-1),
            (GoalFlag.BLOCKED, GoalFlag.STALE, GoalFlag.OVERDUE),
        ),
        (GoalState.COMPLETED, timedelta(days=8), "x", timedelta(days=-1), ()),
    ],
)
def test_a_review_flags_what_wants_attention(
    state: GoalState, idle: timedelta, blocked_by: str, due: timedelta | None, expected: tuple[GoalFlag, ...]
) -> None:
    deadline = None if due is None else NOW + due

    assert (
        flag_goal(state, touched_at=NOW - idle, blocked_by=blocked_by, deadline=deadline, now=NOW) == expected
    )
