"""The alignment of memories with beliefs, and their resonance with an identity."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.memory.relations import Relation
from arbor.selves.alignment import Bearing, Influence, alignment, resonance

FOR, AGAINST, BESIDE = Relation.SUPPORTS, Relation.CONTRADICTS, Relation.ASSOCIATED
share = st.floats(0, 1)
influences = st.lists(st.builds(Influence, st.sampled_from(Relation), share, share))


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ([], 0.0),
        ([Influence(FOR, 0.5, 0.8)], 0.4),
        ([Influence(AGAINST, 0.5, 0.8)], -0.4),
        ([Influence(BESIDE, 1.0, 1.0)], 0.0),
        ([Influence(FOR, 1.0, 0.9), Influence(AGAINST, 1.0, 0.4)], 0.5),
        ([Influence(FOR, 1.0, 0.9), Influence(FOR, 1.0, 0.9)], 1.0),
        ([Influence(AGAINST, 1.0, 1.0)] * 3, -1.0),
    ],
)
def test_alignment_is_the_sum_of_what_speaks_for_and_against(
    given_: list[Influence], expected: float
) -> None:
    assert alignment(given_) == pytest.approx(expected)


@given(influences)
def test_alignment_is_bounded_and_one_more_support_never_lowers_it(known: list[Influence]) -> None:
    before = alignment(known)
    assert -1 <= before <= 1
    assert alignment([*known, Influence(FOR, 0.5, 0.5)]) >= before - 1e-9
    assert alignment([*known, Influence(AGAINST, 0.5, 0.5)]) <= before + 1e-9


bearings = st.lists(st.builds(Bearing, st.sampled_from(Relation), share, share))


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ([], 0.0),
        ([Bearing(Relation.SUPPORTS, 0.5, 0.8)], 0.4),
        ([Bearing(Relation.ASSOCIATED, 0.5, 0.8)], 0.4),
        ([Bearing(Relation.CONTRADICTS, 0.5, 0.8)], -0.4),
        ([Bearing(Relation.SUPPORTS, 1.0, 0.9), Bearing(Relation.CONTRADICTS, 1.0, 0.4)], 0.5),
        ([Bearing(Relation.SUPPORTS, 1.0, 0.9)] * 2, 1.0),
        ([Bearing(Relation.CONTRADICTS, 1.0, 1.0)] * 3, -1.0),
    ],
)
def test_resonance_is_the_sum_of_what_a_memory_has_to_do_with_an_identity(
    given_: list[Bearing], expected: float
) -> None:
    assert resonance(given_) == pytest.approx(expected)


@given(bearings)
def test_resonance_is_bounded_and_one_more_tie_never_lowers_it(known: list[Bearing]) -> None:
    before = resonance(known)
    assert -1 <= before <= 1
    assert resonance([*known, Bearing(Relation.EVOLVED_INTO, 0.5, 0.5)]) >= before - 1e-9
    assert resonance([*known, Bearing(Relation.CONTRADICTS, 0.5, 0.5)]) <= before + 1e-9
