"""Changes of beliefs, aspects, preferences and boundaries, audited, and their effect on memories."""

from __future__ import annotations

import math
from typing import Any
from uuid import UUID, uuid4

import pytest

from apps.agents.models import Agent
from apps.audit.models import AuditEvent
from apps.memories.models import Memory
from apps.memories.services.graph.relations import NewRelation, relate, unrelate
from apps.memories.services.store.provenance import add_source
from apps.memories.services.store.term_counts import lock_minds
from apps.selves.models import Belief, IdentityAspect, SelfChange
from apps.selves.services import alignment, aspects, beliefs
from apps.selves.services.alignment import alignments, resonance_of, update_trust_of_ends
from apps.selves.services.aspects import add_aspect, drop_aspect, revise_aspect
from apps.selves.services.beliefs import add_belief, change_filters, drop_belief, revise_belief
from apps.selves.services.boundaries import add_boundary, remove_boundary
from apps.selves.services.preferences import set_preference, unset_preference
from apps.selves.services.proposals import accept, propose
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.errors import AlreadyExists, Invalid, LimitReached, NotFound
from arbor.memory.relations import GraphNode, GraphNodeKind, Relation
from arbor.memory.trust import Source, max_trust
from arbor.selves.boundaries import BoundaryResponse, BoundaryType, NewBoundary
from arbor.selves.proposals import NewProposal, ProposalKind
from arbor.selves.values import (
    AspectKind,
    AspectRevision,
    BeliefCategory,
    BeliefRevision,
    BeliefStatus,
    NewAspect,
    NewBelief,
)
from tests.factories.agents import AgentFactory
from tests.factories.memories import EdgeFactory, MemoryFactory
from tests.factories.selves import BeliefFactory, IdentityAspectFactory
from tests.integration.memories.creation import create_semantic_memory
from tests.support.races import in_tenant
from tests.support.threads import start_blocked

ACTOR = "user:ann"
ICE = NewBelief(statement="Ice holds after a week.", category=BeliefCategory.WORLD, confidence=0.8)
MAPS = NewAspect(content="I draw maps.", kind=AspectKind.AGENCY)


@pytest.fixture
def agent(tenant: Tenant) -> Agent:
    with tenant_transaction(tenant.id):
        created: Agent = AgentFactory()
        return created


def audit_messages(agent: Agent) -> list[str]:
    with tenant_transaction(agent.tenant_id):
        return list(AuditEvent.objects.order_by("id").values_list("message", flat=True))


def test_every_change_of_a_belief_is_audited(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        belief = add_belief(agent_id=agent.id, belief=ICE, actor=ACTOR)
        revise_belief(
            belief_id=belief.id,
            actor=ACTOR,
            revision=BeliefRevision(confidence=0.3, status=BeliefStatus.QUESTIONED),
        )
        revise_belief(belief_id=belief.id, actor=ACTOR, revision=BeliefRevision(confidence=0.3))
        drop_belief(belief_id=belief.id, actor=ACTOR, reason="it broke")
        again = add_belief(agent_id=agent.id, belief=ICE, actor=ACTOR)
        assert again.id == belief.id
        assert (again.status, again.confidence) == ("held", 0.8)
        revised, dropped = AuditEvent.objects.order_by("id")[1:3]
    assert audit_messages(agent) == [
        f"{verb}: {ICE.statement}"
        for verb in (
            "let the agent believe",
            "revised the belief",
            "dropped the belief",
            "let the agent believe",
        )
    ]
    assert revised.detail["changes"]["confidence"] == {"from": 0.8, "to": 0.3}
    assert dropped.detail["reason"] == "it broke"


def test_every_change_of_an_aspect_is_audited(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        aspect = add_aspect(agent_id=agent.id, aspect=MAPS, actor=ACTOR)
        revise_aspect(aspect_id=aspect.id, actor=ACTOR, revision=AspectRevision(stability=0.9))
        drop_aspect(aspect_id=aspect.id, actor=ACTOR)
        assert add_aspect(agent_id=agent.id, aspect=MAPS, actor=ACTOR).id == aspect.id
        with pytest.raises(AlreadyExists, match="aspect already"):
            add_aspect(agent_id=agent.id, aspect=MAPS, actor=ACTOR)
    assert len(audit_messages(agent)) == 4


def test_an_aspect_deleted_meanwhile_is_not_found(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aspects, "lock_agent_row", lambda _: IdentityAspect.objects.all().delete())
    with tenant_transaction(agent.tenant_id):
        aspect = IdentityAspectFactory(agent=agent)
        with pytest.raises(NotFound, match="there is no aspect"):
            drop_aspect(aspect_id=aspect.id, actor=ACTOR)


def _accept_preference(agent: Agent, actor: str) -> None:
    change = {"key": "tone", "value": "brief"}
    new = NewProposal(
        kind=ProposalKind.PREFERENCE, content="Be brief.", confidence=0.6, source="operator", change=change
    )
    (proposal,) = propose(agent_id=agent.id, proposals=[new]).made
    accept(proposal_id=proposal.id, decided_by=actor)


def _add_boundary(agent: Agent, actor: str) -> None:
    gossip = NewBoundary(
        name="no_gossip", type=BoundaryType.ETHICAL, response=BoundaryResponse.REFUSE, patterns=["gossip"]
    )
    add_boundary(tenant_id=agent.tenant_id, agent_id=agent.id, boundary=gossip, actor=actor)


CHANGES: list[tuple[str, Any]] = [
    ("belief", lambda agent, actor: add_belief(agent_id=agent.id, belief=ICE, actor=actor)),
    ("aspect", lambda agent, actor: add_aspect(agent_id=agent.id, aspect=MAPS, actor=actor)),
    (
        "preference",
        lambda agent, actor: set_preference(agent_id=agent.id, key="tone", value="brief", actor=actor),
    ),
    ("preference", _accept_preference),
    ("boundary", _add_boundary),
    (
        "boundary",
        lambda agent, actor: remove_boundary(agent_id=agent.id, name="no_harm", actor=actor),
    ),
]


@pytest.mark.parametrize("actor", ["user:ann", "cli:ann", "heartbeat:1"])
@pytest.mark.parametrize(("what", "change"), CHANGES)
def test_each_change_leaves_one_complete_record(agent: Agent, what: str, change: Any, actor: str) -> None:
    if change is _add_boundary:
        change(agent, actor)
    else:
        with tenant_transaction(agent.tenant_id):
            change(agent, actor)
    with tenant_transaction(agent.tenant_id):
        stored = SelfChange.objects.get(agent_id=agent.id)
        event = AuditEvent.objects.get(agent_id=agent.id)
    assert (stored.what, stored.before, stored.decided_by) == (what, {}, actor)
    assert stored.after
    assert (event.action, event.before, event.after) == ("self.changed", {}, stored.after)
    assert event.detail[f"{what}_id"] == str(stored.target_id)
    own = actor.startswith("heartbeat:")
    assert event.actor == (f"agent:{agent.public_id}" if own else actor)
    assert event.detail.get("heartbeat_id") == ("1" if own else None)


def test_the_removal_of_a_part_is_recorded(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        set_preference(agent_id=agent.id, key="tone", value="brief", actor=ACTOR)
        set_preference(agent_id=agent.id, key="tone", value="brief", actor=ACTOR)
        set_preference(agent_id=agent.id, key="tone", value="dry", actor=ACTOR)
        unset_preference(agent_id=agent.id, key="tone", actor=ACTOR)
        changes = list(SelfChange.objects.order_by("id").values_list("before", "after"))
    brief, dry = ({"key": "tone", "value": value} for value in ("brief", "dry"))
    assert changes == [({}, brief), (brief, dry), (dry, {})]


def test_an_equal_belief_is_refused(agent: Agent) -> None:
    same = NewBelief(statement=" Ice  holds after a week. ", category=BeliefCategory.TIME)
    with tenant_transaction(agent.tenant_id):
        belief = add_belief(agent_id=agent.id, belief=ICE, actor=ACTOR)
        with pytest.raises(AlreadyExists, match=str(belief.id)):
            add_belief(agent_id=agent.id, belief=same, actor=ACTOR)
        assert Belief.objects.get().category == "world"


def test_wrong_input_changes_nothing(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        belief = add_belief(agent_id=agent.id, belief=ICE, actor=ACTOR)
        for wrong in (math.nan, -0.1, 1.5, math.inf):
            with pytest.raises(Invalid, match="0 to 1"):
                revise_belief(belief_id=belief.id, actor=ACTOR, revision=BeliefRevision(confidence=wrong))
        for unknown in (uuid4(), agent.id):
            with pytest.raises(NotFound, match="no belief"):
                drop_belief(belief_id=unknown, actor=ACTOR)
            with pytest.raises(NotFound, match="no aspect"):
                drop_aspect(aspect_id=unknown, actor=ACTOR)
        with pytest.raises(NotFound, match="no agent"):
            add_belief(agent_id=uuid4(), belief=ICE, actor=ACTOR)
        assert Belief.objects.get().confidence == 0.8
    assert len(audit_messages(agent)) == 1


@pytest.mark.parametrize("reason", ["x" * 501, "no\0"])
def test_a_reason_that_no_record_stores_is_refused(agent: Agent, reason: str) -> None:
    with tenant_transaction(agent.tenant_id):
        belief, aspect = BeliefFactory(agent=agent), IdentityAspectFactory(agent=agent)
        with pytest.raises(Invalid, match="a reason must"):
            drop_belief(belief_id=belief.id, actor=ACTOR, reason=reason)
        with pytest.raises(Invalid, match="a reason must"):
            drop_aspect(aspect_id=aspect.id, actor=ACTOR, reason=reason)
        with pytest.raises(Invalid, match="a reason must"):
            change_filters(belief_id=belief.id, added=None, actor=ACTOR, reason=reason)
        assert Belief.objects.get(id=belief.id).status == BeliefStatus.HELD


def test_a_self_is_bounded(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beliefs, "MAX_BELIEFS", 1)
    monkeypatch.setattr(aspects, "MAX_ASPECTS", 1)
    with tenant_transaction(agent.tenant_id):
        BeliefFactory(agent=agent)
        BeliefFactory(agent=agent, status=BeliefStatus.DROPPED)
        IdentityAspectFactory(agent=agent)
        with pytest.raises(LimitReached, match="at most 1 beliefs"):
            add_belief(agent_id=agent.id, belief=ICE, actor=ACTOR)
        with pytest.raises(LimitReached, match="at most 1 aspects besides traits, values and capabilities"):
            add_aspect(agent_id=agent.id, aspect=MAPS, actor=ACTOR)


def test_a_dropped_part_comes_back_only_where_there_is_room(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beliefs, "MAX_BELIEFS", 1)
    monkeypatch.setattr(aspects, "MAX_ASPECTS", 1)
    for status in (BeliefStatus.HELD, BeliefStatus.QUESTIONED):
        with tenant_transaction(agent.tenant_id):
            belief = BeliefFactory(agent=agent, status=BeliefStatus.DROPPED)
            aspect = IdentityAspectFactory(agent=agent, status=BeliefStatus.DROPPED)
            others = BeliefFactory(agent=agent), IdentityAspectFactory(agent=agent)
            with pytest.raises(LimitReached, match="at most 1 beliefs"):
                revise_belief(belief_id=belief.id, revision=BeliefRevision(status=status), actor=ACTOR)
            with pytest.raises(LimitReached, match="at most 1 aspects"):
                revise_aspect(aspect_id=aspect.id, revision=AspectRevision(status=status), actor=ACTOR)
            drop_belief(belief_id=others[0].id, actor=ACTOR)
            drop_aspect(aspect_id=others[1].id, actor=ACTOR)
            revised = revise_belief(belief_id=belief.id, revision=BeliefRevision(status=status), actor=ACTOR)
            assert revised.status == status
            drop_belief(belief_id=belief.id, actor=ACTOR)


def test_the_self_of_another_tenant_is_not_found(agent: Agent, other_tenant: Tenant) -> None:
    with tenant_transaction(agent.tenant_id):
        belief = add_belief(agent_id=agent.id, belief=ICE, actor=ACTOR)
        aspect = add_aspect(agent_id=agent.id, aspect=MAPS, actor=ACTOR)
    with tenant_transaction(other_tenant.id):
        assert not Belief.objects.exists()
        assert not IdentityAspect.objects.exists()
        for change in (
            lambda: add_belief(agent_id=agent.id, belief=ICE, actor=ACTOR),
            lambda: drop_belief(belief_id=belief.id, actor=ACTOR),
            lambda: add_aspect(agent_id=agent.id, aspect=MAPS, actor=ACTOR),
            lambda: drop_aspect(aspect_id=aspect.id, actor=ACTOR),
        ):
            with pytest.raises(NotFound):
                change()


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
