"""Sources, and the trust that they allow for a fact."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.errors import Invalid
from arbor.memory.trust import Source, is_own_note, max_trust, merge_sources, reinforcement, semantic_trust

NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)
UNIT = st.floats(0, 1)
SOURCES = st.lists(
    st.builds(Source, kind=st.just("url"), reference=st.sampled_from("abcdefgh"), trust=UNIT), max_size=12
)


def a_source(reference: str = "https://example.org/a", trust: float = 0.5, **parts: Any) -> Source:
    return Source(kind="url", reference=reference, trust=trust, **parts)


@pytest.mark.parametrize(
    ("trusts", "confidence", "trust"),
    [
        ((), 0.9, 0.15),
        ((0.5,), 0.9, 0.575),
        ((0.5, 0.5), 0.9, 0.7875),
        ((1.0,), 0.9, 0.9),
        ((0.0,), 0.9, 0.15),
        ((0.5,), 0.1, 0.1),
    ],
)
def test_trust_is_capped_by_the_sources(trusts: tuple[float, ...], confidence: float, trust: float) -> None:
    sources = [a_source(str(number), trust) for number, trust in enumerate(trusts)]
    assert semantic_trust(confidence=confidence, sources=sources) == pytest.approx(trust)


@given(UNIT, SOURCES, st.floats(-1, 1))
def test_trust_is_never_above_its_cap(confidence: float, sources: list[Source], alignment: float) -> None:
    trust = semantic_trust(confidence=confidence, sources=sources, alignment=alignment)
    assert 0 <= trust <= max_trust(sources) <= 1
    if alignment <= 0:
        assert trust <= confidence


@given(UNIT, SOURCES, SOURCES, st.floats(-1, 1))
def test_more_sources_never_lower_trust(
    confidence: float, sources: list[Source], more: list[Source], alignment: float
) -> None:
    before = semantic_trust(confidence=confidence, sources=sources, alignment=alignment)
    after = semantic_trust(confidence=confidence, sources=[*sources, *more], alignment=alignment)
    assert after >= before - 1e-12


@given(SOURCES)
def test_the_same_source_twice_counts_once(sources: list[Source]) -> None:
    assert reinforcement([*sources, *sources]) == reinforcement(sources)
    assert len({source.key for source in merge_sources(sources)}) == len(merge_sources(sources))


@given(SOURCES, st.randoms())
def test_the_order_of_sources_does_not_count(sources: list[Source], chance: Any) -> None:
    shuffled = chance.sample(sources, len(sources))
    assert reinforcement(shuffled) == pytest.approx(reinforcement(sources))


@given(UNIT, SOURCES, st.floats(-1, 1), st.floats(-1, 1))
def test_better_alignment_with_beliefs_never_lowers_trust(
    confidence: float, sources: list[Source], one: float, other: float
) -> None:
    low, high = (
        semantic_trust(confidence=confidence, sources=sources, alignment=alignment)
        for alignment in sorted((one, other))
    )
    assert low <= high + 1e-12


def test_a_memory_that_contradicts_all_beliefs_is_not_trusted() -> None:
    assert semantic_trust(confidence=1, sources=[a_source(trust=1)], alignment=-1) == 0


def test_one_reference_in_other_writing_is_one_source() -> None:
    merged = merge_sources(
        [a_source("Nora  Lind", 0.4), a_source("b")], [a_source(" nora lind ", 0.7, observed_at=NOON)]
    )
    assert [source.reference for source in merged] == ["Nora  Lind", "b"]
    assert (merged[0].trust, merged[0].observed_at) == (0.7, NOON)


@pytest.mark.parametrize(
    "source", [a_source(), a_source("b", 0.25, observed_at=NOON), Source(kind="person", reference="Nora")]
)
def test_a_source_survives_the_round_trip(source: Source) -> None:
    assert Source.from_json(source.to_json()) == source


def test_a_source_may_be_its_reference_alone() -> None:
    assert Source.from_json("  page 7 ") == Source(kind="unknown", reference="page 7")


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (7, "must be an object"),
        ({"kind": "url"}, "reference must be a text, got ''"),
        ({"reference": "a", "trust": 2}, "trust must be a number from 0 to 1, got 2"),
        ({"reference": "a", "trust": 10**400}, "trust must be a number from 0 to 1, got 1000"),
        ({"reference": "a", "trust": math.nan}, "trust must be a number from 0 to 1, got nan"),
        ({"reference": "a", "trust": True}, "trust must be a number"),
        ({"reference": "a", "trust": "high"}, "trust must be a number"),
        ({"reference": "a", "observed_at": "soon"}, "must be an ISO date"),
        ({"reference": "a", "observed_at": "2024-03-01"}, "must have a time zone"),
        ({"reference": "a\0"}, "NUL"),
        ({"reference": "a" * 501}, "at most 500 characters, got 501"),
        ({"reference": "a", "kind": "k" * 41}, "at most 40 characters"),
    ],
)
def test_an_unclear_source_is_refused(value: Any, complaint: str) -> None:
    with pytest.raises(Invalid, match=complaint):
        Source.from_json(value)


@pytest.mark.parametrize(
    ("name", "value"), [("confidence", 1.1), ("alignment", -1.5), ("alignment", math.nan)]
)
def test_numbers_out_of_range_are_refused(name: str, value: float) -> None:
    numbers = {"confidence": 0.5, name: value}
    with pytest.raises(Invalid, match="must be a number from"):
        semantic_trust(sources=[], **numbers)


@pytest.mark.parametrize(
    ("role", "source", "own"),
    [
        ("agent", "", True),
        ("", "heartbeat:1", True),
        ("", "episode:1", True),
        ("user", "episode:1", False),
        ("", "operator", False),
    ],
)
def test_summaries_and_notes_are_no_evidence_of_others(role: str, source: str, own: bool) -> None:
    assert is_own_note(role=role, source=source) is own
