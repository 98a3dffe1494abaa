"""A memory's resonance: read from its relations to the aspects that are held."""

from __future__ import annotations

import pytest

from apps.agents.models import Agent
from apps.memories.services.graph.relations import NewRelation, relate
from apps.selves.services.alignment import resonance_of
from apps.selves.services.aspects import drop_aspect
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.memory.relations import GraphNode, GraphNodeKind, Relation
from tests.factories.agents import AgentFactory
from tests.factories.memories import MemoryFactory
from tests.factories.selves import IdentityAspectFactory

ACTOR = "user:ann"


@pytest.fixture
def agent(tenant: Tenant) -> Agent:
    with tenant_transaction(tenant.id):
        created: Agent = AgentFactory()
        return created


def test_a_memory_rings_with_the_aspects_that_are_held(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        kind, steady, dropped = (
            IdentityAspectFactory(agent=agent, content=content, stability=stability)
            for content, stability in (("I am kind.", 0.8), ("I am steady.", 0.5), ("I am late.", 1.0))
        )
        memory = MemoryFactory(agent=agent)
        of = GraphNode(GraphNodeKind.MEMORY, memory.id)
        ends = [GraphNode(GraphNodeKind.ASPECT, aspect.id) for aspect in (kind, steady, dropped)]
        relate(
            agent_id=agent.id,
            new=NewRelation(source=of, target=ends[0], relation=Relation.SUPPORTS, weight=0.5),
        )
        relate(agent_id=agent.id, new=NewRelation(source=ends[1], target=of, relation=Relation.CONTRADICTS))
        relate(agent_id=agent.id, new=NewRelation(source=of, target=ends[2], relation=Relation.SUPPORTS))
        drop_aspect(aspect_id=dropped.id, actor=ACTOR)
        rings = resonance_of(agent_id=agent.id, memory_id=memory.id)
        other = resonance_of(agent_id=agent.id, memory_id=MemoryFactory(agent=agent).id)
    assert rings.score == pytest.approx(0.8 * 0.5 - 0.5)
    assert [aspect.content for aspect in rings.aspects] == ["I am steady.", "I am kind."]
    assert [aspect.share for aspect in rings.aspects] == pytest.approx([-0.5, 0.4])
    assert (other.score, other.aspects) == (0.0, ())
