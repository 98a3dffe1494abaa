"""Concepts: names of one idea, and a hierarchy without circles."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from arbor.errors import Invalid
from arbor.memory.concepts import (
    MAX_DEPTH,
    NAME_LENGTH,
    check_strength,
    concept_key,
    concept_name,
    flatten,
    with_merged,
    with_parent,
)

# --- Names -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shown", "key"),
    [
        ("Jazz", "Jazz", "jazz"),
        ("  free \n jazz ", "free jazz", "free jazz"),
        ("“Jazz”.", "Jazz", "jazz"),
        ("STRASSE", "STRASSE", "strasse"),
        ("Straße", "Straße", "strasse"),
        ("cafe\u0301", "café", "café"),
        ("Ｊａｚｚ", "Ｊａｚｚ", "jazz"),
        (".NET", ".NET", ".net"),
        ("C++", "C++", "c++"),
        ("news", "news", "news"),
    ],
)
def test_names_of_one_concept_have_one_key(name: str, shown: str, key: str) -> None:
    assert concept_name(name) == shown
    assert concept_key(name) == key


@pytest.mark.parametrize("name", ["", "  \n ", "...", "x" * (NAME_LENGTH + 1), "a\0b", "\ud800"])
def test_an_invalid_concept_name_is_refused(name: str) -> None:
    with pytest.raises(Invalid, match="must"):
        concept_key(name)


def test_a_name_too_long_after_case_folding_is_refused() -> None:
    assert concept_name("ß" * NAME_LENGTH)
    with pytest.raises(Invalid, match="folded it has 200"):
        concept_key("ß" * NAME_LENGTH)


@given(st.text(max_size=40), st.sampled_from([" ", "\n", "\t  "]))
def test_white_space_and_the_shown_form_change_no_key(name: str, space: str) -> None:
    try:
        key = concept_key(name)
    except Invalid:
        return
    assert concept_key(concept_name(name)) == key
    assert concept_key(space + name.replace(" ", space) + space) == key


@pytest.mark.parametrize("strength", [-0.1, 1.1, 10**400, math.nan, math.inf, -math.inf])
def test_a_strength_outside_0_to_1_is_refused(strength: float) -> None:
    with pytest.raises(Invalid, match="from 0 to 1"):
        check_strength(strength)


# --- Hierarchy ---------------------------------------------------------------------------------------

#: A forest: the parent of each number is a smaller one, or none.
forests = st.lists(st.integers(0, 100), max_size=40).map(
    lambda picks: {place: pick % (place + 1) - 1 for place, pick in enumerate(picks)}
)


def as_parents(forest: dict[int, int]) -> dict[int, int | None]:
    return {child: parent if parent >= 0 else None for child, parent in forest.items()}


def ancestors_of(parents: dict[int, int | None], concept: int) -> tuple[int, ...]:
    """Return the ancestors of a concept, the broadest first."""
    above: list[int] = []
    at = parents[concept]
    while at is not None:
        above.insert(0, at)
        at = parents[at]
    return tuple(above)


@given(forests)
def test_the_flattened_ancestry_equals_a_traversal(forest: dict[int, int]) -> None:
    parents = as_parents(forest)
    ancestors = {concept: ancestors_of(parents, concept) for concept in parents}
    if max(map(len, ancestors.values()), default=0) > MAX_DEPTH:
        with pytest.raises(Invalid, match="at most 16"):
            flatten(parents)
    else:
        assert flatten(parents) == ancestors


@given(forests, st.data())
def test_an_ancestor_of_a_concept_cannot_become_its_child(
    forest: dict[int, int], data: st.DataObject
) -> None:
    parents = as_parents({child: parent for child, parent in forest.items() if child <= MAX_DEPTH})
    assume(parents)
    concept, parent = (data.draw(st.sampled_from(sorted(parents))) for _ in range(2))
    if concept in (*ancestors_of(parents, parent), parent):
        with pytest.raises(Invalid, match="cannot be broader than itself"):
            with_parent(parents, concept, parent)
    else:
        changed = with_parent(parents, concept, parent)
        assert ancestors_of(changed, concept)[-1] == parent


@given(forests, st.data())
def test_a_merged_hierarchy_has_no_cycle_and_loses_no_concept(
    forest: dict[int, int], data: st.DataObject
) -> None:
    parents = as_parents({child: parent for child, parent in forest.items() if child < MAX_DEPTH})
    assume(len(parents) >= 2)
    target, source = data.draw(st.permutations(sorted(parents)))[:2]
    changed = with_merged(parents, retained=target, gone=source)
    assert set(changed) == set(parents) - {source}
    assert source not in changed.values()
    assert all(
        changed[child] == target for child, parent in parents.items() if parent == source and child != target
    )
    flatten(changed)


@pytest.mark.parametrize(
    ("parents", "expected"),
    [
        ({"music": None, "jazz": "music", "bop": "jazz"}, {"music": None, "bop": "music"}),
        ({"music": "jazz", "jazz": None}, {"music": None}),
        ({"music": None, "jazz": "art", "art": None}, {"music": "art", "art": None}),
        (
            {"music": "noise", "noise": None, "jazz": "art", "art": None},
            {"music": "noise", "noise": None, "art": None},
        ),
    ],
)
def test_the_merge_target_inherits_the_parent_that_it_needs(
    parents: dict[str, str | None], expected: dict[str, str | None]
) -> None:
    assert with_merged(parents, retained="music", gone="jazz") == expected


def test_a_concept_is_not_merged_with_itself() -> None:
    with pytest.raises(Invalid, match="with itself"):
        with_merged({"jazz": None}, retained="jazz", gone="jazz")


def test_a_missing_parent_is_omitted() -> None:
    assert flatten({1: 7, 2: 1}) == {1: (), 2: (1,)}
