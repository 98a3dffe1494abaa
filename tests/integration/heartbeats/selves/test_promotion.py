"""Proposals from settled, recurring or contradicting evidence, which change the self only by decision."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from apps.agents.models import Agent, AgentState
from apps.audit.models import AuditAction, AuditEvent
from apps.heartbeats.services.legs import promotion
from apps.heartbeats.services.legs.promotion import SOURCE, propose_settled_changes
from apps.memories.models import Activation, Cluster, ClusterMember, Memory
from apps.memories.services.graph.relations import NewRelation, relate
from apps.selves.models import (
    Belief,
    BeliefEvidence,
    Experience,
    Preference,
    Proposal,
    ProposalCalibration,
    SelfChange,
)
from apps.selves.services.aspects import add_aspect
from apps.selves.services.proposals import accept, reject
from apps.tenants.scope import tenant_transaction
from arbor.memory.details import SemanticDetail
from arbor.memory.relations import GraphNode, GraphNodeKind, Relation
from arbor.memory.trust import Source
from arbor.selves.proposals import ProposalKind
from arbor.selves.tendencies import MIN_SIGNS
from arbor.selves.values import AspectKind, NewAspect
from tests.factories.heartbeats import HeartbeatFactory
from tests.factories.memories import ClusterFactory, ClusterMemberFactory, MemoryFactory
from tests.factories.selves import ProposalFactory
from tests.integration.heartbeats.conftest import REST, last_heartbeat
from tests.integration.heartbeats.heartbeat_runner import HeartbeatRunner, action_of, reply_of, store_fact
from tests.integration.heartbeats.selves.conftest import (
    ALMANAC,
    propose_change,
    propose_now,
    reply_deciding,
    settle,
)
from tests.support.rows import reload

#: Sources of facts.
BY_AGENT = {"kind": "heartbeat", "reference": "agent:{agent}", "trust": 0.8}
BY_USER = {"kind": "user", "reference": "user", "trust": 0.7}


def add_experience(agent: Agent, heartbeat_number: int, action: str, *, worked: bool) -> None:
    Experience.objects.create(
        tenant_id=agent.tenant_id,
        agent=agent,
        heartbeat_id=agent.id,
        heartbeat_number=heartbeat_number,
        action=action,
        outcome="success" if worked else "failure",
    )


def test_evidence_against_a_belief_moves_it_only_when_accepted(
    heartbeats: HeartbeatRunner, agent: Agent
) -> None:
    against = store_fact(agent, "The north wind brought fair weather.")
    with tenant_transaction(agent.tenant_id):
        Belief.objects.filter(agent_id=agent.id).delete()
        belief = Belief.objects.create(
            tenant_id=agent.tenant_id,
            agent=agent,
            category="world",
            statement="North wind brings rain.",
            statement_hash=b"x" * 32,
            confidence=0.45,
            stability=0.2,
        )
    heartbeats.run(
        reply_of(
            actions=[action_of("connect", from_id=against, to_id=str(belief.id), relation="contradicts")]
        )
    )
    with tenant_transaction(agent.tenant_id):
        assert not BeliefEvidence.objects.get(belief_id=belief.id).supports
        assert Belief.objects.get(id=belief.id).confidence == 0.45
        proposal = Proposal.objects.get(agent_id=agent.id, kind="belief")
    prompt = heartbeats.run(reply_deciding(proposal, "accept"))
    assert "## What speaks against your beliefs" in prompt
    with tenant_transaction(agent.tenant_id):
        belief.refresh_from_db()
        change = SelfChange.objects.get(target_id=belief.id)
    assert 0.25 <= belief.confidence < 0.4
    assert belief.status == "questioned"
    assert belief.tested_at is not None
    assert change.before["confidence"] == 0.45
    assert "## What speaks against your beliefs" not in heartbeats.run(REST)


def test_consolidation_proposes_settled_memories_and_habits(
    heartbeats: HeartbeatRunner, agent: Agent
) -> None:
    settled = store_fact(agent, "Eels leave the river in autumn.")
    settle(agent, settled, trust=0.9, sources=[ALMANAC])
    with tenant_transaction(agent.tenant_id):
        for heartbeat_number in range(4):
            for action in ("recall", "reflect"):
                add_experience(agent, heartbeat_number, action, worked=True)
        AgentState.objects.filter(agent_id=agent.id).update(heartbeats=4)
    prompt = heartbeats.run(REST)
    assert last_heartbeat(agent).mode == "consolidation"
    with tenant_transaction(agent.tenant_id):
        proposals = {proposal.kind: proposal for proposal in Proposal.objects.filter(agent_id=agent.id)}
    assert proposals["belief"].content == "Eels leave the river in autumn."
    assert proposals["learning"].content.startswith("What works for me: ")
    assert str(proposals["belief"].id) in prompt
    with tenant_transaction(agent.tenant_id):
        AgentState.objects.filter(agent_id=agent.id).update(heartbeats=4)
        Proposal.objects.filter(agent_id=agent.id).update(status="rejected")
    heartbeats.run(REST)
    with tenant_transaction(agent.tenant_id):
        assert not Proposal.objects.filter(agent_id=agent.id, status="pending").exists()


def test_an_accepted_insight_becomes_a_preference(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    ground = store_fact(agent, "I was asked to be brief, twice.")
    insights = [
        {"kind": "preference", "content": content, "confidence": 0.8, "evidence": [ground]}
        for content in ("Tone: brief", "briefly, please")
    ]
    heartbeats.run(reply_of(identity_insights=insights))
    (dropped,) = last_heartbeat(agent).dropped
    assert "key: value" in dropped["reason"]
    with tenant_transaction(agent.tenant_id):
        proposal = Proposal.objects.get(agent_id=agent.id)
    assert (proposal.kind, proposal.change) == ("preference", {"key": "tone", "value": "brief"})
    heartbeats.run(reply_deciding(proposal, "accept"))
    with tenant_transaction(agent.tenant_id):
        assert Preference.objects.get(agent_id=agent.id, key="tone").value == "brief"


def test_traits_that_the_agent_has_in_another_case_hold_no_place(agent: Agent) -> None:
    actions = ("recall", "reflect", "maintain")
    with tenant_transaction(agent.tenant_id):
        for heartbeat_number in range(MIN_SIGNS):
            for action in actions:
                add_experience(agent, heartbeat_number, action, worked=False)
        for name in ("Careful", "mindful  of the past"):
            aspect = NewAspect(content=name, kind=AspectKind.TRAIT, strength=0.33)
            add_aspect(agent_id=agent.id, aspect=aspect, actor="test")
        proposed = [proposal.content for proposal in propose_now(agent) if proposal.kind == "identity"]
    assert proposed == ["reflective"]


def test_one_deleted_experience_is_audited_as_one(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promotion, "MAX_EXPERIENCES", 1)
    with tenant_transaction(agent.tenant_id):
        for heartbeat_number in range(2):
            add_experience(agent, heartbeat_number, "recall", worked=True)
        assert promotion.delete_oldest_experiences(agent_id=agent.id) == 1
        event = AuditEvent.objects.get(agent_id=agent.id, action=AuditAction.TRUNCATED)
    assert event.message == "deleted the oldest experience: an agent keeps 1"


def test_an_action_sequence_that_always_worked_becomes_a_procedure(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        for heartbeat_number in range(4):
            add_experience(agent, heartbeat_number, "recall", worked=True)
            add_experience(agent, heartbeat_number, "reflect", worked=not heartbeat_number)
        assert [proposal.kind for proposal in propose_now(agent)] == ["pattern"]
        Proposal.objects.all().delete()
        Experience.objects.update(outcome="success")
        (learned,) = propose_now(agent)
        accept(proposal_id=learned.id, decided_by="cli:ann")
        assert Memory.objects.get(source=f"proposal:{learned.id}").type == "procedural"


def test_habits_below_their_threshold_do_not_block_others(agent: Agent) -> None:
    now = datetime.now(UTC)
    rare = ["recall", "reflect", "goal", "wait"] * 3 + ["gap"] + ["write", "read", "ask", "rest"] * 3
    common = ["gap", "remember", "connect"] * 5
    with tenant_transaction(agent.tenant_id):
        for heartbeat_number, action in enumerate([*rare, *common]):
            add_experience(agent, heartbeat_number, action, worked=not heartbeat_number % 2)
        ProposalCalibration.objects.create(
            tenant_id=agent.tenant_id, agent=agent, kind=ProposalKind.PATTERN, threshold=0.65, computed_at=now
        )
        assert [proposal.confidence for proposal in propose_now(agent)] == [0.7]


def test_a_failed_action_breaks_a_habit(agent: Agent) -> None:
    recalled = ("recall", True)
    sequence = [recalled, ("reflect", True), ("first", True), recalled, ("reflect", True), ("second", True)]
    sequence += [
        recalled,
        ("reflect", False),
        ("third", True),
        recalled,
        ("connect", False),
        ("reflect", True),
    ]
    with tenant_transaction(agent.tenant_id):
        for heartbeat_number, (action, worked) in enumerate(sequence):
            add_experience(agent, heartbeat_number, action, worked=worked)
        assert [proposal.kind for proposal in propose_now(agent)] == ["pattern"]


@pytest.mark.parametrize(
    ("sources", "role", "source", "proposes"),
    [
        # Sources of the fact; role and source of the memory that supports it.
        ([BY_AGENT], None, "", False),
        ([BY_AGENT, BY_USER], None, "", True),
        ([BY_AGENT], "", "heartbeat:1", False),
        ([BY_AGENT], "agent", "chat:1", False),
        ([BY_AGENT], "user", "chat:1", True),
        ([BY_AGENT], "", "operator", True),
    ],
)
def test_an_own_note_is_no_evidence(
    agent: Agent, sources: list[dict[str, Any]], role: str | None, source: str, proposes: bool
) -> None:
    settled = store_fact(agent, "Eels leave the river in autumn.")
    own = [{**origin, "reference": origin["reference"].format(agent=agent.id)} for origin in sources]
    ground = store_fact(agent, "I saw eels leave.") if role is not None else None
    settle(agent, settled, trust=0.9, sources=own)
    with tenant_transaction(agent.tenant_id):
        if ground is not None:
            Memory.objects.filter(id=ground).update(role=role, source=source)
            relation = NewRelation(
                source=GraphNode(GraphNodeKind.MEMORY, UUID(ground)),
                target=GraphNode(GraphNodeKind.MEMORY, UUID(settled)),
                relation=Relation.SUPPORTS,
                origin="test",
            )
            relate(agent_id=agent.id, new=relation)
        assert [proposal.kind for proposal in propose_now(agent)] == ["belief"] * proposes


@pytest.mark.parametrize(
    ("others", "proposes"),
    [([], False), ([BY_USER], False), ([{"kind": "document", "reference": "almanac", "trust": 0.1}], True)],
)
def test_a_statement_of_a_user_must_be_confirmed(
    agent: Agent, others: list[dict[str, Any]], proposes: bool
) -> None:
    fact = SemanticDetail(sources=tuple(Source.from_json(origin) for origin in [BY_USER, *others]))
    settled = store_fact(agent, "Eels leave the river in autumn.")
    settle(agent, settled, trust=fact.trust, sources=[source.to_json() for source in fact.sources])
    with tenant_transaction(agent.tenant_id):
        assert [proposal.kind for proposal in propose_now(agent)] == ["belief"] * proposes


def test_a_large_cluster_is_proposed_once_and_becomes_a_fact(agent: Agent) -> None:
    member = store_fact(agent, "The tide turns at noon.")
    with tenant_transaction(agent.tenant_id):
        tides = ClusterFactory(agent=agent, name="tides", size=20)
        ClusterFactory(agent=agent, name="piers", size=9)
        ClusterMember.objects.create(
            tenant_id=agent.tenant_id, cluster=tides, memory_id=UUID(member), strength=0.9
        )
        (insight,) = propose_now(agent)
        assert (insight.kind, insight.confidence, insight.evidence) == ("insight", 0.75, [member])
        assert "tides" in insight.content
        accept(proposal_id=insight.id, decided_by="cli:ann")
        accepted = Memory.objects.get(source=f"proposal:{insight.id}")
        assert accepted.type == "semantic"
        # It counts memories, and says nothing of the agent or the world that could settle.
        settle(agent, str(accepted.id), trust=0.9, sources=[ALMANAC])
        assert propose_now(agent) == []
        # Older rows have the name of the cluster under its former key.
        assert Proposal.objects.filter(id=insight.id).update(change={"theme": insight.change["cluster"]}) == 1
        assert propose_now(agent) == []


@pytest.mark.parametrize(("insights", "proposed"), [(5, 1), (6, 0)])
def test_insights_do_not_gather_around_insights(agent: Agent, insights: int, proposed: int) -> None:
    with tenant_transaction(agent.tenant_id):
        cluster = ClusterFactory(agent=agent, name="gather", size=10)
        for _ in range(insights):
            insight = ProposalFactory(agent=agent, kind="insight", source=SOURCE, status="accepted")
            memory = MemoryFactory(agent=agent, source=f"proposal:{insight.id}")
            ClusterMemberFactory(cluster=cluster, memory=memory)
        assert len(propose_now(agent)) == proposed


@pytest.mark.parametrize(("common", "count"), [(3, 0), (2, 0), (1, 1)])
def test_a_declined_insight_does_not_return_as_a_new_cluster(agent: Agent, common: int, count: int) -> None:
    members = [UUID(store_fact(agent, f"The tide turns at {hour} o'clock.")) for hour in range(7)]

    def form(chosen: list[UUID]) -> Cluster:
        cluster = ClusterFactory(agent=agent, name="tides", size=20)
        for member in chosen:
            ClusterMember.objects.create(
                tenant_id=agent.tenant_id, cluster=cluster, memory_id=member, strength=0.9
            )
        return cluster

    with tenant_transaction(agent.tenant_id):
        earlier = form(members[:4])
        (insight,) = propose_now(agent)
        reject(proposal_id=insight.id, decided_by="cli:ann")
        earlier.delete()
        form(members[4 - common :])
        assert len(propose_now(agent)) == count


def test_an_activated_memory_without_a_recall_is_proposed(agent: Agent) -> None:
    eels, cod = store_fact(agent, "Eels leave in autumn."), store_fact(agent, "Cod come in winter.")
    with tenant_transaction(agent.tenant_id):
        HeartbeatFactory(agent=agent)
        now = datetime.now(UTC) + timedelta(minutes=1)
        for memory_id, level in ((eels, 0.6), (cod, 0.3)):
            Activation.objects.update_or_create(
                memory_id=memory_id,
                tenant_id=agent.tenant_id,
                agent=agent,
                defaults={"level": level, "at": now},
            )
        (proposal,) = propose_now(agent)
        assert (proposal.kind, proposal.confidence, proposal.evidence) == ("preconscious", 0.6, [eels])
        accept(proposal_id=proposal.id, decided_by="cli:ann")
        accepted = Memory.objects.get(source=f"proposal:{proposal.id}")
        assert accepted.content.endswith("Eels leave in autumn.")
        Activation.objects.create(memory=accepted, tenant_id=agent.tenant_id, agent=agent, level=0.9, at=now)
        # A copy of what was at the edge of the mind is not proposed again.
        assert propose_now(agent) == []


def test_an_undecided_proposal_expires_after_a_month(agent: Agent) -> None:
    old, young = propose_change(agent), propose_change(agent, content="Storms please me, and I seek them.")
    with tenant_transaction(agent.tenant_id):
        Proposal.objects.filter(id=old.id).update(created_at=datetime.now(UTC) - timedelta(days=31))
        assert [proposal.id for proposal in propose_settled_changes(agent_id=agent.id).proposed.expired] == [
            old.id
        ]
    assert (reload(old).status, reload(young).status) == ("expired", "pending")
