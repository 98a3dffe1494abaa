"""Texts that count as duplicates."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from arbor.memory.duplicates import FILLERS, says_the_same

_SAID = """
paul anna berlin rome moved from to lent car monday friday seven one two finished started not never she he 4711
"""
#: Words that say something, and numbers.
WORDS = st.lists(st.sampled_from(_SAID.split()), min_size=2, max_size=12)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The gate code is 4711.", "the gate code is 4711"),
        ("The ferry doesn't leave.", "The ferry does not leave."),
        ("The ferry won’t leave.", "The ferry will not leave."),
        ("We can't go.", "We cannot go."),
        ("It cost 12,000 euros.", "It cost 12000 euros."),
        ("The ferry leaves at dawn!", "ferry leaves, at dawn"),
        ("Please open the gate.", "Open the gate, please."),
        ("Oh, um, Paul has a dog.", "Paul has the dog"),
        ("Anna said: “the ice holds”", "Anna said (the ice holds)."),
        ("Hello!", "hello"),
    ],
)
def test_case_punctuation_articles_and_fillers_do_not_count(one: str, other: str) -> None:
    assert says_the_same(one, other)
    assert says_the_same(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Paul moved from Berlin to Rome.", "Paul moved from Rome to Berlin."),
        ("Anna lent Bob her car.", "Bob lent Anna her car."),
        ("I prefer tea over coffee.", "I prefer coffee over tea."),
        (
            "The meeting with the harbour office about the new pier is on Monday at the town hall.",
            "The meeting with the harbour office about the new pier is on Friday at the town hall.",
        ),
        ("The code is seven one one.", "The code is seven one two."),
        ("The team finished the work on the bridge.", "The team started the work on the bridge."),
        ("I owe you ten.", "You owe me ten."),
        ("She is ill.", "He is ill."),
        ("The key is under the mat.", "The key is on the mat."),
        ("Paul left.", "Paul leaves."),
        ("The gate code is 4711.", "The gate code is 4712."),
        ("The gate code is 4711.", "The gate code is not 4711."),
        ("The ferry leaves.", "The ferry does not leave."),
        ("The ferry can’t leave.", "The ferry can leave."),
        ("Room 3 has 2 beds.", "Room 2 has 3 beds."),
        ("Version 1.2.3 is out.", "Version 1.2.4 is out."),
        ("She likes gpt4.", "She likes gpt5."),
        ("Nobody came.", "Somebody came."),
        ("It is -5 degrees.", "It is 5 degrees."),
        ("He writes C++.", "He writes C#."),
        ("It costs 5 €.", "It costs 5 $."),
        ("The ice holds.", "The ice holds?"),
        ("\N{THUMBS UP SIGN}", "\N{THUMBS DOWN SIGN}"),
        ("She lacks vitamin A.", "She lacks vitamin."),
        ("The key is " + "a" * 40 + "b", "The key is " + "a" * 40 + "c"),
        ("He has a few friends.", "He has few friends."),
        ("Hello!", "Thanks!"),
    ],
)
def test_other_words_or_another_order_say_something_else(one: str, other: str) -> None:
    assert not says_the_same(one, other)
    assert not says_the_same(other, one)


@given(st.text())
def test_a_text_says_the_same_as_itself_whatever_its_case(text: str) -> None:
    assert says_the_same(text, text)


@given(WORDS, st.data())
def test_two_words_swapped_say_something_else(words: list[str], data: st.DataObject) -> None:
    one, other = (data.draw(st.integers(0, len(words) - 1)) for _ in range(2))
    assume(words[one] != words[other])
    swapped = [*words]
    swapped[one], swapped[other] = words[other], words[one]
    assert not says_the_same(" ".join(words), " ".join(swapped))


@given(
    WORDS, st.data(), st.from_regex(r"[a-z]{2,9}", fullmatch=True).filter(lambda word: word not in FILLERS)
)
def test_a_word_replaced_says_something_else(words: list[str], data: st.DataObject, new: str) -> None:
    place = data.draw(st.integers(0, len(words) - 1))
    assume(words[place] != new and "cannot" not in (words[place], new))
    replaced = [*words[:place], new, *words[place + 1 :]]
    assert not says_the_same(" ".join(words), " ".join(replaced))


@given(WORDS, st.data())
def test_fillers_and_punctuation_change_nothing(words: list[str], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(words) - 1))
    filler = data.draw(st.sampled_from(sorted(FILLERS)))
    longer = [*words[:place], f"{filler},", *words[place:]]
    assert says_the_same(" ".join(words), " ".join(longer).upper() + "!")
