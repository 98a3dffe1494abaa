"""Concepts as rows: linked in bulk, ordered in a hierarchy, used for recall."""

from __future__ import annotations

import math
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from apps.agents.models import Agent
from apps.memories.models import Concept, Edge, Memory, MemoryConcept
from apps.memories.services.graph.concepts import (
    ConceptNode,
    concept_tree,
    concepts_of,
    link_memories,
    link_memory_to_concept,
    memories_of_concept,
    merge_concepts,
    set_parent,
)
from apps.memories.services.store.remember import store
from apps.tenants.scope import tenant_transaction
from arbor.errors import Invalid, NotFound
from arbor.memory.values import MemoryStatus
from tests.integration.memories.conftest import NOON, a_memory, at_once

DAY_AFTER = NOON + timedelta(days=1)


def store_memories(agent: Agent, *texts: str) -> list[UUID]:
    """Store memories, the first the most important, and return their ids."""
    with tenant_transaction(agent.tenant_id):
        memories = [a_memory(text, importance=0.9 - place / 10) for place, text in enumerate(texts)]
        return list(store(agent_id=agent.id, memories=memories, vectors=None).ids)


def link(agent: Agent, links: dict[UUID, list[tuple[str, float]]]) -> int:
    with tenant_transaction(agent.tenant_id):
        return link_memories(agent_id=agent.id, links=links)


def move(agent: Agent, concept: str, parent: str | None) -> None:
    with tenant_transaction(agent.tenant_id):
        set_parent(agent_id=agent.id, concept=concept, parent=parent)


def recall_contents(agent: Agent, name: str, *, narrower: bool = True) -> list[str]:
    with tenant_transaction(agent.tenant_id):
        memories = memories_of_concept(agent_id=agent.id, name=name, include_narrower=narrower, now=DAY_AFTER)
        return [memory.content for memory in memories]


def ancestries(agent: Agent) -> dict[str, list[str]]:
    with tenant_transaction(agent.tenant_id):
        names = {str(row.id): row.name for row in Concept.objects.filter(agent_id=agent.id)}
        return {
            row.name: [names[ancestor] for ancestor in row.ancestors]
            for row in Concept.objects.filter(agent_id=agent.id)
        }


# --- Links -------------------------------------------------------------------------------------------


def test_many_memories_are_linked_by_four_statements(mind: Agent, statements: list[str]) -> None:
    first, second = store_memories(mind, "Coltrane played until two.", "The trio went home.")
    statements.clear()
    links = {first: [("Jazz", 0.6), ("  jazz", 0.9), ("Night", 0.5)], second: [("JAZZ", 0.4)]}
    assert link(mind, links) == 3
    assert len([statement for statement in statements if "set_config" not in statement]) == 4
    with tenant_transaction(mind.tenant_id):
        assert [(concept.name, concept.strength) for concept in concepts_of(memory_id=first)] == [
            ("Jazz", 0.9),
            ("Night", 0.5),
        ]
        assert (
            link_memory_to_concept(agent_id=mind.id, memory_id=first, concept_name="jazz.", strength=0.2) == 0
        )
        assert link_memory_to_concept(agent_id=mind.id, memory_id=second, concept_name="jazz") == 1
        assert sorted(MemoryConcept.objects.values_list("strength", flat=True)) == [0.5, 0.9, 1.0]
        assert link_memories(agent_id=mind.id, links={}) == 0


@pytest.mark.parametrize(
    ("name", "strength"), [("", 0.5), ("x" * 101, 0.5), ("a\0b", 0.5), ("jazz", math.nan), ("jazz", 1.5)]
)
def test_one_invalid_link_leaves_all_unwritten(mind: Agent, name: str, strength: float) -> None:
    (memory_id,) = store_memories(mind, "Coltrane played until two.")
    with pytest.raises(Invalid):
        link(mind, {memory_id: [("music", 0.5), (name, strength)]})
    assert ancestries(mind) == {}


def test_memories_that_are_not_this_agents_are_refused(
    mind: Agent, other_mind: Agent, foreign_mind: Agent
) -> None:
    (own,) = store_memories(mind, "Ours.")
    for stranger in (*store_memories(other_mind, "His."), *store_memories(foreign_mind, "Theirs."), uuid4()):
        with pytest.raises(NotFound, match=str(stranger)):
            link(mind, {own: [("jazz", 1)], stranger: [("jazz", 1)]})
    assert ancestries(mind) == {}


def test_concurrent_links_make_each_concept_once(mind: Agent) -> None:
    ids = store_memories(mind, *(f"Concert {number}." for number in range(8)))
    names = [f"concept {number}" for number in range(12)]

    def work(worker: int) -> int:
        order = names if worker % 2 else names[::-1]
        return link(mind, {memory_id: [(name, 0.5) for name in order] for memory_id in ids[worker::2]})

    assert sum(at_once(work, writers=4)) == len(ids) * len(names)
    assert sorted(ancestries(mind)) == sorted(names)


# --- Hierarchy ---------------------------------------------------------------------------------------


def test_a_moved_concept_takes_its_narrower_concepts_along(mind: Agent) -> None:
    (memory_id,) = store_memories(mind, "Coltrane played until two.")
    link(mind, {memory_id: [(name, 1.0) for name in ("art", "music", "jazz", "bop", "craft")]})
    move(mind, "bop", "jazz")
    move(mind, "jazz", "music")
    move(mind, "music", "art")
    assert ancestries(mind) == {
        "art": [],
        "music": ["art"],
        "jazz": ["art", "music"],
        "bop": ["art", "music", "jazz"],
        "craft": [],
    }
    with pytest.raises(
        Invalid, match="'art' cannot be put below 'bop': a concept cannot be broader than itself"
    ):
        move(mind, "art", "bop")
    move(mind, "jazz", "craft")
    assert ancestries(mind)["bop"] == ["craft", "jazz"]
    move(mind, "jazz", None)
    assert ancestries(mind)["bop"] == ["jazz"]
    with pytest.raises(NotFound, match="no concept 'blues'"):
        move(mind, "jazz", "blues")


def test_concurrent_moves_make_no_cycle(mind: Agent) -> None:
    (memory_id,) = store_memories(mind, "Coltrane played until two.")
    link(mind, {memory_id: [("jazz", 1.0), ("blues", 1.0)]})

    def work(worker: int) -> bool:
        try:
            move(mind, *(("jazz", "blues") if worker else ("blues", "jazz")))
        except Invalid:
            return False
        return True

    assert sorted(at_once(work, writers=2)) == [False, True]
    assert sorted(map(len, ancestries(mind).values())) == [0, 1]


def test_a_merge_moves_memories_edges_and_narrower_concepts(mind: Agent) -> None:
    first, second = store_memories(mind, "Coltrane played until two.", "The trio went home.")
    link(mind, {first: [("jazz", 0.4), ("bop", 1.0)], second: [("jazz music", 0.9), ("night", 1.0)]})
    link(mind, {first: [("jazz music", 0.8)]})
    move(mind, "bop", "jazz music")
    with tenant_transaction(mind.tenant_id):
        ids = {row.name: row.id for row in Concept.objects.all()}
        for source, target, weight in [
            ("jazz music", "night", 0.7),
            ("jazz", "night", 0.4),
            ("jazz music", "jazz", 1.0),
        ]:
            Edge.objects.create(
                tenant_id=mind.tenant_id,
                agent_id=mind.id,
                source_kind="concept",
                source_id=ids[source],
                target_kind="concept",
                target_id=ids[target],
                relation="associated",
                weight=weight,
            )
        merge_concepts(agent_id=mind.id, retained="jazz", gone="jazz music")
        links = {row.memory_id: row.strength for row in MemoryConcept.objects.filter(concept_id=ids["jazz"])}
        assert links == {first: 0.8, second: 0.9}
        edges = Edge.objects.values_list("source_id", "target_id", "weight")
        assert list(edges) == [(ids["jazz"], ids["night"], 0.7)]
    assert ancestries(mind) == {"jazz": [], "bop": ["jazz"], "night": []}
    with pytest.raises(Invalid, match="with itself"), tenant_transaction(mind.tenant_id):
        merge_concepts(agent_id=mind.id, retained="jazz", gone="Jazz")


def test_the_tree_shows_each_concept_below_its_broader_one(mind: Agent) -> None:
    first, second = store_memories(mind, "Coltrane played until two.", "The trio went home.")
    link(mind, {first: [("jazz", 1.0), ("music", 1.0)], second: [("jazz", 1.0), ("Blues", 1.0)]})
    move(mind, "jazz", "music")
    move(mind, "Blues", "music")

    def shape(nodes: tuple[ConceptNode, ...]) -> list[object]:
        return [(node.name, node.memories, shape(node.narrower)) for node in nodes]

    with tenant_transaction(mind.tenant_id):
        assert shape(concept_tree(agent_id=mind.id)) == [("music", 1, [("Blues", 1, []), ("jazz", 2, [])])]


# --- Recall by concept -------------------------------------------------------------------------------


def test_recall_by_concept_includes_narrower_concepts(mind: Agent) -> None:
    first, second, third, archived = store_memories(mind, "One.", "Two.", "Three.", "Out of mind.")
    link(mind, {first: [("music", 0.3)], second: [("jazz", 0.9), ("music", 0.1)], third: [("music", 0.8)]})
    link(mind, {archived: [("music", 1.0)]})
    move(mind, "jazz", "music")
    with tenant_transaction(mind.tenant_id):
        Memory.objects.filter(id=archived).update(status=MemoryStatus.ARCHIVED)
    assert recall_contents(mind, "Music") == ["Two.", "Three.", "One."]
    assert recall_contents(mind, "music", narrower=False) == ["Three.", "One.", "Two."]
    assert recall_contents(mind, "jazz") == ["Two."]


def test_recall_by_an_unknown_concept_is_refused(mind: Agent, other_mind: Agent) -> None:
    (memory_id,) = store_memories(other_mind, "His.")
    link(other_mind, {memory_id: [("jazz", 1.0)]})
    with pytest.raises(NotFound, match="no concept 'jazz'"):
        recall_contents(mind, "jazz")
    for limit in (0, 1_000_000):
        with pytest.raises(Invalid, match="1 to 200"), tenant_transaction(mind.tenant_id):
            memories_of_concept(agent_id=mind.id, name="jazz", limit=limit)
