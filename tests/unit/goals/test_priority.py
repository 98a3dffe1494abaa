"""The formula that orders goals."""

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
    capability_match,
    estimate_terms,
    priority,
    urgency,
)
from arbor.goals.values import GoalSource

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
def test_a_nearer_deadline_raises_the_urgency(left: timedelta | None, expected: float) -> None:
    assert urgency(None if left is None else NOW + left, NOW) == expected


def test_a_user_request_outranks_curiosity() -> None:
    requested, curious = (
        priority(estimate_terms(source, fraction=0.0, deadline=None, now=NOW), PriorityWeights())
        for source in (GoalSource.USER_REQUEST, GoalSource.CURIOSITY)
    )

    assert requested > curious


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
    ("actions", "learned", "expected"),
    [
        ((), {}, 0.5),
        (("recall",), {}, 0.5),
        (("recall",), {"recall": [4, 3]}, 0.75),
        (("recall",), {"recall": [0, 0]}, 0.5),
        (("recall", "connect"), {"recall": [2, 2]}, 0.75),
        (("recall", "connect"), {"recall": [2, 2], "connect": [4, 0], "rest": [9, 9]}, 0.5),
        (("recall",), {"recall": [1, 9]}, 1.0),
    ],
)
def test_a_match_is_the_success_rate_of_the_actions_of_a_goal(
    actions: tuple[str, ...], learned: dict[str, list[int]], expected: float
) -> None:
    assert capability_match(actions, learned) == expected


def test_a_stated_or_learned_reward_and_match_replace_the_estimates() -> None:
    terms = estimate_terms(
        GoalSource.CURIOSITY, fraction=0.5, deadline=None, now=NOW, reward=0.9, capability=0.8
    )
    assert (terms.reward, terms.capability, terms.novelty) == (0.9, 0.8, 0.5)
