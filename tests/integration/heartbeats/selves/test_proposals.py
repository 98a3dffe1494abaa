"""Proposals decided by a heartbeat, and their effects on the self."""

from __future__ import annotations

from typing import Any

import pytest

from apps.agents.models import Agent
from apps.memories.models import Memory
from apps.selves.models import (
    IdentityAspect,
    Preference,
    Proposal,
    SelfChange,
)
from apps.tenants.scope import tenant_transaction
from arbor.selves.proposals import ProposalKind, ProposalStatus
from tests.integration.heartbeats.conftest import REST, last_heartbeat
from tests.integration.heartbeats.heartbeat_runner import HeartbeatRunner, reply_of
from tests.integration.heartbeats.selves.conftest import decide, memory, propose_change, reload

# --- Proposals and insights --------------------------------------------------------------------------


def test_an_accepted_proposal_becomes_an_aspect(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    proposal = propose_change(agent)
    prompt = heartbeats.run(decide(proposal, "accept"))
    assert f"[{proposal.id}] identity, 70% sure" in prompt
    with tenant_transaction(agent.tenant_id):
        aspect = IdentityAspect.objects.get(content="I am patient with tides.")
        change = SelfChange.objects.get(proposal_id=proposal.id)
    assert (change.what, change.target_id) == ("aspect", aspect.id)
    assert change.decided_by == f"heartbeat:{last_heartbeat(agent).id}"
    assert reload(agent, proposal).status == ProposalStatus.ACCEPTED
    assert "I am patient with tides." in heartbeats.run(REST)


def test_a_rejected_proposal_changes_no_row_and_stores_the_reason(
    heartbeats: HeartbeatRunner, agent: Agent
) -> None:
    proposal = propose_change(agent)
    heartbeats.run(decide(proposal, "reject", "I am not"))
    rejected = reload(agent, proposal)
    assert (rejected.status, rejected.reason) == (ProposalStatus.REJECTED, "I am not")
    with tenant_transaction(agent.tenant_id):
        assert not IdentityAspect.objects.filter(content=proposal.content).exists()


def test_a_deferred_proposal_is_shown_again(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    proposal = propose_change(agent)
    heartbeats.run(decide(proposal, "defer"))
    assert reload(agent, proposal).deferrals == 1
    assert "put off 1 times" in heartbeats.run(REST)


def test_an_agent_accepts_one_aspect_in_four_hours(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    first, second = propose_change(agent), propose_change(agent, content="Storms please me.")
    heartbeats.run(decide(first, "accept"))
    heartbeats.run(decide(second, "accept"))
    assert reload(agent, second).status == ProposalStatus.PENDING
    (dropped,) = last_heartbeat(agent).dropped
    assert dropped["path"] == "proposal_decisions[0]"
    assert "changes slowly" in dropped["reason"]


def test_a_decision_about_an_unknown_proposal_is_dropped(
    heartbeats: HeartbeatRunner, agent: Agent, other_tenant: Any, new_agent: Any
) -> None:
    foreign = propose_change(new_agent(other_tenant, name="Bo"))
    heartbeats.run(
        reply_of(
            proposal_decisions=[
                {"proposal_id": "nonsense", "decision": "accept", "reason": ""},
                {"proposal_id": str(foreign.id), "decision": "accept", "reason": ""},
            ]
        )
    )
    assert [item["path"] for item in last_heartbeat(agent).dropped] == [
        "proposal_decisions[0]",
        "proposal_decisions[1]",
    ]


@pytest.mark.parametrize(
    ("kind", "memory_type"),
    [("fact", "semantic"), ("insight", "semantic"), ("learning", "procedural"), ("pattern", "strategic")],
)
def test_an_accepted_proposal_is_remembered_by_its_kind(
    heartbeats: HeartbeatRunner, agent: Agent, kind: str, memory_type: str
) -> None:
    proposal = propose_change(agent, kind=ProposalKind(kind), content="Nets dry fastest at noon.", change={})
    heartbeats.run(decide(proposal, "accept"))
    with tenant_transaction(agent.tenant_id):
        memory = Memory.objects.get(content="Nets dry fastest at noon.")
    assert memory.type == memory_type
    if memory_type == "semantic":
        assert memory.detail["confidence"] == pytest.approx(0.9)


def test_a_preference_that_is_accepted_is_shown(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    change = {"key": "tone", "value": "short sentences"}
    proposal = propose_change(agent, kind=ProposalKind.PREFERENCE, content="Write briefly.", change=change)
    heartbeats.run(decide(proposal, "accept"))
    with tenant_transaction(agent.tenant_id):
        assert Preference.objects.get(agent_id=agent.id).value == "short sentences"
    assert "tone: short sentences" in heartbeats.run(REST)


def test_an_insight_becomes_a_proposal_for_a_later_heartbeat(
    heartbeats: HeartbeatRunner, agent: Agent
) -> None:
    own = memory(agent, "I kept watch through the night.")
    insight = {"kind": "self_concept", "content": "I am a watcher.", "confidence": 0.8, "evidence": [own]}
    unsure = {**insight, "content": "I may be a sailor.", "confidence": 0.4}
    baseless = {**insight, "content": "I am a king.", "evidence": [str(agent.id)]}
    heartbeats.run(reply_of(identity_insights=[insight, unsure, baseless]))
    with tenant_transaction(agent.tenant_id):
        proposal = Proposal.objects.get(agent_id=agent.id)
        assert not IdentityAspect.objects.filter(content="I am a watcher.").exists()
    assert (proposal.kind, proposal.change, proposal.evidence) == (
        "identity",
        {"aspect": "self_concept"},
        [own],
    )
    assert [item["path"] for item in last_heartbeat(agent).dropped] == [
        "identity_insights[1]",
        "identity_insights[2]",
    ]
    prompt = heartbeats.run(decide(proposal, "accept"))
    assert "I am a watcher." in prompt
    assert "I am a watcher." in heartbeats.run(REST)
