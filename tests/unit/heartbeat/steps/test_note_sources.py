"""Trust in notes and conclusions: no further than the memories that they repeat, or rest on."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from arbor.heartbeat.situation import USER_MESSAGE, BufferItemView, MemoryView, PerceptView, Situation
from arbor.heartbeat.steps.note_sources import with_source_of_conclusion, with_source_of_note
from arbor.memory.details import SemanticDetail
from arbor.memory.trust import Evidence, Source
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
    note = with_source_of_note(fact(), situation=_without_memories(**parts))
    assert note.trust == pytest.approx(trust)
    assert note.detail["sources"][0]["reference"].startswith(reference)


def test_a_message_is_a_source_before_a_memory() -> None:
    percepts = [PerceptView(id="p", kind=USER_MESSAGE, content=WORDS, at=NOW)]
    note = with_source_of_note(fact(), situation=_without_memories(percepts=percepts, relevant=[view()]))
    assert note.trust == pytest.approx(0.745)


@pytest.mark.parametrize(
    ("trusts", "expected"), [([], OWN), ([STRANGER], STRANGER), ([1.0], OWN), ([0.15], 0.15)]
)
def test_a_conclusion_is_trusted_as_what_it_rests_on(trusts: list[float], expected: float) -> None:
    materials = [
        Evidence(trust=trust, speaker=Source(kind="memory", reference="Bo", trust=1.0)) for trust in trusts
    ]
    made = with_source_of_conclusion(fact(), situation=_without_memories(), materials=materials)
    assert made.trust == pytest.approx(expected)
    assert made.detail["sources"][0]["reference"].startswith("agent:")


def test_a_conclusion_is_trusted_as_the_stranger_it_repeats() -> None:
    made = with_source_of_conclusion(fact(), situation=_without_memories(relevant=[view()]))
    assert made.trust == pytest.approx(STRANGER)


@pytest.mark.parametrize("trust", [0.5, 0.9])
def test_a_revised_fact_is_trusted_no_further_than_before(trust: float) -> None:
    source = Source(kind="memory", reference="Bo", trust=trust)
    detail = SemanticDetail(sources=(source,))
    revised = NewMemory(
        content="Ann is paid.", type=MemoryType.SEMANTIC, occurred_at=NOW, detail=detail.to_json()
    )
    material = Evidence(trust=detail.trust, speaker=source, sources=(source,))
    made = with_source_of_conclusion(revised, situation=_without_memories(), materials=[material])
    assert made.trust == pytest.approx(detail.trust)


def _without_memories(**parts: Any) -> Situation:
    return situation(**({"recent": [], "relevant": [], "held": [], "percepts": []} | parts))
