"""Evidence that people draw, contradictions of memories, and the causes of changes to the self."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from apps.agents.models import Agent
from apps.audit.models import AuditEvent
from apps.memories.models import Memory
from apps.memories.services.graph.relations import NewRelation, relate, unrelate
from apps.memories.services.graph.traversal import find_causes, find_contradictions
from apps.memories.services.retention.archive import archive
from apps.memories.services.store.create import Creation, create_memories
from apps.memories.services.store.revision import halve_trust
from apps.selves.models import Belief, BeliefEvidence, Proposal
from apps.selves.services.alignment import resonance_of
from apps.selves.services.beliefs import add_belief
from apps.selves.services.evidence import record_evidence, record_new_evidence, withdraw_evidence
from apps.selves.services.proposals import accept, propose
from apps.selves.services.relations import relate_by_person, unrelate_by_person
from apps.tenants.scope import tenant_transaction
from arbor.clock import SystemClock
from arbor.memory.details import SemanticDetail
from arbor.memory.relations import GraphNode, GraphNodeKind, Relation, TraversedEdge
from arbor.selves.proposals import NewProposal, ProposalKind, ProposalStatus
from arbor.selves.values import BeliefCategory, NewBelief
from tests.integration.heartbeats.conftest import REST
from tests.integration.heartbeats.heartbeat_runner import HeartbeatRunner, store_memory

RAIN = "North wind brings rain."
FAIR = "The north wind brought fair weather."
OF_BELIEFS = "## What speaks against your beliefs"
OF_MEMORIES = "## Memories that contradict each other"


@pytest.fixture
def belief(agent: Agent) -> Belief:
    """Return the agent's only belief, easily moved."""
    with tenant_transaction(agent.tenant_id):
        Belief.objects.filter(agent_id=agent.id).delete()
        new = NewBelief(
            statement=RAIN, category=BeliefCategory.WORLD, confidence=0.6, stability=0.2, source="test"
        )
        return add_belief(agent_id=agent.id, belief=new, actor="test")


def add_contradicting_fact(agent: Agent, belief: Belief) -> UUID:
    """Give the agent a fact against the belief, as `arbor memory add --against-belief` does; return its id."""
    creation = Creation(
        content=FAIR, detail=SemanticDetail(), source="operator", beliefs={belief.id: Relation.CONTRADICTS}
    )
    return create_memories(
        tenant_id=agent.tenant_id,
        agent_id=agent.id,
        creations=[creation],
        actor="test",
        update_trust=record_new_evidence,
    ).ids[0]


def memory_node(memory_id: UUID | str) -> GraphNode:
    return GraphNode(GraphNodeKind.MEMORY, UUID(str(memory_id)))


def test_a_fact_that_a_person_gives_against_a_belief_is_evidence(
    heartbeats: HeartbeatRunner, agent: Agent, belief: Belief
) -> None:
    memory_id = add_contradicting_fact(agent, belief)
    with tenant_transaction(agent.tenant_id):
        assert not BeliefEvidence.objects.get(belief_id=belief.id, memory_id=memory_id).supports
        proposal = Proposal.objects.get(agent_id=agent.id, kind="belief")
    prompt = heartbeats.run(REST)
    assert OF_BELIEFS in prompt
    assert f"belief [{belief.id}] {RAIN} — memory [{memory_id}] {FAIR}" in prompt
    assert str(proposal.id) in prompt


def test_a_relation_that_a_person_takes_back_is_no_evidence(agent: Agent, belief: Belief) -> None:
    memory_id = add_contradicting_fact(agent, belief)
    ends = (memory_node(memory_id), GraphNode(GraphNodeKind.BELIEF, belief.id))
    with tenant_transaction(agent.tenant_id):
        assert withdraw_evidence(agent_id=agent.id, ends=ends, source="cli:ann") == ""
        unrelate(agent_id=agent.id, source=ends[0], target=ends[1])
        assert withdraw_evidence(agent_id=agent.id, ends=ends, source="cli:ann") == ""
        assert not BeliefEvidence.objects.filter(belief_id=belief.id).exists()
        assert Proposal.objects.get(agent_id=agent.id, kind="belief").status == ProposalStatus.EXPIRED


def test_evidence_taken_back_leads_to_a_proposal_of_what_remains(agent: Agent, belief: Belief) -> None:
    nodes = [memory_node(store_memory(agent, text)) for text in ("It rained at noon.", "It was dry.")]
    target = GraphNode(GraphNodeKind.BELIEF, belief.id)
    with tenant_transaction(agent.tenant_id):
        for node, relation in zip(nodes, (Relation.SUPPORTS, Relation.CONTRADICTS), strict=True):
            new = NewRelation(source=node, target=target, relation=relation)
            relate_by_person(agent_id=agent.id, new=new, actor="cli:bob")
        Proposal.objects.filter(agent_id=agent.id).delete()

        removed = unrelate_by_person(
            agent_id=agent.id, source=nodes[0], target=target, relation=None, actor="cli:ann"
        )
        proposal = Proposal.objects.get(agent_id=agent.id)
        audited = AuditEvent.objects.get(agent_id=agent.id, message__contains="removed 1 relation")
    assert audited.detail["proposed"] == removed.proposed
    assert (removed.count, removed.proposed) == (1, "proposed to be less sure of the belief")
    assert (proposal.source, proposal.evidence) == ("cli:ann", [str(nodes[1].id)])


def test_a_relation_that_leads_to_a_proposal_is_audited_with_it(agent: Agent, belief: Belief) -> None:
    new = NewRelation(
        source=memory_node(store_memory(agent, "It rained at noon.")),
        target=GraphNode(GraphNodeKind.BELIEF, belief.id),
        relation=Relation.SUPPORTS,
    )
    with tenant_transaction(agent.tenant_id):
        related = relate_by_person(agent_id=agent.id, new=new, actor="cli:bob")
        audited = AuditEvent.objects.get(agent_id=agent.id, message__contains=" supports ")
        assert Proposal.objects.filter(agent_id=agent.id).exists()
    assert related.proposed == "proposed to be surer of the belief"
    assert audited.detail["proposed"] == related.proposed


def test_a_relation_that_leads_to_no_proposal_is_audited_without_one(agent: Agent, belief: Belief) -> None:
    new = NewRelation(
        source=memory_node(store_memory(agent, "It rained at noon.")),
        target=GraphNode(GraphNodeKind.BELIEF, belief.id),
        relation=Relation.SUPPORTS,
        weight=0.0,
    )
    with tenant_transaction(agent.tenant_id):
        related = relate_by_person(agent_id=agent.id, new=new, actor="cli:bob")
        audited = AuditEvent.objects.get(agent_id=agent.id, message__contains=" supports ")
        assert not Proposal.objects.filter(agent_id=agent.id).exists()
    assert related.proposed == ""
    assert "proposed" not in audited.detail


def test_a_proposal_expires_when_other_evidence_outweighs_it(agent: Agent, belief: Belief) -> None:
    assert proposed_confidence(agent, belief, trust=0.8) < belief.confidence
    with tenant_transaction(agent.tenant_id):
        evidence = BeliefEvidence.objects.get(belief_id=belief.id)
        edge = TraversedEdge(
            source=memory_node(evidence.memory_id),
            target=GraphNode(GraphNodeKind.BELIEF, belief.id),
            relation=Relation.CONTRADICTS,
            weight=0.0,
        )
        answer = record_evidence(agent_id=agent.id, edge=edge, source="test")
        proposal = Proposal.objects.get(agent_id=agent.id, kind="belief")
    assert answer == ""
    assert (proposal.status, proposal.decided_by) == (ProposalStatus.EXPIRED, "evidence")


def test_a_retired_memory_is_no_evidence(heartbeats: HeartbeatRunner, agent: Agent, belief: Belief) -> None:
    memory_id = add_contradicting_fact(agent, belief)
    other = store_memory(agent, "The wind rose at noon.")
    with tenant_transaction(agent.tenant_id):
        Proposal.objects.filter(agent_id=agent.id).delete()
        archive(memory_ids=[memory_id], reason="wrong", actor="test")
        new = NewRelation(
            source=memory_node(other),
            target=GraphNode(GraphNodeKind.BELIEF, belief.id),
            relation=Relation.SUPPORTS,
        )
        edge = relate(agent_id=agent.id, new=new)
        record_evidence(agent_id=agent.id, edge=edge, source="test")
        proposal = Proposal.objects.get(agent_id=agent.id, kind="belief")
    assert proposal.content.startswith("1 memory speaks for it, 0 against it")
    assert OF_BELIEFS not in heartbeats.run(REST)


def proposed_confidence(agent: Agent, belief: Belief, *, trust: float) -> float:
    """Store a memory of this trust against the belief; return the confidence that is proposed then."""
    memory_id = store_memory(agent, "The wind rose at noon, and it stayed dry.")
    with tenant_transaction(agent.tenant_id):
        Memory.objects.filter(id=memory_id).update(trust=trust)
        ends = (memory_node(memory_id), GraphNode(GraphNodeKind.BELIEF, belief.id))
        new = NewRelation(source=ends[0], target=ends[1], relation=Relation.CONTRADICTS)
        record_evidence(agent_id=agent.id, edge=relate(agent_id=agent.id, new=new), source="test")
        proposal = Proposal.objects.filter(agent_id=agent.id, kind="belief").first()
        return float(proposal.change["confidence"]) if proposal else belief.confidence


@pytest.mark.parametrize(("trust", "confidence"), [(1.0, 0.4), (0.575, 0.475), (0.15, 0.568), (0.0, 0.6)])
def test_evidence_counts_as_far_as_its_memory_is_trusted(
    agent: Agent, belief: Belief, trust: float, confidence: float
) -> None:
    assert proposed_confidence(agent, belief, trust=trust) == pytest.approx(confidence, abs=0.002)


def test_a_belief_does_not_weaken_the_evidence_against_it(agent: Agent, belief: Belief) -> None:
    memory_id = add_contradicting_fact(agent, belief)
    with tenant_transaction(agent.tenant_id):
        memory = Memory.objects.get(id=memory_id)
        proposal = Proposal.objects.get(agent_id=agent.id, kind="belief")
    # The belief halves the trust of a fact without a source, which counts as one of an unrated source.
    assert memory.trust < 0.15
    assert proposal.change["confidence"] == pytest.approx(0.475, abs=0.002)


def add_contradiction(agent: Agent) -> tuple[str, str]:
    """Store two memories that contradict each other; return their ids."""
    first, second = (
        store_memory(agent, "The mill is closed."),
        store_memory(agent, "The mill is open all day."),
    )
    with tenant_transaction(agent.tenant_id):
        new = NewRelation(
            source=memory_node(first), target=memory_node(second), relation=Relation.CONTRADICTS
        )
        relate(agent_id=agent.id, new=new)
    return first, second


def test_memories_that_contradict_each_other_reach_the_prompt(
    heartbeats: HeartbeatRunner, agent: Agent
) -> None:
    first, second = add_contradiction(agent)
    prompt = heartbeats.run(REST)
    assert OF_MEMORIES in prompt
    assert f"memory [{second}] The mill is open all day. — memory [{first}] The mill is closed." in prompt


@pytest.mark.parametrize("verdict", ["doubted", "retired"])
def test_a_contradiction_is_settled_by_judging_one_side(
    heartbeats: HeartbeatRunner, agent: Agent, verdict: str
) -> None:
    first, _ = add_contradiction(agent)
    with tenant_transaction(agent.tenant_id):
        assert len(find_contradictions(agent_id=agent.id).found) == 1
        if verdict == "retired":
            archive(memory_ids=[UUID(first)], reason="old", actor="test")
        else:
            halve_trust(agent_id=agent.id, memory_id=UUID(first), reason="old", actor="test")
        # A doubted memory is still active, and can be found.
        assert len(find_contradictions(agent_id=agent.id).found) == (verdict == "doubted")
    assert OF_MEMORIES not in heartbeats.run(REST)


def propose_and_accept(agent: Agent, evidence: list[str], kind: ProposalKind) -> None:
    """Propose a change with this evidence, and accept it."""
    with tenant_transaction(agent.tenant_id):
        made = propose(
            agent_id=agent.id,
            proposals=[
                NewProposal(
                    kind=kind,
                    content="I watch the wind.",
                    confidence=0.7,
                    source="test",
                    evidence=evidence,
                )
            ],
        ).made
        accept(proposal_id=made[0].id, decided_by="test", reason="so it is", now=SystemClock().now())


@pytest.mark.parametrize("kind", [ProposalKind.INSIGHT, ProposalKind.IDENTITY, ProposalKind.BELIEF])
def test_causes_of_an_accepted_proposal_are_its_evidence(agent: Agent, kind: ProposalKind) -> None:
    evidence = store_memory(agent, FAIR)
    propose_and_accept(agent, [evidence, "no id"], kind)
    with tenant_transaction(agent.tenant_id):
        node = {
            ProposalKind.INSIGHT: lambda: GraphNode(
                GraphNodeKind.MEMORY, Memory.objects.get(content="I watch the wind.").id
            ),
            ProposalKind.IDENTITY: lambda: GraphNode(
                GraphNodeKind.ASPECT, agent.aspects.get(content="I watch the wind.").id
            ),
            ProposalKind.BELIEF: lambda: GraphNode(
                GraphNodeKind.BELIEF, agent.beliefs.get(statement="I watch the wind.").id
            ),
        }[kind]()
        causes = find_causes(agent_id=agent.id, node=node).found
        resonance = resonance_of(agent_id=agent.id, memory_id=UUID(evidence))
    assert [str(cause.id) for cause in causes] == [evidence]
    assert bool(resonance.aspects) == (kind is ProposalKind.IDENTITY)


def test_causes_of_a_changed_belief_are_its_evidence(agent: Agent, belief: Belief) -> None:
    memory_id = add_contradicting_fact(agent, belief)
    with tenant_transaction(agent.tenant_id):
        proposal = Proposal.objects.get(agent_id=agent.id, kind="belief")
        accept(proposal_id=proposal.id, decided_by="test", reason="so it is", now=SystemClock().now())
        node = GraphNode(GraphNodeKind.BELIEF, belief.id)
        assert [cause.id for cause in find_causes(agent_id=agent.id, node=node).found] == [memory_id]
        belief.refresh_from_db()
    assert belief.confidence < 0.6


def test_evidence_has_the_time_of_its_heartbeat(agent: Agent, belief: Belief) -> None:
    memory_id = store_memory(agent, "The wind rose at noon.")
    now = datetime.now(UTC) - timedelta(minutes=1)
    new = NewRelation(
        source=memory_node(memory_id),
        target=GraphNode(GraphNodeKind.BELIEF, belief.id),
        relation=Relation.SUPPORTS,
    )
    with tenant_transaction(agent.tenant_id):
        edge = relate(agent_id=agent.id, new=new)
        record_evidence(agent_id=agent.id, edge=edge, source="test", now=now)
        assert BeliefEvidence.objects.get(belief_id=belief.id).at == now
        # A belief that the same heartbeat tests has had this evidence.
        Belief.objects.filter(id=belief.id).update(tested_at=now)
        assert record_evidence(agent_id=agent.id, edge=edge, source="test", now=now) == ""
