"""The graph: relations between an agent's own nodes, each once, and neighborhoods marked stale."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest

from apps.agents.models import Agent
from apps.goals.models import Goal
from apps.memories.models import Concept, Edge
from apps.memories.services.graph import relations
from apps.memories.services.graph.relations import (
    NewRelation,
    connect,
    relate,
    unrelate,
)
from apps.memories.services.graph.traversal import find_connected, find_supporting_evidence
from apps.memories.services.retention.archive import archive, purge
from apps.selves.models import Belief
from apps.tenants.scope import tenant_transaction
from arbor.errors import Invalid, NotFound
from arbor.memory.relations import GraphNode, GraphNodeKind, Relation
from tests.factories.goals import GoalFactory
from tests.factories.selves import BeliefFactory
from tests.integration.memories.chosen_vectors import neighbors_of, refresh_all, stale_of, store_with_vectors
from tests.support.threads import await_blocked_session, in_own_connection


def create_memory_nodes(agent: Agent, count: int = 2) -> list[GraphNode]:
    """Store memories without vectors, and return their nodes."""
    return [
        GraphNode(GraphNodeKind.MEMORY, memory_id) for memory_id in store_with_vectors(agent, [None] * count)
    ]


def a_concept(agent: Agent, name: str = "Tides") -> GraphNode:
    with tenant_transaction(agent.tenant_id):
        concept = Concept.objects.create(
            tenant_id=agent.tenant_id, agent_id=agent.id, name=name, key=name.casefold()
        )
        return GraphNode(GraphNodeKind.CONCEPT, concept.id)


def a_goal(agent: Agent, **parts: Any) -> GraphNode:
    with tenant_transaction(agent.tenant_id):
        goal: Goal = GoalFactory.create(agent=agent, **parts)
        return GraphNode(GraphNodeKind.GOAL, goal.id)


def relate_nodes(
    agent: Agent, source: GraphNode, target: GraphNode, relation: Relation = Relation.ASSOCIATED, **parts: Any
) -> float:
    with tenant_transaction(agent.tenant_id):
        edge = relate(
            agent_id=agent.id, new=NewRelation(source=source, target=target, relation=relation, **parts)
        )
        return edge.weight


def edges_of(agent: Agent) -> list[tuple[UUID, str, UUID, float]]:
    with tenant_transaction(agent.tenant_id):
        rows = Edge.objects.filter(agent_id=agent.id).order_by("relation")
        return [(edge.source_id, edge.relation, edge.target_id, edge.weight) for edge in rows]


def test_a_repeated_relation_has_the_higher_weight(mind: Agent) -> None:
    ebb, flood = create_memory_nodes(mind)
    assert relate_nodes(mind, ebb, flood, weight=0.5, note="seen twice") == 0.5
    assert relate_nodes(mind, ebb, flood, weight=0.8) == 0.8
    assert relate_nodes(mind, ebb, flood, weight=0.2) == 0.8
    relate_nodes(mind, ebb, flood, Relation.CONTRADICTS)
    assert edges_of(mind) == [
        (ebb.id, "associated", flood.id, 0.8),
        (ebb.id, "contradicts", flood.id, 1.0),
    ]
    with tenant_transaction(mind.tenant_id):
        assert Edge.objects.get(relation="associated").note == "seen twice"


def test_memories_concepts_and_goals_can_be_related(mind: Agent) -> None:
    (memory,), concept, goal = create_memory_nodes(mind, 1), a_concept(mind), a_goal(mind)
    relate_nodes(mind, memory, concept, Relation.INSTANCE_OF)
    relate_nodes(mind, goal, concept, Relation.REQUIRES)
    with tenant_transaction(mind.tenant_id):
        assert {(edge.source_kind, edge.target_kind) for edge in Edge.objects.all()} == {
            ("memory", "concept"),
            ("goal", "concept"),
        }


def test_a_node_cannot_be_related_to_itself(mind: Agent) -> None:
    ebb, _ = create_memory_nodes(mind)
    with pytest.raises(Invalid, match="cannot be related to itself"):
        relate_nodes(mind, ebb, ebb)
    with tenant_transaction(mind.tenant_id), pytest.raises(Invalid, match="cannot be related to itself"):
        connect(agent_id=mind.id, source_id=str(ebb.id), target_id=str(ebb.id), relation=Relation.ASSOCIATED)


def test_only_an_agents_own_nodes_can_be_related(mind: Agent, other_mind: Agent, foreign_mind: Agent) -> None:
    ebb, _ = create_memory_nodes(mind)
    for stranger in (other_mind, foreign_mind):
        theirs = create_memory_nodes(stranger)
        for foreign in (theirs[0], a_concept(stranger), a_goal(stranger)):
            with pytest.raises(NotFound):
                relate_nodes(mind, ebb, foreign)
            with pytest.raises(NotFound):
                relate_nodes(mind, foreign, ebb)
        with tenant_transaction(mind.tenant_id), pytest.raises(NotFound):
            connect(
                agent_id=mind.id,
                source_id=str(ebb.id),
                target_id=str(theirs[0].id),
                relation=Relation.ASSOCIATED,
            )
    assert edges_of(mind) == []


def test_an_id_of_another_kind_is_not_found(mind: Agent) -> None:
    ebb, flood = create_memory_nodes(mind)
    with pytest.raises(NotFound, match="there is no goal"):
        relate_nodes(mind, ebb, GraphNode(GraphNodeKind.GOAL, flood.id))


@pytest.mark.parametrize("nonsense", ["", "the first one", "01a2006d-1234"])
def test_an_invalid_id_is_not_found(mind: Agent, nonsense: str) -> None:
    ebb, _ = create_memory_nodes(mind)
    with tenant_transaction(mind.tenant_id), pytest.raises(NotFound):
        connect(agent_id=mind.id, source_id=str(ebb.id), target_id=nonsense, relation=Relation.CAUSES)


def test_a_relation_to_a_memory_being_purged_is_refused(mind: Agent) -> None:
    ebb, flood = create_memory_nodes(mind)
    act: dict[str, Any] = {"memory_ids": [flood.id], "reason": "asked to be forgotten", "actor": "cli:tests"}

    with tenant_transaction(mind.tenant_id):
        archive(**act)
        purge(**act)
        relating = in_own_connection(lambda: relate_nodes(mind, ebb, flood))
        await_blocked_session()
    with pytest.raises(NotFound, match="there is no memory"):
        relating.join(20)
    assert edges_of(mind) == []


@pytest.mark.parametrize("weight", [-1, 2, float("nan")])
def test_a_weight_out_of_range_writes_nothing(mind: Agent, weight: float) -> None:
    ebb, flood = create_memory_nodes(mind)
    with pytest.raises(Invalid, match="0 to 1"):
        relate_nodes(mind, ebb, flood, weight=weight)
    assert edges_of(mind) == []


def test_an_unsupported_kind_is_named(mind: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    (ebb,) = create_memory_nodes(mind, 1)
    monkeypatch.setattr(relations, "_existing_kinds", lambda: frozenset({GraphNodeKind.MEMORY}))
    with pytest.raises(Invalid, match="no table for belief"):
        relate_nodes(mind, ebb, GraphNode(GraphNodeKind.BELIEF, uuid4()), Relation.SUPPORTS)


def test_a_memory_supports_a_belief_which_stays_as_it_is(mind: Agent, other_mind: Agent) -> None:
    (observation,) = create_memory_nodes(mind, 1)
    with tenant_transaction(mind.tenant_id):
        belief = BeliefFactory.create(agent=mind, statement="Tides keep their hours.")
        theirs = BeliefFactory.create(agent=other_mind)
        before = Belief.objects.values().get(id=belief.id)
        belief_node = GraphNode(GraphNodeKind.BELIEF, belief.id)
        relate(
            agent_id=mind.id,
            new=NewRelation(source=observation, target=belief_node, relation=Relation.SUPPORTS),
        )
        with pytest.raises(NotFound, match="there is no belief"):
            relate(
                agent_id=mind.id,
                new=NewRelation(
                    source=observation,
                    target=GraphNode(GraphNodeKind.BELIEF, theirs.id),
                    relation=Relation.SUPPORTS,
                ),
            )
        (supporting,) = find_supporting_evidence(agent_id=mind.id, node=belief_node).found
        (path,) = find_connected(agent_id=mind.id, node=observation, hops=1).found
        assert Belief.objects.values().get(id=belief.id) == before
    assert supporting.id == observation.id
    assert (path.kind, path.label) == (GraphNodeKind.BELIEF, "Tides keep their hours.")


def test_a_changed_relation_marks_its_neighborhoods(mind: Agent) -> None:
    one, two, three, apart = create_memory_nodes(mind, 4)
    relate_nodes(mind, one, two)
    refresh_all(mind)
    relate_nodes(mind, two, three)
    assert stale_of(mind) == {one.id, two.id, three.id}
    refresh_all(mind)
    assert neighbors_of(mind, one.id) == {two.id: 1.0, three.id: 0.5}
    with tenant_transaction(mind.tenant_id):
        assert unrelate(agent_id=mind.id, source=two, target=three) == 1
        assert unrelate(agent_id=mind.id, source=two, target=three) == 0
    assert stale_of(mind) == {one.id, two.id, three.id}
    refresh_all(mind)
    assert neighbors_of(mind, one.id) == {two.id: 1.0}
    assert neighbors_of(mind, apart.id) == {}


def test_a_relation_to_a_concept_marks_its_other_memories(mind: Agent) -> None:
    one, two = create_memory_nodes(mind)
    concept = a_concept(mind)
    relate_nodes(mind, one, concept, Relation.INSTANCE_OF)
    refresh_all(mind)
    relate_nodes(mind, two, concept, Relation.INSTANCE_OF)
    assert stale_of(mind) == {one.id, two.id}
    refresh_all(mind)
    assert neighbors_of(mind, one.id) == {two.id: 0.5}
    # Between goal and concept there is no neighborhood to change.
    relate_nodes(mind, a_goal(mind), concept)
    assert stale_of(mind) == set()


def test_a_relation_takes_five_statements(mind: Agent, statements: list[str]) -> None:
    one, two = create_memory_nodes(mind)
    relations._existing_kinds()
    statements.clear()
    relate_nodes(mind, one, two)
    # The last statement emits the signal.
    assert len(statements) == 5
