"""The alignment of memories with beliefs, and their resonance with an identity."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.memory.relations import Relation
from arbor.selves.evidence import AspectInfluence, Influence, alignment, resonance

FOR, AGAINST, BESIDE = Relation.SUPPORTS, Relation.CONTRADICTS, Relation.ASSOCIATED
share = st.floats(0, 1)
influences = st.lists(st.builds(Influence, st.sampled_from(Relation), share, share))


@pytest.mark.parametrize(
    ("evidence", "expected"),
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
def test_alignment_is_the_sum_of_support_and_contradiction(
    evidence: list[Influence], expected: float
) -> None:
    assert alignment(evidence) == pytest.approx(expected)


@given(influences)
def test_alignment_is_bounded_and_monotonic(known: list[Influence]) -> None:
    before = alignment(known)
    assert -1 <= before <= 1
    assert alignment([*known, Influence(FOR, 0.5, 0.5)]) >= before - 1e-9
    assert alignment([*known, Influence(AGAINST, 0.5, 0.5)]) <= before + 1e-9


aspect_influences = st.lists(st.builds(AspectInfluence, st.sampled_from(Relation), share, share))


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        ([], 0.0),
        ([AspectInfluence(Relation.SUPPORTS, 0.5, 0.8)], 0.4),
        ([AspectInfluence(Relation.ASSOCIATED, 0.5, 0.8)], 0.4),
        ([AspectInfluence(Relation.CONTRADICTS, 0.5, 0.8)], -0.4),
        (
            [AspectInfluence(Relation.SUPPORTS, 1.0, 0.9), AspectInfluence(Relation.CONTRADICTS, 1.0, 0.4)],
            0.5,
        ),
        ([AspectInfluence(Relation.SUPPORTS, 1.0, 0.9)] * 2, 1.0),
        ([AspectInfluence(Relation.CONTRADICTS, 1.0, 1.0)] * 3, -1.0),
    ],
)
def test_resonance_is_the_signed_sum_over_aspect_relations(
    evidence: list[AspectInfluence], expected: float
) -> None:
    assert resonance(evidence) == pytest.approx(expected)


@given(aspect_influences)
def test_resonance_is_bounded_and_monotonic(known: list[AspectInfluence]) -> None:
    before = resonance(known)
    assert -1 <= before <= 1
    assert resonance([*known, AspectInfluence(Relation.EVOLVED_INTO, 0.5, 0.5)]) >= before - 1e-9
    assert resonance([*known, AspectInfluence(Relation.CONTRADICTS, 0.5, 0.5)]) <= before + 1e-9
