"""The satisfaction of ended goals, and expected rewards."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.goals.priority import REWARD_BY_SOURCE
from arbor.goals.satisfaction import ExperiencedReward, GoalOutcome, expected_reward, satisfaction
from arbor.goals.values import GoalSource

ASKED, CURIOUS = GoalSource.USER_REQUEST, GoalSource.CURIOSITY


@pytest.mark.parametrize(
    ("source", "stated", "experienced", "expected"),
    [
        (ASKED, None, None, 1.0),
        (CURIOUS, None, None, 0.3),
        (CURIOUS, 0.9, ExperiencedReward(mean=0.0, goals=9), 0.9),
        (ASKED, None, ExperiencedReward(mean=0.0, goals=0), 1.0),
        (ASKED, None, ExperiencedReward(mean=0.0, goals=3), 0.5),
        (ASKED, None, ExperiencedReward(mean=0.0, goals=9), 0.25),
        (CURIOUS, None, ExperiencedReward(mean=0.3, goals=5), pytest.approx(0.3)),
    ],
)
def test_a_reward_is_expected_by_source_and_drawn_towards_experience(
    source: GoalSource, stated: float | None, experienced: ExperiencedReward | None, expected: float
) -> None:
    assert expected_reward(source, stated, experienced) == expected


@pytest.mark.parametrize(
    ("completed", "fraction", "outcome", "reward", "reputation"),
    [
        (True, 0.2, GoalOutcome.SUCCESS, 1.0, pytest.approx(0.08)),
        (False, 0.0, GoalOutcome.FAILURE, 0.0, pytest.approx(-0.08)),
        (False, 0.49, GoalOutcome.FAILURE, 0.0, pytest.approx(-0.08)),
        (False, 0.5, GoalOutcome.PARTIAL, 0.5, pytest.approx(-0.08)),
    ],
)
def test_a_satisfaction_contains_outcome_reward_and_reputation(
    completed: bool, fraction: float, outcome: GoalOutcome, reward: float, reputation: float
) -> None:
    result = satisfaction(
        ASKED, completed=completed, fraction=fraction, stated=None, experienced=None, effort=4
    )
    assert (result.outcome, result.reward_actual, result.reward_expected) == (outcome, reward, 1.0)
    assert (result.reputation_delta, result.effort) == (reputation, 4)


@given(
    st.sampled_from(GoalSource),
    st.none() | st.floats(0, 1),
    st.floats(0, 1),
    st.integers(0, 10_000),
    st.booleans(),
    st.floats(0, 1),
)
def test_a_satisfaction_stays_in_its_ranges(
    source: GoalSource, stated: float | None, mean: float, goals: int, completed: bool, fraction: float
) -> None:
    result = satisfaction(
        source,
        completed=completed,
        fraction=fraction,
        stated=stated,
        experienced=ExperiencedReward(mean=mean, goals=goals),
        effort=1,
    )
    assert 0 <= result.reward_actual <= 1
    assert -1e-9 <= result.reward_expected <= 1 + 1e-9
    assert -1 <= result.reputation_delta <= 1
    assert 0 <= result.novelty <= 1


def test_repeated_failure_lowers_the_expected_reward_of_a_source() -> None:
    before = REWARD_BY_SOURCE[ASKED]
    after = expected_reward(ASKED, None, ExperiencedReward(mean=0.1, goals=20))
    assert after < before / 2
