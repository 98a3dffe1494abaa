"""Which texts may stand for each other, and what being remembered again is worth."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.memory.duplicates import reinforced_importance, says_the_same

IMPORTANCE = st.floats(0, 1)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("The gate code is 4711.", "the gate code is 4711", True),
        ("The gate code is 4711.", "The gate code is 4712.", False),
        ("The gate code is 4711.", "The gate code is not 4711.", False),
        ("The ferry leaves.", "The ferry does not leave.", False),
        ("The ferry doesn't leave.", "The ferry does not leave.", True),
        ("The ferry can’t leave.", "The ferry can leave.", False),
        ("Room 3 has 2 beds.", "Room 2 has 3 beds.", False),
        ("It cost 12,000 euros.", "It cost 12000 euros.", True),
        ("Version 1.2.3 is out.", "Version 1.2.4 is out.", False),
        ("She likes gpt4.", "She likes gpt5.", False),
        ("Nobody came.", "Somebody came.", False),
        ("The river froze.", "The river is frozen.", True),
    ],
)
def test_digits_and_negations_must_agree(one: str, other: str, same: bool) -> None:
    assert says_the_same(one, other) is same
    assert says_the_same(other, one) is same


@given(st.text())
def test_a_text_says_the_same_as_itself_whatever_its_case(text: str) -> None:
    assert says_the_same(text, text)


@given(IMPORTANCE, st.integers(0, 10**9))
def test_a_boost_is_bounded_and_grows_with_each_time(importance: float, times: int) -> None:
    boosted = reinforced_importance(importance, times)
    assert importance <= boosted <= 1
    assert boosted <= reinforced_importance(importance, times + 1)


@given(IMPORTANCE, IMPORTANCE, st.integers(0, 1000))
def test_boosts_keep_the_order_of_importance(one: float, other: float, times: int) -> None:
    low, high = sorted((one, other))
    assert reinforced_importance(low, times) <= reinforced_importance(high, times) + 1e-12


def test_the_boost_is_a_tenth_of_the_logarithm_of_what_is_left() -> None:
    assert reinforced_importance(0.5, 0) == 0.5
    assert reinforced_importance(0.5, 1) == pytest.approx(0.5 + 0.5 * 0.1 * 0.693147, abs=1e-6)
    assert reinforced_importance(0.5, 10**9) == 1
    assert reinforced_importance(0.5, -3) == 0.5
