"""The details of each memory type."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.errors import Invalid
from arbor.memory.details import (
    DETAILS,
    Detail,
    Emotion,
    EpisodicDetail,
    ProceduralDetail,
    SemanticDetail,
    StrategicDetail,
    read_detail,
)
from arbor.memory.trust import Source
from arbor.memory.values import MemoryType

NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)
JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    [
        *("context", "action", "result", "emotion", "event_time", "confidence", "category", "sources"),
        *("contradictions", "steps", "prerequisites", "pattern", "evidence", "applicability", "focus"),
    ]
)


@pytest.mark.parametrize(
    "detail",
    [
        EpisodicDetail(),
        EpisodicDetail(
            context="at the harbour",
            action="asked for the tide",
            result="was told",
            emotion=Emotion(valence=-0.5, label="worry", intensity=0.0),
            event_time=NOON,
        ),
        SemanticDetail(),
        SemanticDetail(
            confidence=0.0,
            category="tides",
            sources=(Source(kind="person", reference="Nora", trust=0.8, observed_at=NOON),),
            contradictions=(UUID(int=7),),
        ),
        ProceduralDetail(steps=("Open the valve.", "Wait."), prerequisites=("a key",)),
        StrategicDetail(
            pattern="storms follow", confidence=0.3, evidence=("May",), applicability=("spring",)
        ),
        SemanticDetail(extra={"focus": "the river"}),
    ],
)
def test_a_detail_survives_the_round_trip(detail: Detail) -> None:
    written = json.loads(json.dumps(detail.to_json()))
    assert read_detail(detail.type, written) == detail


def test_empty_details_are_not_written() -> None:
    assert EpisodicDetail().to_json() == SemanticDetail().to_json() == ProceduralDetail().to_json() == {}


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        (MemoryType.EPISODIC, {"source_id": "D1:3"}),
        (MemoryType.EPISODIC, {"mode": "reflection"}),
        (MemoryType.SEMANTIC, {"category": "value", "focus": "x"}),
    ],
)
def test_details_of_an_older_version_are_preserved(kind: MemoryType, written: dict[str, Any]) -> None:
    assert read_detail(kind, written).to_json() == written


def test_an_unreadable_field_does_not_affect_the_others() -> None:
    read = read_detail(MemoryType.SEMANTIC, {"confidence": "very", "category": "tides", "sources": ["Nora"]})
    assert isinstance(read, SemanticDetail)
    assert (read.confidence, read.category, read.sources[0].reference) == (1.0, "tides", "Nora")
    assert read.extra == {"confidence": "very"}


@given(st.sampled_from(MemoryType), st.dictionaries(FIELDS, JSON) | JSON)
def test_any_stored_detail_can_be_read(kind: MemoryType, written: Any) -> None:
    read = read_detail(kind, written)
    assert isinstance(read, DETAILS[kind])
    assert read_detail(kind, read.to_json()) == read


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: EpisodicDetail(action=7), "action must be a text, got 7"),  # type: ignore[arg-type]
        (lambda: EpisodicDetail(context="x" * 4001), "context must have at most 4,000 characters, got 4,001"),
        (lambda: EpisodicDetail(event_time=datetime(2024, 3, 1)), "event_time must have a time zone"),  # noqa: DTZ001
        (lambda: Emotion(valence=-2), "valence must be a number from -1 to 1, got -2"),
        (lambda: Emotion(valence=math.nan), "valence must be a number from -1 to 1, got nan"),
        (lambda: Emotion(intensity=-0.1), "intensity must be a number from 0 to 1"),
        (lambda: SemanticDetail(confidence=1.5), "confidence must be a number from 0 to 1, got 1.5"),
        (lambda: SemanticDetail(category="x" * 101), "category must have at most 100"),
        (lambda: SemanticDetail(contradictions=("x",)), "contradictions must be ids"),  # type: ignore[arg-type]
        (
            lambda: SemanticDetail(
                sources=tuple(Source(kind="url", reference=str(number)) for number in range(101))
            ),
            "at most 100 sources, got 101",
        ),
        (lambda: ProceduralDetail(steps="Wait."), "steps must be texts in order"),  # type: ignore[arg-type]
        (lambda: ProceduralDetail(steps=("Wait.", " ")), "steps, number 2 must not be empty"),
        (lambda: ProceduralDetail(steps=("s",) * 201), "steps must be at most 200, got 201"),
        (lambda: StrategicDetail(evidence=(7,)), "evidence, number 1 must be a text, got 7"),  # type: ignore[arg-type]
        (lambda: StrategicDetail(pattern="\0"), "NUL"),
    ],
)
def test_an_invalid_detail_is_refused_by_name(make: Any, complaint: str) -> None:
    with pytest.raises(Invalid, match=complaint):
        make()
