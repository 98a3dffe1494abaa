"""How a goal comes to feel."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.goals.values import FURTHER_ON, STEP_FAILED, felt_after, in_a_word


@pytest.mark.parametrize(
    ("before", "by", "after"),
    [(0.0, FURTHER_ON, 0.1), (0.0, STEP_FAILED, -0.1), (0.9, FURTHER_ON, 0.91), (-1.0, STEP_FAILED, -1.0)],
)
def test_events_of_a_goal_move_its_valence(before: float, by: float, after: float) -> None:
    assert felt_after(before, by) == pytest.approx(after)


@given(valence=st.floats(-1, 1), by=st.sampled_from([FURTHER_ON, STEP_FAILED]))
def test_valence_stays_in_range_and_moves_in_the_right_direction(valence: float, by: float) -> None:
    after = felt_after(valence, by)
    assert -1 <= after <= 1
    assert (after - valence) * by >= -1e-4


@pytest.mark.parametrize(
    ("valence", "word"), [(0.0, ""), (0.29, ""), (0.3, "feels good"), (-0.5, "feels bad")]
)
def test_only_what_is_felt_is_named(valence: float, word: str) -> None:
    assert in_a_word(valence) == word
