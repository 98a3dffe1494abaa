"""The queue of proposals: its limits, its order, and decisions by agents and persons."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.agents.models import Agent
from apps.selves.models import Belief, IdentityAspect, Proposal, SelfChange
from apps.selves.services.aspects import add_aspect
from apps.selves.services.beliefs import add_belief
from apps.selves.services.beliefs import revise_belief as revise_by_hand
from apps.selves.services.changes import REASON_LENGTH
from apps.selves.services.decisions import ProposalVerdict, decide_proposal, decide_proposals
from apps.selves.services.preferences import set_preference
from apps.selves.services.proposals import accept, defer, propose, reject, revise_belief
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.errors import Invalid, LimitReached, NotFound, TransitionIllegal
from arbor.selves.proposals import MAX_DEFERRALS, MAX_PENDING, NewProposal, ProposalKind, ProposalStatus
from arbor.selves.values import (
    AspectKind,
    BeliefCategory,
    BeliefRevision,
    BeliefStatus,
    NewAspect,
    NewBelief,
)
from tests.factories.agents import AgentFactory
from tests.factories.selves import BeliefFactory

HEARTBEAT = "heartbeat:1"


@pytest.fixture
def agent(in_tenant: UUID) -> Agent:
    created: Agent = AgentFactory()
    return created


def new_proposal(content: str = "I am patient.", **fields: Any) -> NewProposal:
    return NewProposal(
        **{
            "kind": ProposalKind.IDENTITY,
            "content": content,
            "confidence": 0.6,
            "source": HEARTBEAT,
            "change": {"aspect": "self_concept"},
            **fields,
        }
    )


def store_proposal(agent: Agent, content: str = "I am patient.", **fields: Any) -> Proposal:
    return propose(agent_id=agent.id, proposals=[new_proposal(content, **fields)]).made[0]


def words(number: int) -> str:
    """Return a text that differs from those of other numbers."""
    return " ".join(chr(97 + (number * 7 + place * place) % 26) * (3 + place % 4) for place in range(9))


def test_a_proposal_accepted_twice_changes_the_self_once(agent: Agent) -> None:
    proposal = store_proposal(agent)
    first = accept(proposal_id=proposal.id, decided_by=HEARTBEAT)
    again = accept(proposal_id=proposal.id, decided_by="cli:ann")
    assert (first.status, again.decided_by) == (ProposalStatus.ACCEPTED, HEARTBEAT)
    assert IdentityAspect.objects.filter(agent_id=agent.id).count() == 1
    assert SelfChange.objects.filter(agent_id=agent.id).count() == 1


@pytest.mark.parametrize("first", [accept, reject])
@pytest.mark.parametrize("then", [reject, defer])
def test_a_decided_proposal_is_neither_rejected_nor_deferred(agent: Agent, first: Any, then: Any) -> None:
    proposal = store_proposal(agent)
    first(proposal_id=proposal.id, decided_by=HEARTBEAT)
    with pytest.raises(TransitionIllegal):
        then(proposal_id=proposal.id, decided_by=HEARTBEAT)


def test_a_rejected_proposal_is_not_accepted(agent: Agent) -> None:
    proposal = store_proposal(agent)
    reject(proposal_id=proposal.id, decided_by=HEARTBEAT)
    with pytest.raises(TransitionIllegal):
        accept(proposal_id=proposal.id, decided_by=HEARTBEAT)


def test_a_proposal_deferred_five_times_expires(agent: Agent) -> None:
    proposal = store_proposal(agent)
    for count in range(1, MAX_DEFERRALS):
        assert defer(proposal_id=proposal.id, decided_by=HEARTBEAT).deferrals == count
    last = defer(proposal_id=proposal.id, decided_by=HEARTBEAT, reason="not now")
    assert (last.status, last.deferrals) == (ProposalStatus.EXPIRED, MAX_DEFERRALS)
    assert "put off 5 times" in last.reason


@pytest.mark.parametrize("verdict", ProposalVerdict)
def test_several_decisions_lock_their_agents_once(agent: Agent, verdict: ProposalVerdict) -> None:
    ids = [store_proposal(agent, words(number)).id for number in range(6)]

    def statements_for(chosen: list[UUID]) -> list[str]:
        with CaptureQueriesContext(connection) as captured:
            assert len(decide_proposals(proposal_ids=chosen, decision=verdict, decided_by="cli:ann").decided)
        return [query["sql"] for query in captured]

    two, four = statements_for(ids[:2]), statements_for(ids[2:])

    locks = [sql for sql in four if "heartbeatschedule" in sql and "FOR UPDATE" in sql]
    assert len(locks) == 1
    # A savepoint and its end, the lock and the update of the proposal, its signal and its audit record.
    if verdict is not ProposalVerdict.ACCEPT:
        assert len(four) - len(two) == 2 * 6


@pytest.mark.parametrize("reason", ["x" * (REASON_LENGTH + 1), "no\0"])
def test_a_single_decision_checks_its_reason(agent: Agent, reason: str) -> None:
    proposal = store_proposal(agent)
    with pytest.raises(Invalid, match="a reason must"):
        decide_proposal(
            proposal_id=proposal.id, decision=ProposalVerdict.REJECT, decided_by="cli:ann", reason=reason
        )


def test_a_repeated_proposal_is_stored_once(agent: Agent) -> None:
    proposal = store_proposal(agent)
    again = propose(
        agent_id=agent.id, proposals=[new_proposal("I am patient!"), new_proposal("Storms please me.")]
    )
    assert again.known == (proposal,)
    assert [proposal.content for proposal in again.made] == ["Storms please me."]


@pytest.mark.parametrize(
    ("changes", "is_made"),
    [
        ({"content": " patient", "confidence": 0.84, "change": {"aspect": "trait"}}, False),
        # Acceptance would add an aspect whose case differs.
        ({"content": "Patient", "confidence": 0.84, "change": {"aspect": "trait"}}, True),
        ({"content": "patient", "confidence": 0.69, "change": {"aspect": "trait"}}, False),
        ({"content": "patient", "confidence": 0.69, "change": {"aspect": "trait", "strength": 0.6}}, True),
        ({"content": "patient", "confidence": 0.95, "change": {"aspect": "trait"}}, True),
        ({"content": "patient", "confidence": 0.7, "change": {"aspect": "value"}}, True),
        ({"content": "I am a lighthouse."}, False),
        ({"content": "I am  a\nlighthouse."}, False),
        ({"content": "Ice floats.", "kind": ProposalKind.BELIEF, "change": {}}, False),
        ({"content": "Ice sinks.", "kind": ProposalKind.BELIEF, "change": {}}, True),
        ({"content": "Lead floats.", "kind": ProposalKind.BELIEF, "change": {}}, True),
        ({"kind": ProposalKind.PREFERENCE, "change": {"key": "tone", "value": "brief"}}, False),
        ({"kind": ProposalKind.PREFERENCE, "change": {"key": "tone", "value": "warm"}}, True),
    ],
)
def test_a_proposal_that_would_change_nothing_is_not_made(
    agent: Agent, changes: dict[str, Any], is_made: bool
) -> None:
    add_aspect(
        agent_id=agent.id,
        aspect=NewAspect(content="patient", kind=AspectKind.TRAIT, strength=0.72),
        actor=HEARTBEAT,
    )
    add_aspect(
        agent_id=agent.id,
        aspect=NewAspect(content="I am a lighthouse.", kind=AspectKind.SELF_CONCEPT),
        actor=HEARTBEAT,
    )
    BeliefFactory(agent=agent, statement="Ice floats.")
    BeliefFactory(agent=agent, statement="Lead floats.", status=BeliefStatus.DROPPED)
    set_preference(agent_id=agent.id, key="tone", value="brief", actor=HEARTBEAT)
    new = new_proposal(**changes)

    result = propose(agent_id=agent.id, proposals=[new])

    assert len(result.made) == is_made
    assert result.redundant == (() if is_made else (new,))


def test_a_full_queue_removes_and_lists_its_weakest_proposal(agent: Agent) -> None:
    weak = store_proposal(agent, words(0), confidence=0.1)
    propose(agent_id=agent.id, proposals=[new_proposal(words(number)) for number in range(1, MAX_PENDING)])
    assert Proposal.objects.filter(agent_id=agent.id, status="pending").count() == MAX_PENDING
    result = propose(agent_id=agent.id, proposals=[new_proposal(words(99))])
    assert result.expired == (weak,)
    weak.refresh_from_db()
    assert (weak.status, weak.reason) == ("expired", "the queue was full")
    assert Proposal.objects.filter(agent_id=agent.id, status="pending").count() == MAX_PENDING


def test_an_agent_changes_itself_three_times_a_day(agent: Agent) -> None:
    now = datetime.now(UTC)
    # The database sets the times of the changes, so the decisions are dated later.
    for hours in range(3):
        accepted = store_proposal(agent, words(hours))
        accept(proposal_id=accepted.id, decided_by=HEARTBEAT, now=now + timedelta(hours=5))
    fourth = store_proposal(agent, "Storms please me.")
    with pytest.raises(LimitReached, match="at most 3 times"):
        accept(proposal_id=fourth.id, decided_by=HEARTBEAT, now=now + timedelta(hours=10))
    with pytest.raises(LimitReached, match="possible from"):
        accept(proposal_id=fourth.id, decided_by=HEARTBEAT, now=now + timedelta(hours=3))
    fourth.refresh_from_db()
    assert fourth.status == ProposalStatus.PENDING
    assert accept(proposal_id=fourth.id, decided_by="cli:ann").status == ProposalStatus.ACCEPTED


def test_another_agents_proposal_is_not_found(agent: Agent) -> None:
    foreign = store_proposal(AgentFactory())
    for decide in (accept, reject, defer):
        with pytest.raises(NotFound):
            decide(proposal_id=foreign.id, agent_id=agent.id, decided_by=HEARTBEAT)


def test_an_unknown_proposal_or_agent_is_not_found(in_tenant: UUID) -> None:
    with pytest.raises(NotFound):
        accept(proposal_id=uuid4(), decided_by=HEARTBEAT)
    with pytest.raises(NotFound):
        propose(agent_id=uuid4(), proposals=[new_proposal()])


@pytest.mark.parametrize(
    ("changes", "confidence", "status"),
    [
        ({"confidence": 0.5}, 0.5, "held"),
        ({"confidence": 0.45}, 0.45, "held"),
        ({"status": BeliefStatus.QUESTIONED}, 0.6, "questioned"),
    ],
)
def test_a_heartbeat_revises_a_belief_by_a_step(
    agent: Agent, changes: dict[str, Any], confidence: float, status: str
) -> None:
    belief: Belief = BeliefFactory(agent=agent, confidence=0.6)
    revised = revise_belief(
        agent_id=agent.id,
        belief_id=belief.id,
        decided_by=HEARTBEAT,
        revision=BeliefRevision(reason="seen", **changes),
    )
    assert (revised.confidence, revised.status) == (confidence, status)
    assert revised.tested_at is not None
    assert SelfChange.objects.get(target_id=belief.id).decided_by == HEARTBEAT


def test_an_agent_revises_a_belief_once_in_four_hours(agent: Agent) -> None:
    belief: Belief = BeliefFactory(agent=agent, confidence=0.2)
    now = datetime.now(UTC)

    def step(to: float, hours: int = 0) -> Belief:
        return revise_belief(
            agent_id=agent.id,
            belief_id=belief.id,
            decided_by=HEARTBEAT,
            revision=BeliefRevision(confidence=to),
            now=now + timedelta(hours=hours),
        )

    step(0.4)
    for to in (0.6, 0.5):
        with pytest.raises(LimitReached, match="possible from"):
            step(to)
    belief.refresh_from_db()
    assert belief.confidence == 0.4
    assert step(0.6, hours=5).confidence == 0.6
    assert (
        revise_by_hand(
            belief_id=belief.id, actor="cli:ann", revision=BeliefRevision(confidence=0.9)
        ).confidence
        == 0.9
    )


@pytest.mark.parametrize("changes", [{"confidence": 0.4}, {"status": BeliefStatus.HELD}])
def test_a_revision_without_a_change_is_accepted_at_any_pace(agent: Agent, changes: dict[str, Any]) -> None:
    belief: Belief = BeliefFactory(agent=agent, confidence=0.2)
    revise_belief(
        agent_id=agent.id, belief_id=belief.id, decided_by=HEARTBEAT, revision=BeliefRevision(confidence=0.4)
    )
    revised = revise_belief(
        agent_id=agent.id, belief_id=belief.id, decided_by=HEARTBEAT, revision=BeliefRevision(**changes)
    )
    assert (revised.confidence, revised.status) == (0.4, "held")
    assert SelfChange.objects.filter(target_id=belief.id).count() == 1


def test_a_known_change_is_accepted_beyond_the_daily_limit(agent: Agent) -> None:
    def two_proposals(number: int) -> list[Proposal]:
        belief = store_proposal(agent, f"Tides repeat, {words(number)}.", kind=ProposalKind.BELIEF, change={})
        return [store_proposal(agent, words(number)), belief]

    known = two_proposals(1)
    # A person is faster than the agent.
    add_aspect(
        agent_id=agent.id, aspect=NewAspect(content=words(1), kind=AspectKind.SELF_CONCEPT), actor="cli:ann"
    )
    belief = NewBelief(statement=known[1].content, category=BeliefCategory.WORLD)
    add_belief(agent_id=agent.id, belief=belief, actor="cli:ann")
    for number in range(2, 5):
        later = datetime.now(UTC) + timedelta(hours=5)
        accept(proposal_id=two_proposals(number)[0].id, decided_by=HEARTBEAT, now=later)
    with pytest.raises(LimitReached):
        accept(proposal_id=two_proposals(5)[1].id, decided_by=HEARTBEAT)
    for proposal in known:
        assert accept(proposal_id=proposal.id, decided_by=HEARTBEAT).reason == "that was so already"


def test_a_proposal_without_a_change_is_accepted_at_any_pace(agent: Agent) -> None:
    belief: Belief = BeliefFactory(agent=agent, confidence=0.2)
    revise_belief(
        agent_id=agent.id, belief_id=belief.id, decided_by=HEARTBEAT, revision=BeliefRevision(confidence=0.4)
    )
    same = {"belief": str(belief.id), "confidence": 0.4}
    proposal = store_proposal(agent, "It is as sure as before.", kind=ProposalKind.BELIEF, change=same)
    assert accept(proposal_id=proposal.id, decided_by=HEARTBEAT).status == ProposalStatus.ACCEPTED


def test_beliefs_aspects_and_preferences_share_one_daily_limit(agent: Agent) -> None:
    for proposal in (
        store_proposal(agent),
        store_proposal(agent, "Tides repeat.", kind=ProposalKind.BELIEF, change={}),
        store_proposal(
            agent, "Be brief.", kind=ProposalKind.PREFERENCE, change={"key": "tone", "value": "brief"}
        ),
    ):
        accept(proposal_id=proposal.id, decided_by=HEARTBEAT)
    belief: Belief = BeliefFactory(agent=agent, confidence=0.5)
    with pytest.raises(LimitReached, match="at most 3 times"):
        revise_belief(
            agent_id=agent.id,
            belief_id=belief.id,
            decided_by=HEARTBEAT,
            revision=BeliefRevision(confidence=0.6),
        )
    later = store_proposal(
        agent, "Be kind.", kind=ProposalKind.PREFERENCE, change={"key": "manner", "value": "kind"}
    )
    with pytest.raises(LimitReached, match="at most 3 times"):
        accept(proposal_id=later.id, decided_by=HEARTBEAT)
    assert accept(proposal_id=later.id, decided_by="cli:ann").status == ProposalStatus.ACCEPTED


@pytest.mark.parametrize(
    "changes", [{}, {"confidence": 0.1}, {"confidence": float("nan")}, {"status": BeliefStatus.DROPPED}]
)
def test_an_invalid_revision_is_refused(agent: Agent, changes: dict[str, Any]) -> None:
    belief: Belief = BeliefFactory(agent=agent, confidence=0.6)
    with pytest.raises(Invalid):
        revise_belief(
            agent_id=agent.id, belief_id=belief.id, decided_by=HEARTBEAT, revision=BeliefRevision(**changes)
        )
    with pytest.raises(NotFound):
        revise_belief(
            agent_id=uuid4(),
            belief_id=belief.id,
            decided_by=HEARTBEAT,
            revision=BeliefRevision(confidence=0.5),
        )


def test_a_proposal_of_another_tenant_cannot_be_accepted(tenant: Tenant, other_tenant: Tenant) -> None:
    with tenant_transaction(other_tenant.id):
        foreign = store_proposal(AgentFactory())
    with tenant_transaction(tenant.id), pytest.raises(NotFound):
        accept(proposal_id=foreign.id, decided_by=HEARTBEAT)
