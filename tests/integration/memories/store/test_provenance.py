"""Relations between memories of several agents, created at once."""

from __future__ import annotations

from uuid import UUID

import pytest

from apps.agents.models import Agent
from apps.memories.models import Edge, Upkeep
from apps.memories.services.store.provenance import ProvenanceRelation, store_provenance
from apps.memories.services.store.remember import store
from apps.tenants.scope import tenant_transaction
from arbor.memory.relations import Relation
from tests.integration.memories.conftest import a_memory


def store_memories(agent: Agent, *texts: str) -> tuple[UUID, ...]:
    with tenant_transaction(agent.tenant_id):
        return store(agent_id=agent.id, memories=[a_memory(text) for text in texts], vectors=None).ids


def mark_fresh(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        Upkeep.objects.filter(agent_id=agent.id).update(stale=False)


def stale_ids(agent: Agent) -> set[UUID]:
    with tenant_transaction(agent.tenant_id):
        return set(Upkeep.objects.filter(agent_id=agent.id, stale=True).values_list("memory_id", flat=True))


def edges_of(agent: Agent) -> set[tuple[UUID, UUID, str, str]]:
    with tenant_transaction(agent.tenant_id):
        rows = Edge.objects.filter(agent_id=agent.id, source_kind="memory", target_kind="memory")
        return set(rows.values_list("source_id", "target_id", "relation", "origin"))


def provenance_of(
    agent: Agent, source: UUID, target: UUID, relation: Relation = Relation.LEARNED_FROM, origin: str = "test"
) -> ProvenanceRelation:
    return ProvenanceRelation(
        agent_id=agent.id, source_id=source, target_id=target, relation=relation, origin=origin
    )


def store_relations(agent: Agent, *relations: ProvenanceRelation) -> None:
    with tenant_transaction(agent.tenant_id):
        store_provenance(relations)


def test_relations_of_several_agents_take_one_statement(
    mind: Agent, other_mind: Agent, statements: list[str]
) -> None:
    note, heartbeat = store_memories(mind, "A note.", "A heartbeat.")
    poem, bell = store_memories(other_mind, "A poem.", "The bell.")
    statements.clear()
    store_relations(mind)
    assert statements == []
    store_relations(
        mind,
        provenance_of(mind, note, heartbeat),
        provenance_of(other_mind, poem, bell, Relation.DERIVED_FROM, origin="o" * 300),
    )
    assert len(statements) == 1
    assert edges_of(mind) == {(note, heartbeat, "learned_from", "test")}
    assert edges_of(other_mind) == {(poem, bell, "derived_from", "o" * 200)}


@pytest.mark.parametrize(
    ("relation", "marked"), [(Relation.LEARNED_FROM, {0}), (Relation.DERIVED_FROM, {0, 1})]
)
def test_a_new_relation_marks_the_changed_neighborhoods(
    mind: Agent, relation: Relation, marked: set[int]
) -> None:
    ids = store_memories(mind, "One.", "Two.", "Three.")
    mark_fresh(mind)
    store_relations(mind, provenance_of(mind, ids[0], ids[1], relation))
    assert stale_ids(mind) == {ids[place] for place in marked}
    mark_fresh(mind)
    store_relations(
        mind, provenance_of(mind, ids[0], ids[1], relation), provenance_of(mind, ids[2], ids[2], relation)
    )
    assert stale_ids(mind) == set()
    assert len(edges_of(mind)) == 1


def test_a_stale_neighborhood_gets_a_new_row_version(mind: Agent) -> None:
    one, two = store_memories(mind, "One.", "Two.")

    def version() -> str:
        with tenant_transaction(mind.tenant_id):
            rows = Upkeep.objects.filter(memory_id=one).extra(select={"version": "xmin::text"})
            return str(rows.values_list("version", flat=True)[0])

    assert stale_ids(mind) == {one, two}
    before = version()
    # A running refresh writes only rows of the version that it has read.
    store_relations(mind, provenance_of(mind, one, two))
    assert version() != before
