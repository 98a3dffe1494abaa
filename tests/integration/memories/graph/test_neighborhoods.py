"""Neighborhoods: equal to their definition, marked stale by changes, refreshed without blocking."""

from __future__ import annotations

from threading import Barrier
from uuid import UUID, uuid4

import pytest
from django.db import connections

from apps.agents.models import Agent
from apps.memories.models import Concept, Memory, Upkeep
from apps.memories.services.graph import neighborhoods
from apps.memories.services.graph.concepts import link_memories, merge_concepts
from apps.memories.services.graph.neighborhoods import (
    mark_stale,
    refresh_batch,
    refresh_neighborhoods,
)
from apps.memories.services.retention.archive import archive, restore
from apps.memories.services.store.remember import remember
from apps.tenants.scope import APP, tenant_transaction
from arbor.memory.relations import GraphNodeKind
from tests.integration.memories.chosen_vectors import (
    clustered_vectors,
    expected_neighborhoods,
    neighbors_of,
    refresh_all,
    stale_of,
    store_edge,
    store_in_episode,
    store_with_vectors,
    upkeep_of,
)
from tests.integration.memories.conftest import a_memory, at_once


def assert_neighborhoods_as_defined(agent: Agent) -> None:
    """Check every neighborhood against the plain computation."""
    expected = expected_neighborhoods(agent)
    for memory_id, neighbors in expected.items():
        stored = neighbors_of(agent, memory_id)
        assert stored == pytest.approx(neighbors, abs=2e-4), memory_id


def test_neighbors_are_related_similar_or_adjacent_memories(mind: Agent) -> None:
    ids = store_with_vectors(mind, [*clustered_vectors(40), None, None])
    store_in_episode(mind, ids[:12])
    for source, target in [(0, 1), (1, 2), (2, 3), (5, 41), (41, 40)]:
        store_edge(mind, ids[source], ids[target])
    assert refresh_all(mind) >= 42
    assert_neighborhoods_as_defined(mind)
    assert not stale_of(mind)
    assert all(row.computed_at for row in upkeep_of(mind).values())


def test_paths_pass_concepts_but_only_memories_are_neighbors(mind: Agent) -> None:
    one, two, three = store_with_vectors(mind, [None] * 3)
    concept = uuid4()
    kinds = (GraphNodeKind.MEMORY, GraphNodeKind.CONCEPT)
    store_edge(mind, one, concept, kinds=kinds)
    store_edge(mind, two, concept, kinds=kinds)
    store_edge(mind, two, three)
    refresh_all(mind)
    assert neighbors_of(mind, one) == {two: 0.5}
    assert neighbors_of(mind, two) == {three: 1.0, one: 0.5}


def test_a_merge_of_concepts_brings_their_memories_closer(mind: Agent) -> None:
    one, two, three = store_with_vectors(mind, [None] * 3)
    with tenant_transaction(mind.tenant_id):
        link_memories(agent_id=mind.id, links={three: [("ferry", 1.0), ("boat", 1.0)]})
        ids = {row.key: row.id for row in Concept.objects.filter(agent_id=mind.id)}
    for memory, concept in ((one, "ferry"), (two, "boat")):
        store_edge(mind, memory, ids[concept], kinds=(GraphNodeKind.MEMORY, GraphNodeKind.CONCEPT))
    refresh_all(mind)
    assert neighbors_of(mind, one) == {}
    with tenant_transaction(mind.tenant_id):
        merge_concepts(agent_id=mind.id, retained="boat", gone="ferry")
    assert stale_of(mind) == {one, two}
    refresh_all(mind)
    assert (neighbors_of(mind, one), neighbors_of(mind, two)) == ({two: 0.5}, {one: 0.5})


def test_foreign_and_archived_memories_are_no_neighbors(mind: Agent, other_mind: Agent) -> None:
    ids = store_with_vectors(mind, clustered_vectors(12, spread=0.05))
    store_with_vectors(other_mind, clustered_vectors(12, spread=0.05))
    with tenant_transaction(mind.tenant_id):
        Memory.objects.filter(id=ids[0]).update(status="archived")
    refresh_all(mind)
    assert neighbors_of(mind, ids[4])
    listed = {neighbor_id for memory_id in ids for neighbor_id in neighbors_of(mind, memory_id)}
    assert listed <= set(ids[1:])


def test_a_large_mind_is_read_in_blocks_with_the_same_result(
    mind: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighborhoods, "BLOCK", 7)
    monkeypatch.setattr(neighborhoods, "BATCH", 9)
    store_with_vectors(mind, clustered_vectors(40))
    refresh_all(mind)
    with tenant_transaction(mind.tenant_id):
        mark_stale(list(upkeep_of(mind)))
    refresh_all(mind)
    assert_neighborhoods_as_defined(mind)


def test_a_job_run_ends_and_the_next_one_has_no_work(mind: Agent) -> None:
    first = store_with_vectors(mind, clustered_vectors(60, seed=3))
    store_in_episode(mind, first[:20])
    assert refresh_neighborhoods().done >= 60
    store_with_vectors(mind, clustered_vectors(30, seed=4), first=60)
    again = refresh_neighborhoods()
    # The new memories, and at most all old ones as their neighbors, each once.
    assert 30 <= again.done <= 30 + 60
    assert not stale_of(mind)
    assert refresh_neighborhoods().done == 0


def test_a_new_memory_enters_the_neighborhoods_nearby(mind: Agent) -> None:
    old = store_with_vectors(mind, clustered_vectors(12, spread=0.1))
    refresh_all(mind)
    (new,) = store_with_vectors(mind, clustered_vectors(1, spread=0.1), first=12)
    refresh_all(mind)
    near = neighbors_of(mind, new)
    assert near
    assert all(new in neighbors_of(mind, neighbor_id) for neighbor_id in near)
    assert set(near) <= set(old)
    assert_neighborhoods_as_defined(mind)


def test_a_change_marks_a_memory_and_its_neighbors(mind: Agent, statements: list[str]) -> None:
    ids = store_with_vectors(mind, clustered_vectors(12, spread=0.1))
    refresh_all(mind)
    near = set(neighbors_of(mind, ids[0]))
    statements.clear()
    with tenant_transaction(mind.tenant_id):
        assert mark_stale([ids[0], uuid4()]) == 1 + len(near)
    assert len(statements) == 1
    assert stale_of(mind) == {ids[0], *near}
    with tenant_transaction(mind.tenant_id):
        Memory.objects.filter(id=ids[0]).update(status="archived")
    refresh_all(mind)
    assert all(ids[0] not in neighbors_of(mind, neighbor_id) for neighbor_id in near)
    assert_neighborhoods_as_defined(mind)


@pytest.mark.parametrize("way", ["restored", "remembered again"])
def test_a_restored_memory_is_a_neighbor_again(mind: Agent, way: str) -> None:
    tide, moon = a_memory("The tide turns at noon."), a_memory("The moon was full.")
    stored = remember(tenant_id=mind.tenant_id, agent_id=mind.id, memories=[tide, moon])
    store_edge(mind, *stored.ids)
    refresh_all(mind)
    with tenant_transaction(mind.tenant_id):
        archive(memory_ids=stored.ids[:1], reason="a test", actor="cli:test")
    refresh_all(mind)
    assert neighbors_of(mind, stored.ids[1]) == {}
    if way == "restored":
        with tenant_transaction(mind.tenant_id):
            restore(memory_ids=stored.ids[:1], reason="a test", actor="cli:test")
    else:
        remember(tenant_id=mind.tenant_id, agent_id=mind.id, memories=[tide])
    refresh_all(mind)
    assert stored.ids[0] in neighbors_of(mind, stored.ids[1])
    assert stored.ids[1] in neighbors_of(mind, stored.ids[0])


def test_a_memory_without_upkeep_gets_one_when_it_is_marked(mind: Agent) -> None:
    (only,) = store_with_vectors(mind, [None])
    with tenant_transaction(mind.tenant_id):
        Upkeep.objects.all().delete()
        mark_stale([only])
    assert stale_of(mind) == {only}


def test_ids_of_others_mark_nothing(mind: Agent, foreign_mind: Agent) -> None:
    (foreign,) = store_with_vectors(foreign_mind, [None])
    refresh_all(foreign_mind)
    with tenant_transaction(mind.tenant_id):
        assert mark_stale([foreign]) == 0
        assert mark_stale([]) == 0
    assert not stale_of(foreign_mind)


def test_a_neighborhood_changed_during_its_refresh_stays_stale(
    mind: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = store_with_vectors(mind, clustered_vectors(6, spread=0.1))
    write = neighborhoods._write

    def change_meanwhile(*parts: object) -> int:
        # Another connection changes it, as an operator or a heartbeat does.
        def mark(_: int) -> None:
            with tenant_transaction(mind.tenant_id):
                mark_stale([ids[2]], with_neighbors=False)

        at_once(mark, writers=1)
        return write(*parts)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(neighborhoods, "_write", change_meanwhile)
        assert refresh_batch(mind.tenant_id, mind.id) == 5
    assert stale_of(mind) == {ids[2]}
    refresh_all(mind)
    assert_neighborhoods_as_defined(mind)


def test_a_locked_row_is_skipped_without_waiting(mind: Agent) -> None:
    ids = store_with_vectors(mind, clustered_vectors(6, spread=0.1))
    locked, checked = Barrier(2, timeout=20), Barrier(2, timeout=20)

    def work(writer: int) -> int:
        with tenant_transaction(mind.tenant_id):
            if writer == 0:
                list(Upkeep.objects.select_for_update().filter(memory_id=ids[0]))
                locked.wait()
                checked.wait()
                return 0
        locked.wait()
        try:
            return refresh_batch(mind.tenant_id, mind.id)
        finally:
            checked.wait()

    assert at_once(work, writers=2) == [0, 5]
    assert stale_of(mind) == {ids[0]}


def test_concurrent_refreshes_leave_no_stale_neighborhood(
    mind: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighborhoods, "BATCH", 10)
    store_with_vectors(mind, clustered_vectors(60))

    def work(_: int) -> int:
        refreshed = 0
        for _ in range(30):
            refreshed += refresh_batch(mind.tenant_id, mind.id)
        return refreshed

    refreshed = sum(at_once(work, writers=4))
    # A worker that finds the agent locked does nothing, so four may leave some work.
    refreshed += refresh_all(mind)
    assert refreshed >= 60
    assert_all_refreshed(mind)


def assert_all_refreshed(agent: Agent) -> None:
    """Check that every neighborhood is there, and none is stale."""
    rows = upkeep_of(agent).values()
    assert all(row.neighbors is not None and not row.stale for row in rows)


def test_an_interrupted_job_run_is_completed_by_the_next(
    mind: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighborhoods, "BATCH", 10)
    store_with_vectors(mind, clustered_vectors(25))
    refresh_batch(mind.tenant_id, mind.id)

    def die(*_: object) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(neighborhoods, "_write", die)
        with pytest.raises(KeyboardInterrupt):
            refresh_batch(mind.tenant_id, mind.id)
    assert len(stale_of(mind)) >= 15
    refresh_all(mind)
    assert_all_refreshed(mind)


def test_one_agents_fault_does_not_stop_the_others(
    mind: Agent, other_mind: Agent, foreign_mind: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    for agent in (mind, other_mind, foreign_mind):
        store_with_vectors(agent, clustered_vectors(5))

    class Faulty(neighborhoods.AgentVectors):
        def __init__(self, agent_id: UUID) -> None:
            if agent_id == other_mind.id:
                raise RuntimeError("its vectors cannot be read")
            super().__init__(agent_id)

    monkeypatch.setattr(neighborhoods, "AgentVectors", Faulty)
    job_run = refresh_neighborhoods()
    assert (job_run.done, job_run.failed) == (10, 1)
    assert len(stale_of(other_mind)) == 5


def test_vectors_of_two_lengths_are_never_compared(mind: Agent) -> None:
    ids = store_with_vectors(mind, clustered_vectors(6, spread=0.1))
    with tenant_transaction(mind.tenant_id), connections[APP].cursor() as cursor:
        cursor.execute(
            "UPDATE memories_memory SET embedding = '[1,0,0]' WHERE tenant_id = %s AND id = %s",
            [mind.tenant_id, ids[0]],
        )
    refresh_all(mind)
    assert neighbors_of(mind, ids[0]) == {}
    assert neighbors_of(mind, ids[5])


def test_a_move_between_two_searches_does_not_break_them(mind: Agent) -> None:
    """Search by vectors of the next length, as if the agent had been moved since the first search."""
    one, two, three = store_with_vectors(mind, clustered_vectors(3, spread=0.1))
    with tenant_transaction(mind.tenant_id), connections[APP].cursor() as cursor:
        vectors = neighborhoods.AgentVectors(mind.id)
        read = "SELECT halfvec_send(embedding) FROM memories_memory WHERE tenant_id = %s AND id = %s"
        cursor.execute(read, [mind.tenant_id, one])
        (before,) = cursor.fetchone()
        assert vectors.nearest([(one, before)])[one].keys() == {two, three}
        cursor.execute(
            "UPDATE memories_memory SET embedding = '[1,0,0]' WHERE tenant_id = %s", [mind.tenant_id]
        )
        cursor.execute(read, [mind.tenant_id, one])
        (after,) = cursor.fetchone()
        assert vectors.nearest([(one, after)])[one].keys() == {two, three}


def test_a_step_takes_ten_statements_at_most(mind: Agent, statements: list[str]) -> None:
    store_with_vectors(mind, clustered_vectors(40))
    refresh_batch(mind.tenant_id, mind.id)
    store_with_vectors(mind, clustered_vectors(40, seed=2), first=40)
    statements.clear()
    refresh_batch(mind.tenant_id, mind.id)
    assert len(statements) <= 10, statements
