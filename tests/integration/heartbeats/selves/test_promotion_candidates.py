"""Memories that are about to be proposed, each with the conditions that it lacks."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from apps.agents.models import Agent
from apps.heartbeats.services.legs.promotion import SOURCE
from apps.heartbeats.services.reports.promotion_candidates import promotion_candidates
from apps.memories.models import Memory, MemoryAccess
from apps.selves.models import Belief, ProposalCalibration
from apps.selves.services.aspects import add_aspect
from apps.selves.services.beliefs import add_belief
from apps.selves.services.proposals import accept
from apps.tenants.scope import tenant_transaction
from arbor.selves.proposals import ProposalKind
from arbor.selves.values import AspectKind, BeliefCategory, BeliefStatus, NewAspect, NewBelief
from tests.factories.selves import ProposalFactory
from tests.integration.heartbeats.heartbeat_runner import store_fact
from tests.integration.heartbeats.selves.conftest import ALMANAC, propose_now, settle


def test_only_candidates_that_lack_no_condition_are_proposed(agent: Agent) -> None:
    lacks: dict[str, dict[str, Any]] = {
        "": {},
        "2.0 of 3 days old": {"days": 2},
        "trust 0.70 of 0.75": {"trust": 0.7},
        "recalled 2 of 3 times": {"recalls": 2},
        "relevance 0.30 of 0.5": {"importance": 0.3},
        "no evidence but the agent's own notes": {"sources": []},
    }
    ids = {}
    with tenant_transaction(agent.tenant_id):
        for number, (lack, changes) in enumerate(lacks.items()):
            ids[lack] = store_fact(agent, f"Eels leave river {number} in autumn.")
            values: dict[str, Any] = {"trust": 0.9, "sources": [ALMANAC], **changes}
            settle(agent, ids[lack], **values)
        found = promotion_candidates(agent_id=agent.id)
        assert {str(fact.memory_id): "; ".join(fact.missing) for fact in found} == {
            str(memory_id): lack for lack, memory_id in ids.items()
        }
        assert [str(fact.memory_id) for fact in found if fact.is_ready] == [str(ids[""])]
        assert found[0].is_ready
        (proposal,) = propose_now(agent)
        assert proposal.evidence == [str(ids[""])]
        (proposed,) = (fact for fact in promotion_candidates(agent_id=agent.id) if fact.proposal)
        assert (str(proposed.memory_id), proposed.proposal, proposed.is_ready) == (
            str(ids[""]),
            "pending",
            False,
        )
        nearest = promotion_candidates(agent_id=agent.id, limit=5)
        assert [str(fact.memory_id) for fact in nearest if fact.proposal] == [], "there are five others"
        assert len(nearest) == 5


def test_concluded_memories_are_no_candidates(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        fact = store_fact(agent, "Eels leave the river in autumn.")
        settle(agent, fact, trust=0.9, sources=[ALMANAC])
        insight = ProposalFactory(agent=agent, kind="insight", source=SOURCE, status="accepted")
        Memory.objects.filter(id=fact).update(source=f"proposal:{insight.id}")

        assert propose_now(agent) == []
        assert str(fact) not in {str(found.memory_id) for found in promotion_candidates(agent_id=agent.id)}


def test_facts_that_the_agent_believes_already_hold_no_place(agent: Agent) -> None:
    texts = ("Eels leave the river in autumn.", "I am patient with eels.", "\nI'm fond of eels.", "Cod stay.")
    with tenant_transaction(agent.tenant_id):
        facts = [store_fact(agent, text) for text in texts]
        for fact in facts:
            settle(agent, fact, trust=0.9, sources=[ALMANAC])
        new = store_fact(agent, "Eels spawn in the open sea.")
        settle(agent, new, trust=0.8, sources=[ALMANAC])
        for statement in (texts[0], "Cod  stay."):
            belief = NewBelief(statement=statement, category=BeliefCategory.WORLD, source="test")
            add_belief(agent_id=agent.id, belief=belief, actor="test")
        for content in texts[1:3]:
            aspect = NewAspect(content=content, kind=AspectKind.SELF_CONCEPT)
            add_aspect(agent_id=agent.id, aspect=aspect, actor="test")

        assert [str(found.memory_id) for found in promotion_candidates(agent_id=agent.id)] == [new]
        (proposal,) = propose_now(agent)
        assert proposal.evidence == [new]
        accept(proposal_id=proposal.id, decided_by="cli:ann")
        (listed,) = promotion_candidates(agent_id=agent.id)
        assert (str(listed.memory_id), listed.proposal) == (new, "accepted")

        Belief.objects.filter(agent_id=agent.id, statement=texts[0]).update(status=BeliefStatus.DROPPED)
        assert [proposal.evidence for proposal in propose_now(agent)] == [[facts[0]]]


def test_a_candidate_is_compared_with_the_calibrated_threshold(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        fact = store_fact(agent, "Eels leave the river in autumn.")
        Memory.objects.filter(id=fact).update(trust=0.8)
        MemoryAccess.objects.update_or_create(
            tenant_id=agent.tenant_id, memory_id=fact, defaults={"count": 4, "last_at": datetime.now(UTC)}
        )
        ProposalCalibration.objects.create(
            tenant_id=agent.tenant_id,
            agent=agent,
            kind=ProposalKind.BELIEF,
            threshold=0.85,
            computed_at=datetime.now(UTC),
        )
        (found,) = (
            candidate
            for candidate in promotion_candidates(agent_id=agent.id)
            if str(candidate.memory_id) == fact
        )

    assert "trust 0.80 of 0.85" in found.missing
