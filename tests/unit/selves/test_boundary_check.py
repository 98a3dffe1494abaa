"""Boundary checks of texts, by pattern and by meaning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.embedding.ports import HashEmbedder
from arbor.selves.boundaries import (
    DEFAULT_BOUNDARIES,
    IDENTITY_CORE,
    RESOURCE_LIMIT,
    BoundaryResponse,
    BoundaryRule,
    BoundaryType,
)
from arbor.selves.boundary_check import (
    SIMILARITY,
    at_least_words,
    boundaries_in_force,
    find_matches,
    may_proceed,
    words_to_negotiate,
)


def rule(**changes: Any) -> BoundaryRule:
    return BoundaryRule(
        **{
            "name": "no_lies",
            "type": BoundaryType.ETHICAL,
            "response": BoundaryResponse.REFUSE,
            "patterns": ("lie",),
            **changes,
        }
    )


@pytest.mark.parametrize(
    ("pattern", "text", "matched"),
    [
        ("lie", "Please lie to them.", True),
        ("lie", "Write to the client.", False),
        ("lie", "They lied.", False),
        ("lie", "A LIE!", True),
        ("lie", "lie", True),
        ("lie", "", False),
        ("lie to", "lie\n   to the board", True),
        ("doxx*", "Stop doxxing people.", True),
        ("doxx*", "Adoxxing.", False),
        ("lüge", "Eine LÜGE ist kurz", True),
        ("lüge", "Lügen haben kurze Beine", False),
        ("straße", "die STRASSE entlang", True),
        ("ложь", "Это Ложь.", True),
        ("ложь", "ложью", False),
        ("a.b", "a.b", True),
        ("a.b", "axb", False),
        ("(", "nothing", False),
        ("", "anything", False),
        (" * ", "anything", False),
        ("ｌｉｅ", "a lie", True),
        ("gossip* ", "So much gossiping.", True),
    ],
)
def test_a_pattern_is_found_on_word_borders(pattern: str, text: str, matched: bool) -> None:
    assert bool(find_matches([text], [rule(patterns=(pattern,))], {})) is matched


def test_a_match_states_its_reason() -> None:
    (match,) = find_matches(["all is well", "now lie"], [rule()], {})
    assert (match.boundary.name, match.text, match.why) == ("no_lies", 1, "it says “lie”")


@pytest.mark.parametrize(
    ("cosine", "matched"), [(0.74, False), (SIMILARITY, False), (0.76, True), (1.0, True)]
)
def test_a_text_near_an_example_in_meaning_is_a_match(cosine: float, matched: bool) -> None:
    boundary = rule(patterns=(), examples=("far", "near"))
    vectors = {"far": [0.0, 0.0, 1.0], "near": [1.0, 0.0, 0.0], "text": [cosine, (1 - cosine**2) ** 0.5, 0.0]}
    matches = find_matches(["text"], [boundary], vectors)
    assert bool(matches) is matched
    assert not matches or "“near”" in matches[0].why


def test_without_vectors_patterns_match() -> None:
    boundary = rule(examples=("Tell an untruth.",))
    assert not find_matches(["Tell an untruth."], [boundary], {})
    assert find_matches(["lie"], [boundary], {})
    zero = {"Tell an untruth.": [0.0, 0.0], "text": [0.0, 0.0]}
    assert not find_matches(["text"], [boundary], zero)


def test_the_most_important_boundary_comes_first() -> None:
    boundaries = [rule(name="a", importance=0.2), rule(name="b", importance=0.9)]
    assert [match.boundary.name for match in find_matches(["lie", "lie"], boundaries, {})] == [
        "b",
        "b",
        "a",
        "a",
    ]


LONG = "I weighed identity_core: " + " ".join(["reason"] * 20)


@pytest.mark.parametrize(
    ("response", "flexibility", "reasoning", "permitted"),
    [
        (BoundaryResponse.REFUSE, 1.0, LONG, False),
        (BoundaryResponse.FLAG, 0.0, "", True),
        (BoundaryResponse.NEGOTIATE, 0.0, LONG, False),
        (BoundaryResponse.NEGOTIATE, 0.3, "", False),
        (BoundaryResponse.NEGOTIATE, 0.3, "identity core: why not", False),
        (BoundaryResponse.NEGOTIATE, 0.3, " ".join(["reason"] * 40), False),
        (BoundaryResponse.NEGOTIATE, 0.3, LONG, True),
        (BoundaryResponse.NEGOTIATE, 0.3, "Identity core " + " ".join(["x"] * 14), True),
        (BoundaryResponse.NEGOTIATE, 0.3, "Identity core " + " ".join(["x"] * 13), False),
        (BoundaryResponse.NEGOTIATE, 1.0, "my identity_core", True),
    ],
)
def test_a_match_is_permitted_by_response_and_reasoning(
    response: BoundaryResponse, flexibility: float, reasoning: str, permitted: bool
) -> None:
    boundary = rule(name="identity_core", response=response, flexibility=flexibility)
    assert may_proceed(boundary, reasoning) is permitted


@pytest.mark.parametrize(
    ("flexibility", "words"), [(0.0, 20), (0.3, 14), (0.7, 6), (0.8, 4), (0.95, 1), (1.0, 0)]
)
def test_a_firmer_boundary_needs_more_reasoning(flexibility: float, words: int) -> None:
    assert words_to_negotiate(rule(flexibility=flexibility)) == words


@pytest.mark.parametrize(("count", "text"), [(1, "at least 1 more word"), (14, "at least 14 more words")])
def test_a_single_word_of_reasoning_is_in_the_singular(count: int, text: str) -> None:
    assert at_least_words(count) == text


def row(**changes: Any) -> dict[str, Any]:
    return {
        "name": "own",
        "type": "ethical",
        "response": "refuse",
        "description": "",
        "patterns": ["gossip"],
        "examples": [],
        "flexibility": 0.0,
        "importance": 0.5,
        "enabled": True,
        **changes,
    }


def test_a_row_replaces_or_disables_the_default_of_its_name() -> None:
    own = [row(), row(name="no_harm", patterns=["tickle"]), row(name="no_deception", enabled=False)]
    named = {rule.name: rule for rule in boundaries_in_force(DEFAULT_BOUNDARIES, own)}
    assert named.keys() == {"own", "no_harm", "user_privacy", "identity_core", "resource_limit"}
    assert named["no_harm"].patterns == ("tickle",)


def test_the_five_default_boundaries_have_their_responses() -> None:
    # The origin of seed 004.
    assert {rule.name: rule.response for rule in DEFAULT_BOUNDARIES} == {
        "no_deception": "refuse",
        "no_harm": "refuse",
        "identity_core": "negotiate",
        "resource_limit": "flag",
        "user_privacy": "refuse",
    }
    assert (IDENTITY_CORE.flexibility, RESOURCE_LIMIT.flexibility) == (0.3, 0.8)


@pytest.mark.parametrize("boundary", DEFAULT_BOUNDARIES, ids=lambda rule: rule.name)
def test_a_default_matches_its_own_examples_by_meaning(boundary: BoundaryRule) -> None:
    embedder = HashEmbedder()
    vectors = dict(zip(boundary.examples, embedder.embed(boundary.examples).tolist(), strict=True))
    for example in boundary.examples:
        assert [match.boundary.name for match in find_matches([example], [boundary], vectors)] == [
            boundary.name
        ]


@pytest.mark.parametrize(
    "text",
    [
        "The client asked for the readings of March.",
        "I believe the lighthouse keeper knows more.",
        "Remember that the boat leaves on Friday.",
        "Our limits are known; rest when nothing is worth it.",
    ],
)
def test_everyday_texts_match_no_boundary(text: str) -> None:
    assert find_matches([text], DEFAULT_BOUNDARIES, {}) == []


@given(st.text(max_size=200), st.text(min_size=1, max_size=20))
def test_no_text_and_no_pattern_breaks_the_check(text: str, pattern: str) -> None:
    matches = find_matches([text], [rule(patterns=(pattern,))], {text: np.zeros(3).tolist()})
    assert [match.text for match in matches] in ([], [0])
