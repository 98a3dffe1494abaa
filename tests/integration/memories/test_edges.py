"""Ties between memories: of one agent, typed, and once."""

from __future__ import annotations

import pytest

from apps.agents.models import Agent
from apps.memories.models import Edge
from apps.memories.services.edges import connect_memories
from apps.memories.services.remember import store
from apps.tenants.scope import tenant_transaction
from arbor.errors import Invalid, NotFound
from tests.integration.memories.conftest import turns


def two_memories(agent: Agent) -> tuple[str, str]:
    with tenant_transaction(agent.tenant_id):
        first, second = store(agent_id=agent.id, memories=turns("Ebb.", "Flood."), vectors=None).ids
    return str(first), str(second)


def tie(agent: Agent, source: str, target: str, relation: str = "relates_to") -> Edge:
    with tenant_transaction(agent.tenant_id):
        return connect_memories(agent_id=agent.id, source_id=source, target_id=target, relation=relation)


def edges_of(agent: Agent) -> list[tuple[str, str, str]]:
    with tenant_transaction(agent.tenant_id):
        rows = Edge.objects.filter(agent_id=agent.id).order_by("relation")
        return [(str(edge.source_id), edge.relation, str(edge.target_id)) for edge in rows]


def test_the_same_tie_twice_is_one_and_another_relation_is_another(mind: Agent) -> None:
    ebb, flood = two_memories(mind)
    tie(mind, ebb, flood)
    tie(mind, ebb, flood)
    tie(mind, ebb, flood, "contradicts")
    assert edges_of(mind) == [(ebb, "contradicts", flood), (ebb, "relates_to", flood)]


def test_a_memory_cannot_be_tied_to_itself(mind: Agent) -> None:
    ebb, _ = two_memories(mind)
    with pytest.raises(Invalid, match="cannot be tied to itself"):
        tie(mind, ebb, ebb)


def test_only_an_agents_own_memories_can_be_tied(mind: Agent, other_mind: Agent, foreign_mind: Agent) -> None:
    ebb, _ = two_memories(mind)
    for stranger in (other_mind, foreign_mind):
        with pytest.raises(NotFound):
            tie(mind, ebb, two_memories(stranger)[1])
        with pytest.raises(NotFound):
            tie(stranger, ebb, two_memories(stranger)[0])
    assert edges_of(mind) == []


@pytest.mark.parametrize("nonsense", ["", "the first one", "01a2006d-1234"])
def test_what_is_no_id_is_not_found(mind: Agent, nonsense: str) -> None:
    ebb, _ = two_memories(mind)
    with pytest.raises(NotFound):
        tie(mind, ebb, nonsense)
