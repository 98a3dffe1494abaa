"""Which texts may stand for each other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.memory.duplicates import says_the_same


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
