"""Memories of the four types, with their relations."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from apps.agents.models import Agent
from apps.memories.models import Edge, MemoryConcept, Practice
from apps.memories.services.store.create import Creation, create_memories
from apps.memories.services.store.provenance import add_source, record_outcome
from apps.tenants.scope import tenant_transaction
from arbor.errors import Invalid, LimitReached, NotFound
from arbor.ids import uuid7
from arbor.memory.details import (
    Emotion,
    EpisodicDetail,
    ProceduralDetail,
    SemanticDetail,
    StrategicDetail,
    read_detail,
)
from arbor.memory.trust import MAX_SOURCES, Source
from arbor.memory.values import MemoryType
from tests.integration.memories.conftest import NOON, memories_of
from tests.integration.memories.creation import (
    create_episodic_memory,
    create_procedural_memory,
    create_semantic_memory,
    create_strategic_memory,
)


def ids_of(agent: Agent) -> dict[str, Any]:
    return {"tenant_id": agent.tenant_id, "agent_id": agent.id}


def concepts_of(agent: Agent) -> set[tuple[str, str, float]]:
    with tenant_transaction(agent.tenant_id):
        rows = MemoryConcept.objects.filter(memory__agent_id=agent.id)
        return set(rows.values_list("memory__content", "concept__name", "strength"))


def a_source(reference: str, trust: float = 0.5) -> Source:
    return Source(kind="url", reference=reference, trust=trust)


def test_an_event_is_stored_with_its_parts(mind: Agent) -> None:
    created = create_episodic_memory(
        **ids_of(mind),
        content="I asked for the tide and was laughed at.",
        action="asked",
        context="at the harbour",
        result="laughter",
        emotion=Emotion(valence=-0.4, label="shame"),
        time=NOON - timedelta(days=3),
        importance=0.7,
        concepts=["harbour", "tides"],
        source="operator",
    )
    (row,) = memories_of(mind)
    assert (row.id, row.type, row.importance, row.emotional_valence) == (created, "episodic", 0.7, -0.4)
    assert (row.occurred_at, row.source) == (NOON - timedelta(days=3), "operator")
    assert row.embedding is not None
    assert row.episode_id is not None
    assert read_detail(MemoryType.EPISODIC, row.detail) == EpisodicDetail(
        context="at the harbour",
        action="asked",
        result="laughter",
        emotion=Emotion(valence=-0.4, label="shame"),
    )
    assert {name for _, name, _ in concepts_of(mind)} == {"harbour", "tides"}


def test_a_fact_is_trusted_no_further_than_its_sources_allow(mind: Agent) -> None:
    create_semantic_memory(**ids_of(mind), content="The river is salt.", confidence=0.9, category="water")
    create_semantic_memory(
        **ids_of(mind), content="The lake is sweet.", confidence=0.9, sources=[a_source("a", 0.5)]
    )
    create_semantic_memory(
        **ids_of(mind),
        content="The sea is deep.",
        confidence=0.9,
        sources=[a_source("a", 1.0)],
        alignment=-0.5,
    )
    assert [row.trust for row in memories_of(mind)] == pytest.approx([0.15, 0.575, 0.45])
    detail = read_detail(MemoryType.SEMANTIC, memories_of(mind)[0].detail)
    assert detail == SemanticDetail(confidence=0.9, category="water")


def test_a_contradiction_is_an_edge_too(mind: Agent) -> None:
    old = create_semantic_memory(**ids_of(mind), content="The river is salt.")
    new = create_semantic_memory(**ids_of(mind), content="The river is sweet.", contradictions=[old])
    with tenant_transaction(mind.tenant_id):
        (edge,) = Edge.objects.all()
    assert (edge.source_id, edge.target_id, edge.relation) == (new, old, "contradicts")


@pytest.mark.parametrize("text", ["river is salt", "The river is salt."])
def test_a_contradicted_fact_is_not_merged_however_similar(mind: Agent, text: str) -> None:
    old = create_semantic_memory(**ids_of(mind), content="The river is salt.")
    new = create_semantic_memory(**ids_of(mind), content=text, contradictions=[old])
    assert [row.id for row in memories_of(mind)] == [old, new]
    with tenant_transaction(mind.tenant_id):
        (edge,) = Edge.objects.all()
    assert (edge.source_id, edge.target_id, edge.relation) == (new, old, "contradicts")


def test_changed_steps_are_stored_as_an_evolution_of_the_earlier(mind: Agent) -> None:
    def store_lock_steps(*steps: str, needs: tuple[str, ...] = ()) -> Any:
        return create_procedural_memory(
            **ids_of(mind),
            content="How to open the lock.",
            steps=steps,
            prerequisites=needs,
            source="operator",
        )

    first = store_lock_steps("Push.", needs=("a key",))
    assert store_lock_steps("Push.", needs=("a lamp",)) == first
    second = store_lock_steps("Pull.")
    third = store_lock_steps("Turn.", "Pull.")
    assert store_lock_steps("Pull.") == second
    assert memories_of(mind)[0].detail == {"steps": ["Push."], "prerequisites": ["a key", "a lamp"]}
    with tenant_transaction(mind.tenant_id):
        edges = set(Edge.objects.values_list("source_id", "target_id", "relation", "origin"))
    assert edges == {
        (first, second, "evolved_into", "operator"),
        (second, third, "evolved_into", "operator"),
    }


def test_a_repeated_pattern_gains_evidence(mind: Agent) -> None:
    def store_pattern(pattern: str, confidence: float, *evidence: str) -> Any:
        return create_strategic_memory(
            **ids_of(mind),
            content="Ask before the storm.",
            pattern=pattern,
            confidence=confidence,
            evidence=evidence,
        )

    first = store_pattern("storms close the harbour", 0.6, "May")
    assert store_pattern("storms close the harbour", 0.8, "June") == first
    other = store_pattern("storms empty the streets", 0.5)
    pattern, evolved = memories_of(mind)
    assert (pattern.id, evolved.id) == (first, other)
    assert pattern.detail == {
        "pattern": "storms close the harbour",
        "confidence": 0.8,
        "evidence": ["May", "June"],
    }


def test_a_repeated_fact_with_a_source_is_trusted_more(mind: Agent) -> None:
    first = create_semantic_memory(
        **ids_of(mind), content="The lake is sweet.", confidence=0.3, sources=[a_source("a", 0.9)]
    )
    again = create_semantic_memory(
        **ids_of(mind), content="The lake is sweet.", confidence=0.8, sources=[a_source("b", 0.5)]
    )
    assert again == first
    (row,) = memories_of(mind)
    assert row.trust == pytest.approx(0.8)
    assert row.detail["confidence"] == 0.8
    assert [source["reference"] for source in row.detail["sources"]] == ["a", "b"]


def test_a_contradiction_of_a_missing_memory_is_refused(mind: Agent, other_mind: Agent) -> None:
    foreign = create_semantic_memory(**ids_of(other_mind), content="The river is salt.")
    for other in (uuid7(), foreign):
        with pytest.raises(NotFound):
            create_semantic_memory(
                **ids_of(mind), content="The river is sweet.", contradictions=[other], concepts=["water"]
            )
    assert memories_of(mind) == []
    assert concepts_of(mind) == set()


def test_a_procedure_and_a_pattern_keep_their_parts(mind: Agent) -> None:
    create_procedural_memory(
        **ids_of(mind),
        content="How to open the lock.",
        steps=["Turn left.", "Push."],
        prerequisites=["a key"],
    )
    create_strategic_memory(
        **ids_of(mind),
        content="Ask before the storm.",
        pattern="storms close the harbour",
        confidence=0.6,
        evidence=["May", "June"],
        applicability=["spring"],
    )
    procedure, pattern = memories_of(mind)
    assert read_detail(MemoryType.PROCEDURAL, procedure.detail) == ProceduralDetail(
        steps=("Turn left.", "Push."), prerequisites=("a key",)
    )
    assert read_detail(MemoryType.STRATEGIC, pattern.detail) == StrategicDetail(
        pattern="storms close the harbour",
        confidence=0.6,
        evidence=("May", "June"),
        applicability=("spring",),
    )


def test_a_batch_is_stored_with_the_concepts_of_each(mind: Agent) -> None:
    created = create_memories(
        **ids_of(mind),
        creations=[
            Creation(content="The ferry sank.", detail=EpisodicDetail(), concepts={"ferry": 0.8}),
            Creation(content="Ferries float.", detail=SemanticDetail(), concepts={"ferry": 1.0}),
            Creation(content="Ferries float.", detail=SemanticDetail(), concepts={"physics": 0.5}),
        ],
    )
    assert created.stored == 2
    assert created.reinforced == {created.ids[1]}
    assert concepts_of(mind) == {
        ("The ferry sank.", "ferry", 0.8),
        ("Ferries float.", "ferry", 1.0),
        ("Ferries float.", "physics", 0.5),
    }


def test_an_empty_batch_creates_no_memories(mind: Agent) -> None:
    assert create_memories(**ids_of(mind), creations=[]).ids == ()


# --- Sources -----------------------------------------------------------------------------------------


def test_each_new_source_of_a_fact_raises_its_trust(mind: Agent) -> None:
    fact = create_semantic_memory(**ids_of(mind), content="The lake is sweet.", sources=[a_source("a")])
    with tenant_transaction(mind.tenant_id):
        same = add_source(agent_id=mind.id, memory_id=fact, source=a_source(" A "))
        more = add_source(agent_id=mind.id, memory_id=fact, source=a_source("b"))
    assert (same, more) == pytest.approx((0.575, 0.7875))
    (row,) = memories_of(mind)
    assert row.trust == more
    assert [source["reference"] for source in row.detail["sources"]] == ["a", "b"]


def test_only_a_known_fact_with_room_accepts_a_source(mind: Agent, other_mind: Agent) -> None:
    event = create_episodic_memory(**ids_of(mind), content="It rained.")
    foreign = create_semantic_memory(**ids_of(other_mind), content="Rain is wet.")
    full = create_semantic_memory(
        **ids_of(mind),
        content="Rain is wet.",
        sources=[a_source(str(number), 0.01) for number in range(MAX_SOURCES)],
    )
    with tenant_transaction(mind.tenant_id):
        with pytest.raises(Invalid, match="only a semantic memory has sources"):
            add_source(agent_id=mind.id, memory_id=event, source=a_source("a"))
        for unknown in (uuid7(), foreign):
            with pytest.raises(NotFound):
                add_source(agent_id=mind.id, memory_id=unknown, source=a_source("a"))
        with pytest.raises(LimitReached, match="at most 100 sources"):
            add_source(agent_id=mind.id, memory_id=full, source=a_source("a"))


# --- Practice ----------------------------------------------------------------------------------------


def test_outcomes_of_a_procedure_are_counted(mind: Agent) -> None:
    procedure = create_procedural_memory(**ids_of(mind), content="How to open the lock.", steps=["Push."])
    with tenant_transaction(mind.tenant_id):
        for success in (True, True, False):
            practised = record_outcome(agent_id=mind.id, memory_id=procedure, success=success)
        row = Practice.objects.get(memory_id=procedure)
    assert (practised.successes, practised.failures) == (row.successes, row.failures) == (2, 1)
    assert practised.success_rate == pytest.approx(2 / 3)


def test_only_the_agents_own_procedures_are_practised(mind: Agent, other_mind: Agent) -> None:
    event = create_episodic_memory(**ids_of(mind), content="It rained.")
    foreign = create_procedural_memory(**ids_of(other_mind), content="How to open the lock.", steps=["Push."])
    with tenant_transaction(mind.tenant_id):
        with pytest.raises(Invalid, match="only a procedural memory has outcomes"):
            record_outcome(agent_id=mind.id, memory_id=event, success=True)
        for unknown in (uuid7(), foreign):
            with pytest.raises(NotFound):
                record_outcome(agent_id=mind.id, memory_id=unknown, success=True)
        assert not Practice.objects.exists()
