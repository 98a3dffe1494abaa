"""The trust and the alignment of memories, which follow the beliefs of their agent."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from apps.agents.models import Agent
from apps.memories.models import Memory
from apps.memories.services.graph.relations import NewRelation, relate, unrelate
from apps.memories.services.store.provenance import add_source
from apps.memories.services.store.term_counts import lock_minds
from apps.selves.services import alignment
from apps.selves.services.alignment import alignments, resonance_of, update_trust_of_ends
from apps.selves.services.aspects import drop_aspect
from apps.selves.services.beliefs import add_belief, drop_belief, revise_belief
from apps.tenants.scope import tenant_transaction
from arbor.memory.relations import GraphNode, GraphNodeKind, Relation
from arbor.memory.trust import Source, max_trust
from arbor.selves.values import BeliefRevision, BeliefStatus
from tests.factories.agents import AgentFactory
from tests.factories.memories import EdgeFactory, MemoryFactory
from tests.factories.selves import BeliefFactory, IdentityAspectFactory
from tests.integration.memories.creation import create_semantic_memory
from tests.integration.selves.conftest import ACTOR, ICE
from tests.support.races import in_tenant
from tests.support.threads import start_blocked


def test_held_beliefs_determine_the_alignment_of_memories(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        firm, doubted = (
            BeliefFactory(agent=agent, confidence=0.8),
            BeliefFactory(agent=agent, status=BeliefStatus.QUESTIONED),
        )
        supporting, contradicting, unrelated = (MemoryFactory(agent=agent) for _ in range(3))

        def add_edge(source: object, target: object, relation: str, kinds: tuple[str, str]) -> None:
            EdgeFactory(
                agent=agent,
                source_id=source.id,  # type: ignore[attr-defined]
                target_id=target.id,  # type: ignore[attr-defined]
                relation=relation,
                source_kind=kinds[0],
                target_kind=kinds[1],
                weight=0.5,
            )

        add_edge(supporting, firm, "supports", ("memory", "belief"))
        add_edge(firm, contradicting, "contradicts", ("belief", "memory"))
        add_edge(contradicting, doubted, "supports", ("memory", "belief"))
        add_edge(unrelated, firm, "associated", ("memory", "belief"))
        alignments_by_memory = alignments(
            agent_id=agent.id, memory_ids=[supporting.id, contradicting.id, unrelated.id, uuid4()]
        )
        assert alignments_by_memory == {
            supporting.id: pytest.approx(0.4),
            contradicting.id: pytest.approx(-0.4),
        }
        assert alignments(agent_id=agent.id, memory_ids=[]) == {}
        assert alignments(agent_id=AgentFactory().id, memory_ids=[supporting.id]) == {}


def relate_to_belief(agent: Agent, memory_id: UUID, belief_id: UUID) -> None:
    new = NewRelation(
        source=GraphNode(GraphNodeKind.MEMORY, memory_id),
        target=GraphNode(GraphNodeKind.BELIEF, belief_id),
        relation=Relation.CONTRADICTS,
    )
    relate(agent_id=agent.id, new=new)
    update_trust_of_ends(agent_id=agent.id, ends=new.ends)


def test_a_fact_is_trusted_by_what_its_agent_believes_now(agent: Agent) -> None:
    source = Source(kind="document", reference="harbour log", trust=0.5)
    with tenant_transaction(agent.tenant_id):
        belief = add_belief(agent_id=agent.id, belief=ICE, actor=ACTOR)
    fact = create_semantic_memory(
        tenant_id=agent.tenant_id, agent_id=agent.id, content="The ice broke.", sources=[source]
    )

    def trust() -> float:
        return float(Memory.objects.values_list("trust", flat=True).get(id=fact))

    with tenant_transaction(agent.tenant_id):
        before = trust()
        relate_to_belief(agent, fact, belief.id)
        assert trust() == pytest.approx(before * 0.2)
        revise_belief(belief_id=belief.id, actor=ACTOR, revision=BeliefRevision(confidence=0.5))
        assert trust() == pytest.approx(before * 0.5)
        drop_belief(belief_id=belief.id, actor=ACTOR)
        assert trust() == pytest.approx(before)
        add_belief(agent_id=agent.id, belief=ICE, actor=ACTOR)
        assert trust() == pytest.approx(before * 0.2)
        ends = GraphNode(GraphNodeKind.MEMORY, fact), GraphNode(GraphNodeKind.BELIEF, belief.id)
        unrelate(agent_id=agent.id, source=ends[0], target=ends[1])
        update_trust_of_ends(agent_id=agent.id, ends=ends)
        assert trust() == pytest.approx(before)


def test_a_belief_changes_the_trust_of_all_its_facts(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "BATCH", 2)
    source = Source(kind="document", reference="harbour log", trust=0.5)
    with tenant_transaction(agent.tenant_id):
        belief = add_belief(agent_id=agent.id, belief=ICE, actor=ACTOR)
    facts = [
        create_semantic_memory(
            tenant_id=agent.tenant_id, agent_id=agent.id, content=f"Ice {number} broke.", sources=[source]
        )
        for number in range(5)
    ]
    with tenant_transaction(agent.tenant_id):
        for fact in facts:
            relate_to_belief(agent, fact, belief.id)
        doubted = set(Memory.objects.filter(id__in=facts).values_list("trust", flat=True))
        drop_belief(belief_id=belief.id, actor=ACTOR)
        trusted = set(Memory.objects.filter(id__in=facts).values_list("trust", flat=True))
    assert (len(doubted), len(trusted)) == (1, 1)
    assert min(trusted) > max(doubted)


def test_trust_that_somebody_set_is_not_changed(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        belief = add_belief(agent_id=agent.id, belief=ICE, actor=ACTOR)
        fact = MemoryFactory(agent=agent, type="semantic", trust=0.9, detail={})
        relate_to_belief(agent, fact.id, belief.id)
        assert Memory.objects.get(id=fact.id).trust == 0.9


def test_concurrent_changes_of_belief_and_source_both_count(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        belief = add_belief(agent_id=agent.id, belief=ICE, actor=ACTOR)
    first, second = (Source(kind="document", reference=reference, trust=0.5) for reference in ("log", "map"))
    fact = create_semantic_memory(
        tenant_id=agent.tenant_id, agent_id=agent.id, content="The ice broke.", sources=[first]
    )
    with tenant_transaction(agent.tenant_id):
        relate_to_belief(agent, fact, belief.id)
    change = {"belief_id": belief.id, "actor": ACTOR, "revision": BeliefRevision(confidence=0.5)}
    with tenant_transaction(agent.tenant_id):
        lock_minds([agent.id])
        start_blocked(in_tenant(agent.tenant_id, revise_belief, **change))
        add_source(agent_id=agent.id, memory_id=fact, source=second)
    with tenant_transaction(agent.tenant_id):
        row = Memory.objects.get(id=fact)
    assert [source["reference"] for source in row.detail["sources"]] == ["log", "map"]
    assert row.detail["alignment"] == pytest.approx(-0.5)
    assert row.trust == pytest.approx(0.5 * max_trust([first, second]))


def test_a_memory_resonates_with_held_aspects(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        kind, steady, dropped = (
            IdentityAspectFactory(agent=agent, content=content, stability=stability)
            for content, stability in (("I am kind.", 0.8), ("I am steady.", 0.5), ("I am late.", 1.0))
        )
        memory = MemoryFactory(agent=agent)
        memory_node = GraphNode(GraphNodeKind.MEMORY, memory.id)
        ends = [GraphNode(GraphNodeKind.ASPECT, aspect.id) for aspect in (kind, steady, dropped)]
        relate(
            agent_id=agent.id,
            new=NewRelation(source=memory_node, target=ends[0], relation=Relation.SUPPORTS, weight=0.5),
        )
        relate(
            agent_id=agent.id,
            new=NewRelation(source=ends[1], target=memory_node, relation=Relation.CONTRADICTS),
        )
        relate(
            agent_id=agent.id, new=NewRelation(source=memory_node, target=ends[2], relation=Relation.SUPPORTS)
        )
        drop_aspect(aspect_id=dropped.id, actor=ACTOR)
        resonance = resonance_of(agent_id=agent.id, memory_id=memory.id)
        other = resonance_of(agent_id=agent.id, memory_id=MemoryFactory(agent=agent).id)
    assert resonance.score == pytest.approx(0.8 * 0.5 - 0.5)
    assert [aspect.content for aspect in resonance.aspects] == ["I am steady.", "I am kind."]
    assert [aspect.share for aspect in resonance.aspects] == pytest.approx([-0.5, 0.4])
    assert (other.score, other.aspects) == (0.0, ())
