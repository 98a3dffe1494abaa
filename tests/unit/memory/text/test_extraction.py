"""Concepts by rule: names, phrases and repeated words; never stop words."""

from __future__ import annotations

import timeit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.memory.concepts import concept_key
from arbor.memory.text import extraction
from arbor.memory.text.extraction import EXTRACTED_NAME_LENGTH, MAX_CONCEPTS, READ_CHARACTERS, concepts_in


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("We bought the red kayak for Lisbon.", {"Lisbon", "red kayak"}),
        ("The kayak leaks. A kayak should not.", {"kayak"}),
        ("I work for the Port Authority now.", {"Port Authority", "work"}),
        ("The API key of the payment gateway is old.", {"API", "api key", "payment gateway"}),
        ("Yesterday was nice.", set()),
        ("Boats, boats, boats!", {"boat"}),
        ("Stories and leaves", {"story", "leaf"}),
        ("See https://example.org/secret-path or write to ada@example.org", {"write"}),
        ("1234 5678", set()),
        ("我们昨天去了海边。", set()),
        ("The violin was Jean-Luc’s", {"Jean-Luc", "violin"}),
        ("", set()),
        ("?!…", set()),
    ],
)
def test_concepts_of_a_text_are_extracted(text: str, names: set[str]) -> None:
    extracted = {concept.name for concept in concepts_in(text)}
    assert extracted >= names
    assert bool(extracted) == bool(names)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("presses", "press"),
        ("addresses", "address"),
        ("churches", "church"),
        ("dishes", "dish"),
        ("taxes", "tax"),
        ("quizzes", "quiz"),
        ("houses", "house"),
        ("prizes", "prize"),
        ("headaches", "headache"),
        ("potatoes", "potato"),
        ("canoes", "canoe"),
        ("movies", "movie"),
        ("harbours", "harbour"),
        ("series", "series"),
        ("chaos", "chaos"),
        ("physics", "physics"),
        ("clothes", "clothes"),
        ("compass", "compass"),
    ],
)
def test_singular_and_plural_are_one_concept(text: str, name: str) -> None:
    assert [concept.name for concept in concepts_in(f"We saw the {text}.")] == [name]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("The boat leaves at nine", {"boat"}),
        ("Acting teaches patience", {"acting", "patience"}),
        ("It may rain without a warning", {"rain", "warning"}),
        ("Somebody came on Thurs, everybody left in May", set()),
        ("He takes the ferry whenever somebody gives him a ticket", {"ferry", "ticket"}),
        ("The ferry answers the questions tha…", {"ferry answer", "question"}),
        ("What follows from “the harbour presse…”?", {"harbour"}),
    ],
)
def test_verbs_stop_words_and_truncated_words_are_no_concepts(text: str, names: set[str]) -> None:
    assert {concept.name for concept in concepts_in(text)} == names


def test_a_word_that_the_limit_cuts_is_no_concept() -> None:
    text = ("so " * READ_CHARACTERS)[: READ_CHARACTERS - 5] + " harbour"
    assert text[:READ_CHARACTERS].endswith(" harb")
    assert concepts_in(text) == ()
    assert [concept.name for concept in concepts_in(text[:READ_CHARACTERS])] == ["harb"]


@pytest.mark.parametrize("space", [" ", "\n", "\t", "\u2003"])
def test_a_long_text_is_read_with_any_word_separator(space: str) -> None:
    text = space.join(["harbour", *["so"] * READ_CHARACTERS])
    assert [concept.name for concept in concepts_in(text)] == ["harbour"]


@pytest.mark.parametrize("after", ["", " so", "\nso"])
def test_the_last_word_that_is_read_whole_counts(after: str) -> None:
    text = ("so " * READ_CHARACTERS)[: READ_CHARACTERS - 8] + " harbour"
    assert [concept.name for concept in concepts_in(text + after)] == ["harbour"]


def test_a_text_without_white_space_is_read_up_to_the_limit() -> None:
    text = "harbour/" + "so/" * READ_CHARACTERS
    assert [concept.name for concept in concepts_in(text)] == ["harbour"]


@pytest.mark.bar
def test_long_runs_without_white_space_are_read_once() -> None:
    run = "so-" * (READ_CHARACTERS // 3)
    patterns = (extraction._LINK, extraction._CUT_WORD)

    def seconds(text: str) -> float:
        return min(timeit.repeat(lambda: [pattern.sub("", text) for pattern in patterns], number=1, repeat=5))

    # Twenty times the text would take four hundred times as long if each character began a search of its own.
    assert seconds(run * 20) < 100 * seconds(run)


def test_names_are_stronger_than_phrases_and_phrases_than_words() -> None:
    strengths = {
        concept.name: concept.strength
        for concept in concepts_in("Near Lisbon the coral reef shelters a squid.")
    }
    assert strengths["Lisbon"] > strengths["coral reef shelter"] > strengths["squid"] > 0


def test_a_word_of_a_phrase_is_a_concept_only_if_repeated() -> None:
    once, again = "The coral reef was grey.", "The coral reef was grey, and the reef was steep."
    assert "reef" not in {concept.name for concept in concepts_in(once)}
    assert "reef" in {concept.name for concept in concepts_in(again)}


@given(st.text(max_size=600))
def test_any_text_gives_few_short_storable_names_once_each(text: str) -> None:
    concepts = concepts_in(text)
    assert len(concepts) <= MAX_CONCEPTS
    assert all(
        0 < concept.strength <= 1 and 0 < len(concept.name) <= EXTRACTED_NAME_LENGTH for concept in concepts
    )
    keys = [concept_key(concept.name) for concept in concepts]
    assert len(set(keys)) == len(keys)
    assert list(concepts) == sorted(concepts, key=lambda concept: -concept.strength)
    assert concepts == concepts_in(text)


def test_a_word_too_long_after_case_folding_is_no_concept() -> None:
    long = "\ufdfa" * 10
    names = {concept.name for concept in concepts_in(f"The harbour {long} harbour.")}
    assert long not in names
    assert "harbour" in names
