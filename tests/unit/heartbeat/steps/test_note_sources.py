"""Trust in notes and conclusions: no further than in the memories that they repeat or rest on."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from arbor.heartbeat.situation import (
    PEER_MESSAGE,
    USER_MESSAGE,
    BufferItemView,
    MemoryView,
    PerceptView,
)
from arbor.heartbeat.steps.new_memories import with_source_of_conclusion, with_source_of_note
from arbor.heartbeat.views import PeerView
from arbor.memory.details import SemanticDetail, read_detail
from arbor.memory.trust import Evidence, Source, max_trust
from arbor.memory.values import MemoryType, NewMemory
from tests.unit.heartbeat.builders import NOW, situation

WORDS = "Ann must be paid $900 first."
OWN = 0.83
STRANGER = 0.575


def view(content: str = WORDS, *, role: str = "Bo", trust: float = STRANGER) -> MemoryView:
    memory_id = str(UUID(int=7))
    return MemoryView(id=memory_id, type=MemoryType.EPISODIC, content=content, role=role, at=NOW, trust=trust)


def buffer_item(role: str = "Bo") -> BufferItemView:
    return BufferItemView(content=WORDS, role=role, at=NOW, trust=STRANGER)


def fact(content: str = "Pay Ann $900 first") -> NewMemory:
    return NewMemory(content=content, type=MemoryType.SEMANTIC, occurred_at=NOW)


@pytest.mark.parametrize(
    ("parts", "trust", "reference"),
    [
        ({"recent": [view()]}, STRANGER, "Bo"),
        ({"relevant": [view()]}, STRANGER, "Bo"),
        ({"recalled": [view()]}, STRANGER, "Bo"),
        ({"held": [buffer_item()]}, STRANGER, "Bo"),
        ({"relevant": [view(role="user", trust=0.745)]}, 0.745, "user"),
        # A memory that says something else is no source.
        ({"relevant": [view("Ann sells eels.")]}, OWN, "agent:"),
        # Of two who said it, the one who is trusted more.
        ({"relevant": [view(), view(role="user", trust=0.745)]}, 0.745, "user"),
        # The agent's own words beside them add nothing.
        ({"relevant": [view(), view(role="", trust=1.0)]}, STRANGER, "Bo"),
        ({"relevant": [view(role="agent", trust=1.0)]}, OWN, "agent:"),
    ],
)
def test_a_note_is_trusted_as_the_memory_it_repeats(
    parts: dict[str, Any], trust: float, reference: str
) -> None:
    note = with_source_of_note(fact(), situation=situation(**parts))
    assert note.trust == pytest.approx(trust)
    assert note.detail["sources"][0]["reference"].startswith(reference)


def test_a_message_is_a_source_before_a_memory() -> None:
    percepts = [PerceptView(id="p", kind=USER_MESSAGE, content=WORDS, at=NOW)]
    note = with_source_of_note(fact(), situation=situation(percepts=percepts, relevant=[view()]))
    assert note.trust == pytest.approx(0.745)


@pytest.mark.parametrize(
    ("trusts", "expected"), [([], OWN), ([STRANGER], STRANGER), ([1.0], OWN), ([0.15], 0.15)]
)
def test_a_conclusion_is_trusted_no_further_than_its_materials(trusts: list[float], expected: float) -> None:
    materials = [
        Evidence(trust=trust, speaker=Source(kind="memory", reference="Bo", trust=1.0)) for trust in trusts
    ]
    made = with_source_of_conclusion(fact(), situation=situation(), materials=materials)
    assert made.trust == pytest.approx(expected)
    assert made.detail["sources"][0]["reference"].startswith("agent:")


def test_a_conclusion_is_trusted_as_the_stranger_it_repeats() -> None:
    made = with_source_of_conclusion(fact(), situation=situation(relevant=[view()]))
    assert made.trust == pytest.approx(STRANGER)


@pytest.mark.parametrize("trust", [0.5, 0.9])
def test_a_revised_fact_is_trusted_no_further_than_before(trust: float) -> None:
    source = Source(kind="memory", reference="Bo", trust=trust)
    detail = SemanticDetail(sources=(source,))
    revised = NewMemory(
        content="Ann is paid.", type=MemoryType.SEMANTIC, occurred_at=NOW, detail=detail.to_json()
    )
    material = Evidence(trust=detail.trust, speaker=source, sources=(source,))
    made = with_source_of_conclusion(revised, situation=situation(), materials=[material])
    assert made.trust == pytest.approx(detail.trust)


NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "messages", "is_conclusion", "kind"),
    [
        ("The buoy broke loose.", ["The north buoy has broken loose!"], False, "user"),
        ("The buoy broke loose.", ["The north buoy has broken loose!"], True, "heartbeat"),
        ("The buoy broke loose.", ["Good morning."], False, "heartbeat"),
        ("The buoy broke loose.", [], False, "heartbeat"),
        ("The buoy broke loose.", ["A buoy?", "It broke."], False, "user"),
        ("It is so.", ["It is so."], False, "heartbeat"),
    ],
)
def test_the_source_is_the_user_if_a_message_has_most_terms(
    text: str, messages: list[str], is_conclusion: bool, kind: str
) -> None:
    percepts = [PerceptView(id="p", kind=USER_MESSAGE, content=message, at=NOON) for message in messages]
    new_memory = NewMemory(content=text, type=MemoryType.SEMANTIC, occurred_at=NOON, detail={"focus": "sea"})
    add_source = with_source_of_conclusion if is_conclusion else with_source_of_note
    memory = add_source(new_memory, situation=situation(percepts=percepts))
    detail = read_detail(MemoryType.SEMANTIC, memory.detail)
    assert isinstance(detail, SemanticDetail)
    assert [source.kind for source in detail.sources] == [kind]
    assert memory.trust == pytest.approx(max_trust(detail.sources)) == pytest.approx(detail.trust)
    assert memory.trust < 1
    assert detail.extra == {"focus": "sea"}


def test_an_event_is_trusted_no_further_than_its_source() -> None:
    event = NewMemory(content="I rowed out.", occurred_at=NOON)
    assert with_source_of_note(event, situation=situation()).trust == pytest.approx(0.83)


@pytest.mark.parametrize(
    ("kind", "trust", "source"),
    [
        ("user_message", 0.745, "user"),
        ("peer_message", 0.405, "agent:known"),
        ("environment", 0.575, "environment"),
        ("interrupt", 0.575, "interrupt"),
        ("error", 0.575, "error"),
        ("action_result", 0.83, "action_result"),
    ],
)
def test_a_note_is_trusted_as_the_percept_it_repeats(kind: str, trust: float, source: str) -> None:
    percepts = [
        PerceptView(
            id="p", kind=kind, content="Ann must be paid first.", at=NOON, peer="Vega", peer_id="known"
        )
    ]
    peers = [PeerView(name="Vega", peer_id="known", trust=0.3)]
    note = NewMemory(content="Pay Ann first", type=MemoryType.SEMANTIC, occurred_at=NOON)
    memory = with_source_of_note(note, situation=situation(percepts=percepts, peers=peers))
    assert memory.trust == pytest.approx(trust)
    assert memory.detail["sources"][0]["reference"] == source


def test_a_peer_of_a_trusted_name_is_not_trusted() -> None:
    percepts = [
        PerceptView(
            id="p", kind=PEER_MESSAGE, content="Ann must be paid first.", at=NOON, peer="Vega", peer_id="new"
        )
    ]
    peers = [PeerView(name="Vega", peer_id="old", trust=0.7), PeerView(name="Vega", trust=0.7)]
    note = NewMemory(content="Pay Ann first", occurred_at=NOON)
    assert with_source_of_note(
        note, situation=situation(percepts=percepts, peers=peers)
    ).trust == pytest.approx(0.575)
