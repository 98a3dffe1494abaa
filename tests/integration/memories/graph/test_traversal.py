"""Graph queries: equal to a plain traversal, with cycles too, and within tenant and agent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from uuid import uuid4

import pytest
from django.db import connections
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.agents.models import Agent
from apps.memories.models import Concept, Edge, MemoryConcept
from apps.memories.services.graph import queries, traversal
from apps.memories.services.graph.traversal import (
    find_causes,
    find_connected,
    find_contradictions,
    find_path,
    find_supporting_evidence,
)
from apps.memories.services.store.remember import store
from apps.tenants.scope import APP, tenant_transaction
from arbor.errors import Invalid, LimitReached, NotFound
from arbor.memory.relations import GraphNode, GraphNodeKind, LabeledNode, Relation
from tests.factories.goals import GoalFactory
from tests.factories.memories import MemoryFactory
from tests.integration.memories.conftest import turns
from tests.integration.memories.graph.test_graph import a_concept, a_goal, create_memory_nodes, relate_nodes

MEMORIES = 9
FOLLOWED = (Relation.CAUSES, Relation.DERIVED_FROM, Relation.ASSOCIATED)
edges = st.lists(
    st.tuples(st.integers(0, MEMORIES - 1), st.integers(0, MEMORIES - 1), st.sampled_from(FOLLOWED)).filter(
        lambda edge: edge[0] != edge[1]
    ),
    max_size=24,
    unique=True,
)

type DrawnEdges = list[tuple[int, int, Relation]]


def distances(start: int, hops: int, steps: Callable[[int], set[int]]) -> dict[int, int]:
    """Compute distances by a plain breadth-first traversal."""
    far = {start: 0}
    frontier = {start}
    for hop in range(1, hops + 1):
        frontier = {near for place in frontier for near in steps(place)} - far.keys()
        far |= dict.fromkeys(frontier, hop)
    del far[start]
    return far


def hops_by_place(found: Iterable[LabeledNode], nodes: Sequence[GraphNode]) -> dict[int, int]:
    return {nodes.index(GraphNode(node.kind, node.id)): node.hops for node in found}


def assert_paths(
    found: Iterable[LabeledNode], start: GraphNode, edges: DrawnEdges, nodes: Sequence[GraphNode]
) -> None:
    expected_edges = {(nodes[source], nodes[target], relation) for source, target, relation in edges}
    for node in found:
        at = start
        for step in node.path:
            assert (step.source, step.target, step.relation) in expected_edges
            at = step.target if step.source == at else step.source
        assert (at.kind, at.id, node.hops) == (node.kind, node.id, len(node.path))


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn_edges=edges, hops=st.integers(1, 6))
def test_each_traversal_equals_a_plain_one(mind: Agent, drawn_edges: DrawnEdges, hops: int) -> None:
    nodes = _nine_memories(mind)
    _store_edges(mind, drawn_edges, nodes)

    def anywhere(at: int) -> set[int]:
        return {b for a, b, _ in drawn_edges if a == at} | {a for a, b, _ in drawn_edges if b == at}

    def forward(at: int) -> set[int]:
        return {b for a, b, _ in drawn_edges if a == at}

    def to_causes(at: int) -> set[int]:
        return {a for a, b, relation in drawn_edges if b == at and relation is Relation.CAUSES} | {
            b for a, b, relation in drawn_edges if a == at and relation is Relation.DERIVED_FROM
        }

    with tenant_transaction(mind.tenant_id):
        connected = find_connected(agent_id=mind.id, node=nodes[0], hops=hops)
        causes = find_causes(agent_id=mind.id, node=nodes[0], hops=hops)
        assert hops_by_place(connected.found, nodes) == distances(0, hops, anywhere)
        assert hops_by_place(causes.found, nodes) == distances(0, hops, to_causes)
        assert_paths([*connected.found, *causes.found], nodes[0], drawn_edges, nodes)
        for directed, steps in ((False, anywhere), (True, forward)):
            far = distances(0, hops, steps)
            for end in range(1, MEMORIES):
                path = find_path(
                    agent_id=mind.id, start=nodes[0], end=nodes[end], directed=directed, hops=hops
                )
                assert hops_by_place(path.found, nodes) == ({end: far[end]} if end in far else {})
                assert not path.bounded
                assert_paths(path.found, nodes[0], drawn_edges, nodes)


def _nine_memories(mind: Agent) -> list[GraphNode]:
    with tenant_transaction(mind.tenant_id):
        Edge.objects.all().delete()
        while len(ids := [memory.id for memory in mind.memories.order_by("id")]) < MEMORIES:
            MemoryFactory.create(agent=mind)
    return [GraphNode(GraphNodeKind.MEMORY, memory_id) for memory_id in ids]


def _store_edges(mind: Agent, edges: DrawnEdges, nodes: Sequence[GraphNode]) -> None:
    with tenant_transaction(mind.tenant_id):
        Edge.objects.bulk_create(
            Edge(
                tenant_id=mind.tenant_id,
                agent_id=mind.id,
                source_kind=nodes[source].kind,
                source_id=nodes[source].id,
                target_kind=nodes[target].kind,
                target_id=nodes[target].id,
                relation=relation,
            )
            for source, target, relation in edges
        )


def test_a_chain_of_causes_is_followed_to_its_start(mind: Agent) -> None:
    rain, mud, fall = create_memory_nodes(mind, 3)
    goal = a_goal(mind, title="Mend the path")
    relate_nodes(mind, rain, mud, Relation.CAUSES, weight=0.9)
    relate_nodes(mind, mud, fall, Relation.CAUSES)
    relate_nodes(mind, goal, fall, Relation.DERIVED_FROM)
    relate_nodes(mind, fall, rain, Relation.CAUSES)  # a cycle
    with tenant_transaction(mind.tenant_id):
        causes = find_causes(agent_id=mind.id, node=goal)
    assert [(node.id, node.hops) for node in causes.found] == [(fall.id, 1), (mud.id, 2), (rain.id, 3)]
    assert causes.found[0].label == "memory 2"
    first, *_, last = causes.found[2].path
    assert (first.source, first.target, first.relation) == (goal, fall, Relation.DERIVED_FROM)
    assert (last.source, last.target, last.weight) == (rain, mud, 0.9)


def test_supporting_evidence_is_found_over_hops(mind: Agent) -> None:
    claim, sighting, report, hearsay = create_memory_nodes(mind, 4)
    relate_nodes(mind, sighting, claim, Relation.SUPPORTS)
    relate_nodes(mind, report, sighting, Relation.SUPPORTS)
    relate_nodes(mind, hearsay, claim, Relation.CONTRADICTS)
    with tenant_transaction(mind.tenant_id):
        evidence = find_supporting_evidence(agent_id=mind.id, node=claim)
        near = find_supporting_evidence(agent_id=mind.id, node=claim, hops=1)
    assert [node.id for node in evidence.found] == [sighting.id, report.id]
    assert [node.id for node in near.found] == [sighting.id]


def test_contradictions_of_all_and_of_one_node(mind: Agent) -> None:
    one, two, three = create_memory_nodes(mind, 3)
    relate_nodes(mind, one, two, Relation.CONTRADICTS, weight=0.4, note="not both")
    relate_nodes(mind, two, three, Relation.CONTRADICTS)
    relate_nodes(mind, one, three, Relation.SUPPORTS)
    with tenant_transaction(mind.tenant_id):
        everything = find_contradictions(agent_id=mind.id)
        about = find_contradictions(agent_id=mind.id, about=one)
        with pytest.raises(NotFound):
            find_contradictions(agent_id=mind.id, about=GraphNode(GraphNodeKind.MEMORY, uuid4()))
    assert [(contradiction.first.id, contradiction.second.id) for contradiction in everything.found] == [
        (two.id, three.id),
        (one.id, two.id),
    ]
    assert [
        (contradiction.first.id, contradiction.weight, contradiction.note) for contradiction in about.found
    ] == [(one.id, 0.4, "not both")]


def test_hierarchies_of_concepts_and_goals_count_as_edges(mind: Agent) -> None:
    (memory,) = create_memory_nodes(mind, 1)
    broad, narrow = a_concept(mind, "Water"), a_concept(mind, "Tides")
    whole = a_goal(mind)
    with tenant_transaction(mind.tenant_id):
        Concept.objects.filter(id=narrow.id).update(parent_id=broad.id)
        MemoryConcept.objects.create(
            tenant_id=mind.tenant_id, concept_id=narrow.id, memory_id=memory.id, strength=0.7
        )
        part = GraphNode(GraphNodeKind.GOAL, GoalFactory.create(agent=mind, parent_id=whole.id).id)
        connected = find_connected(agent_id=mind.id, node=memory, hops=2)
        goals = find_connected(agent_id=mind.id, node=whole, hops=1, relations=[Relation.PARENT_OF])
        others = find_connected(agent_id=mind.id, node=whole, hops=1, relations=[Relation.CAUSES])
        path = find_path(agent_id=mind.id, start=broad, end=memory)
    assert [(node.id, node.hops, node.label) for node in connected.found] == [
        (narrow.id, 1, "Tides"),
        (broad.id, 2, "Water"),
    ]
    up = connected.found[1].path[1]
    assert (up.source, up.target, up.relation) == (broad, narrow, Relation.PARENT_OF)
    assert [node.id for node in goals.found] == [part.id]
    assert others.found == ()
    assert [step.weight for step in path.found[0].path] == [1.0, 0.7]


def test_a_traversal_stays_within_tenant_and_agent(
    mind: Agent, other_mind: Agent, foreign_mind: Agent
) -> None:
    one, two = create_memory_nodes(mind)
    relate_nodes(mind, one, two)
    for stranger in (other_mind, foreign_mind):
        theirs, also = create_memory_nodes(stranger)
        relate_nodes(stranger, theirs, also)
        # A row with another agent's memory, which no service would write.
        with tenant_transaction(stranger.tenant_id):
            Edge.objects.create(
                tenant_id=stranger.tenant_id,
                agent_id=stranger.id,
                source_kind="memory",
                source_id=theirs.id,
                target_kind="memory",
                target_id=two.id,
                relation="causes",
            )
        with tenant_transaction(mind.tenant_id):
            for ask in (find_causes, find_supporting_evidence):
                with pytest.raises(NotFound):
                    ask(agent_id=mind.id, node=theirs)
            with pytest.raises(NotFound):
                find_path(agent_id=mind.id, start=one, end=theirs)
            assert [node.id for node in find_connected(agent_id=mind.id, node=one, hops=6).found] == [two.id]
        with tenant_transaction(stranger.tenant_id):
            connected = find_connected(agent_id=stranger.id, node=theirs, hops=6)
        assert [node.id for node in connected.found] == [also.id]


def test_the_nodes_of_a_traversal_are_bounded(mind: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    hub, *rim = create_memory_nodes(mind, 30)
    for number, node in enumerate(rim):
        relate_nodes(mind, hub, node, weight=number / 100)
    monkeypatch.setattr(traversal, "MAX_NODES", 10)
    with tenant_transaction(mind.tenant_id):
        connected = find_connected(agent_id=mind.id, node=hub, hops=3)
    assert ({node.id for node in connected.found}, connected.bounded) == (
        {node.id for node in rim[-10:]},
        True,
    )


@pytest.mark.parametrize(("most", "bounded"), [(4, True), (5, False), (6, False)])
def test_an_answer_at_its_bound_is_marked_as_bounded(
    mind: Agent, monkeypatch: pytest.MonkeyPatch, most: int, bounded: bool
) -> None:
    hub, *rim = create_memory_nodes(mind, 7)
    apart = rim.pop()
    for number, node in enumerate(rim[:5]):
        relate_nodes(mind, hub, node, Relation.CONTRADICTS, weight=number / 10)
    monkeypatch.setattr(traversal, "MAX_NODES", most)
    with tenant_transaction(mind.tenant_id):
        connected = find_connected(agent_id=mind.id, node=hub, hops=2)
        against = find_contradictions(agent_id=mind.id)
        unjoined = find_path(agent_id=mind.id, start=hub, end=apart)
        joined = find_path(agent_id=mind.id, start=hub, end=rim[4])
    for answer in (connected, against):
        assert (len(answer.found), answer.bounded) == (min(most, 5), bounded)
    assert (unjoined.found, unjoined.bounded) == ((), bounded)
    assert (len(joined.found), joined.bounded) == (1, False)


def test_a_slow_traversal_ends_and_the_transaction_goes_on(
    mind: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,) = create_memory_nodes(mind, 1)
    monkeypatch.setattr(traversal, "TRAVERSAL_TIMEOUT_S", 0.05)
    monkeypatch.setattr(
        queries,
        "TRAVERSE",
        queries.TRAVERSE.replace("SELECT 0 AS hops", "SELECT 0 + length(pg_sleep(5)::text) AS hops"),
    )
    with tenant_transaction(mind.tenant_id):
        with pytest.raises(LimitReached, match="fewer hops"):
            find_connected(agent_id=mind.id, node=one, hops=1)
        assert mind.memories.count() == 1
        with connections[APP].cursor() as cursor:
            cursor.execute("SHOW statement_timeout")
            assert cursor.fetchone() != ("50ms",)


@pytest.mark.parametrize("hops", [0, 7, 1_000_000])
def test_the_hops_of_a_traversal_are_bounded(mind: Agent, hops: int) -> None:
    one, two = create_memory_nodes(mind)
    with tenant_transaction(mind.tenant_id):
        for ask in (find_causes, find_connected, find_supporting_evidence):
            with pytest.raises(Invalid, match="1 to 6"):
                ask(agent_id=mind.id, node=one, hops=hops)
        with pytest.raises(Invalid, match="1 to 6"):
            find_path(agent_id=mind.id, start=one, end=two, hops=hops)


def test_a_deleted_memory_is_passed_but_not_found(mind: Agent) -> None:
    one, two, three = create_memory_nodes(mind, 3)
    relate_nodes(mind, one, two)
    relate_nodes(mind, two, three)
    with tenant_transaction(mind.tenant_id):
        mind.memories.filter(id=two.id).delete()
        assert [node.id for node in find_connected(agent_id=mind.id, node=one, hops=2).found] == [three.id]


def test_a_path_from_a_node_to_itself_is_empty(mind: Agent) -> None:
    (one,) = create_memory_nodes(mind, 1)
    with tenant_transaction(mind.tenant_id):
        itself = find_path(agent_id=mind.id, start=one, end=one)
    (end,) = itself.found
    assert (end.id, end.hops, end.path) == (one.id, 0, ())


def test_the_next_memory_of_an_episode_is_reached_by_rule(mind: Agent) -> None:
    with tenant_transaction(mind.tenant_id):
        first, second, third = store(
            agent_id=mind.id,
            memories=turns("It rained.", "The river rose.", "The bridge closed."),
            vectors=None,
        ).ids
        node = GraphNode(GraphNodeKind.MEMORY, second)
        after = find_connected(agent_id=mind.id, node=node, hops=1, relations=[Relation.TEMPORAL_NEXT]).found
        path = find_path(
            agent_id=mind.id,
            start=GraphNode(GraphNodeKind.MEMORY, first),
            end=GraphNode(GraphNodeKind.MEMORY, third),
            directed=True,
        ).found
        assert not Edge.objects.exists()
    assert {found.id for found in after} == {first, third}
    assert [edge.relation for edge in path[0].path] == [Relation.TEMPORAL_NEXT] * 2
