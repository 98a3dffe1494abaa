"""The merged details of two memories."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.ids import uuid7
from arbor.memory.details import (
    MOST_ENTRIES,
    Detail,
    Emotion,
    EpisodicDetail,
    ProceduralDetail,
    SemanticDetail,
    StrategicDetail,
)
from arbor.memory.duplicates import merged
from arbor.memory.trust import Source

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
    assert merged(old, new) == both


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
            StrategicDetail(evidence=tuple(f"a{number}" for number in range(MOST_ENTRIES))),
            StrategicDetail(evidence=("b",)),
        ),
        (SemanticDetail(), ProceduralDetail()),
    ],
)
def test_contradicting_details_are_not_merged(old: Detail, new: Detail) -> None:
    assert merged(old, new) is None
    assert merged(new, old) is None


_LISTS = st.lists(st.sampled_from("abcdef"), max_size=6, unique=True).map(tuple)


@given(_LISTS, _LISTS, st.floats(0, 1), st.floats(0, 1))
def test_merging_loses_no_evidence_or_confidence(
    old: tuple[str, ...], new: tuple[str, ...], one: float, other: float
) -> None:
    both = merged(
        StrategicDetail(evidence=old, confidence=one), StrategicDetail(evidence=new, confidence=other)
    )
    assert isinstance(both, StrategicDetail)
    assert both.evidence[: len(old)] == old
    assert {*both.evidence} == {*old, *new}
    assert both.confidence == max(one, other)
    assert merged(both, StrategicDetail(evidence=new, confidence=other)) == both
