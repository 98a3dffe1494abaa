"""How a goal comes to feel."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.goals.values import FEELING_OF_FAILED_STEP, FEELING_OF_PROGRESS, feeling_word, move_feeling


@pytest.mark.parametrize(
    ("before", "by", "after"),
    [
        (0.0, FEELING_OF_PROGRESS, 0.1),
        (0.0, FEELING_OF_FAILED_STEP, -0.1),
        (0.9, FEELING_OF_PROGRESS, 0.91),
        (-1.0, FEELING_OF_FAILED_STEP, -1.0),
    ],
)
def test_what_happens_to_a_goal_moves_how_it_feels(before: float, by: float, after: float) -> None:
    assert move_feeling(before, by) == pytest.approx(after)


@given(valence=st.floats(-1, 1), by=st.sampled_from([FEELING_OF_PROGRESS, FEELING_OF_FAILED_STEP]))
def test_it_stays_on_the_scale_and_moves_the_right_way(valence: float, by: float) -> None:
    after = move_feeling(valence, by)
    assert -1 <= after <= 1
    assert (after - valence) * by >= -1e-4


@pytest.mark.parametrize(
    ("valence", "word"), [(0.0, ""), (0.29, ""), (0.3, "feels good"), (-0.5, "feels bad")]
)
def test_only_what_is_felt_is_named(valence: float, word: str) -> None:
    assert feeling_word(valence) == word
