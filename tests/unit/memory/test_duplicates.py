"""Texts that count as duplicates, and the merged details of two memories."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from arbor.ids import uuid7
from arbor.memory.details import (
    MAX_ENTRIES,
    Detail,
    Emotion,
    EpisodicDetail,
    ProceduralDetail,
    SemanticDetail,
    StrategicDetail,
)
from arbor.memory.duplicates import FILLERS, merge_details, says_the_same
from arbor.memory.trust import Source

_VOCABULARY = """
paul anna berlin rome moved from to lent car monday friday seven one two finished started not never she he 4711
"""
#: Words with a meaning, and numbers.
WORDS = st.lists(st.sampled_from(_VOCABULARY.split()), min_size=2, max_size=12)


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
def test_other_words_or_another_order_are_no_duplicate(one: str, other: str) -> None:
    assert not says_the_same(one, other)
    assert not says_the_same(other, one)


@given(st.text())
def test_every_text_is_a_duplicate_of_itself(text: str) -> None:
    assert says_the_same(text, text)


@given(WORDS, st.data())
def test_two_swapped_words_are_no_duplicate(words: list[str], data: st.DataObject) -> None:
    one, other = (data.draw(st.integers(0, len(words) - 1)) for _ in range(2))
    assume(words[one] != words[other])
    swapped = [*words]
    swapped[one], swapped[other] = words[other], words[one]
    assert not says_the_same(" ".join(words), " ".join(swapped))


@given(
    WORDS, st.data(), st.from_regex(r"[a-z]{2,9}", fullmatch=True).filter(lambda word: word not in FILLERS)
)
def test_a_replaced_word_is_no_duplicate(words: list[str], data: st.DataObject, new: str) -> None:
    place = data.draw(st.integers(0, len(words) - 1))
    assume(words[place] != new)
    replaced = [*words[:place], new, *words[place + 1 :]]
    assert not says_the_same(" ".join(words), " ".join(replaced))


@given(WORDS, st.data())
def test_fillers_and_punctuation_change_nothing(words: list[str], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(words) - 1))
    filler = data.draw(st.sampled_from(sorted(FILLERS)))
    longer = [*words[:place], f"{filler},", *words[place:]]
    assert says_the_same(" ".join(words), " ".join(longer).upper() + "!")


A, B = Source(kind="url", reference="a"), Source(kind="url", reference="b")
ONE, OTHER = uuid7(), uuid7()
NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("old", "new", "both"),
    [
        (
            EpisodicDetail(action="asked"),
            EpisodicDetail(context="harbour", result="laughter", emotion=Emotion(valence=-0.4)),
            EpisodicDetail(
                context="harbour", action="asked", result="laughter", emotion=Emotion(valence=-0.4)
            ),
        ),
        (EpisodicDetail(), EpisodicDetail(event_time=NOON), EpisodicDetail(event_time=NOON)),
        (
            SemanticDetail(confidence=0.6, sources=(A,), contradictions=(ONE,)),
            SemanticDetail(
                confidence=0.8, category="ice", sources=(B,), contradictions=(OTHER,), alignment=0.2
            ),
            SemanticDetail(
                confidence=0.8, category="ice", sources=(A, B), contradictions=(ONE, OTHER), alignment=0.2
            ),
        ),
        (
            ProceduralDetail(steps=("Push.",), prerequisites=("a key",)),
            ProceduralDetail(steps=("Push.",), prerequisites=("a lamp", "a key")),
            ProceduralDetail(steps=("Push.",), prerequisites=("a key", "a lamp")),
        ),
        (ProceduralDetail(), ProceduralDetail(steps=("Push.",)), ProceduralDetail(steps=("Push.",))),
        (
            StrategicDetail(pattern="storms", confidence=0.5, evidence=("May",)),
            StrategicDetail(pattern="storms", confidence=0.9, evidence=("June",), applicability=("spring",)),
            StrategicDetail(
                pattern="storms", confidence=0.9, evidence=("May", "June"), applicability=("spring",)
            ),
        ),
        (
            SemanticDetail(extra={"page": 7, "wordings": ["x"]}),
            SemanticDetail(extra={"page": 8, "line": 1}),
            SemanticDetail(extra={"page": 7, "line": 1, "wordings": ["x"]}),
        ),
    ],
)
def test_merged_details_complete_each_other(old: Detail, new: Detail, both: Detail) -> None:
    assert merge_details(old, new) == both


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (EpisodicDetail(action="asked"), EpisodicDetail(action="shouted")),
        (EpisodicDetail(result="laughter"), EpisodicDetail(result="silence")),
        (EpisodicDetail(context="harbour"), EpisodicDetail(context="kitchen")),
        (EpisodicDetail(emotion=Emotion(label="joy")), EpisodicDetail(emotion=Emotion(label="shame"))),
        (SemanticDetail(category="ice"), SemanticDetail(category="water")),
        (ProceduralDetail(steps=("Push.",)), ProceduralDetail(steps=("Pull.",))),
        (ProceduralDetail(steps=("Turn.", "Push.")), ProceduralDetail(steps=("Push.", "Turn."))),
        (StrategicDetail(pattern="storms"), StrategicDetail(pattern="calm")),
        (
            StrategicDetail(evidence=tuple(f"a{number}" for number in range(MAX_ENTRIES))),
            StrategicDetail(evidence=("b",)),
        ),
        (SemanticDetail(), ProceduralDetail()),
    ],
)
def test_contradicting_details_are_not_merged(old: Detail, new: Detail) -> None:
    assert merge_details(old, new) is None
    assert merge_details(new, old) is None


_LISTS = st.lists(st.sampled_from("abcdef"), max_size=6, unique=True).map(tuple)


@given(_LISTS, _LISTS, st.floats(0, 1), st.floats(0, 1))
def test_merging_loses_no_evidence_or_confidence(
    old: tuple[str, ...], new: tuple[str, ...], one: float, other: float
) -> None:
    both = merge_details(
        StrategicDetail(evidence=old, confidence=one), StrategicDetail(evidence=new, confidence=other)
    )
    assert isinstance(both, StrategicDetail)
    assert both.evidence[: len(old)] == old
    assert {*both.evidence} == {*old, *new}
    assert both.confidence == max(one, other)
    assert merge_details(both, StrategicDetail(evidence=new, confidence=other)) == both
