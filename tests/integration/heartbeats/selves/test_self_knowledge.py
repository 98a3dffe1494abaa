"""The life of a trait: shown by actions, proposed, accepted, part of the system prompt, rolled back."""

from __future__ import annotations

import re

from apps.agents.models import Agent, AgentState
from apps.contacts.services.chat import exchange_turns, open_session
from apps.heartbeats.services.calls.calls import execute_call
from apps.selves.models import IdentityAspect, Proposal
from apps.selves.services.history import versions_of
from apps.selves.services.proposals import accept
from apps.selves.services.rollback import roll_back
from apps.tenants.scope import tenant_transaction
from arbor.selves.tendencies import MIN_SIGNS
from tests.integration.heartbeats.conftest import REST, last_heartbeat
from tests.integration.heartbeats.heartbeat_runner import (
    HeartbeatRunner,
    Script,
    action_of,
    reply_of,
    store_fact,
)
from tests.integration.heartbeats.selves.conftest import propose_change, reply_deciding

#: The proposed trait in a prompt, and the accepted trait in the system prompt.
_PROPOSED = re.compile(r"\[([0-9a-f-]{36})\] identity \(trait\), \d+% sure[^\n]*: reflective")
_TRAIT = "- reflective (high)\n"


def system_of(prompt: str) -> str:
    """Return the constant part of a heartbeat's prompt."""
    return prompt.partition("The mark of this message is")[0]


def system_of_chat(agent: Agent, scripted: Script) -> str:
    """Talk to the agent; return the system prompt of the conversation."""
    model = scripted('{"thinking": "", "reply": "Well."}')
    with tenant_transaction(agent.tenant_id):
        session = open_session(agent_id=agent.id, person="cli:nora")
    exchange_turns(
        tenant_id=agent.tenant_id, session_id=session.id, text="How are you?", execute=execute_call
    )
    return model.requests[0].system


def test_a_repeated_experience_becomes_a_trait_until_rolled_back(
    heartbeats: HeartbeatRunner, agent: Agent, scripted: Script
) -> None:
    for heartbeat in range(MIN_SIGNS // 4):
        gauges = range(heartbeat * 4, heartbeat * 4 + 4)
        insights = [f"Gauge {gauge} reads low after rain from bay {gauge + 40}." for gauge in gauges]
        heartbeats.run(reply_of(actions=[action_of("reflect", insight=text) for text in insights]))
    heartbeats.run(REST)
    prompt = heartbeats.run(REST)
    assert last_heartbeat(agent).mode == "consolidation"
    proposed = _PROPOSED.search(prompt)
    assert proposed is not None
    assert _TRAIT not in system_of(prompt)
    with tenant_transaction(agent.tenant_id):
        proposal = Proposal.objects.get(id=proposed[1])

    heartbeats.run(reply_deciding(proposal, "accept"))

    prompt = heartbeats.run(REST)
    assert _TRAIT in system_of(prompt)
    assert _TRAIT in system_of_chat(agent, scripted)
    with tenant_transaction(agent.tenant_id):
        latest = versions_of(agent.id)[0]
        assert latest.decided_by.startswith("heartbeat:")
        roll_back(agent_id=agent.id, to=latest.number - 1, actor="user:ann", reason="not so")
    after = heartbeats.run(REST)
    assert _TRAIT not in system_of(after)
    assert _TRAIT not in system_of_chat(agent, scripted)
    # Consolidation does not propose it once more.
    with tenant_transaction(agent.tenant_id):
        AgentState.objects.filter(agent_id=agent.id).update(heartbeats=4)
    assert _PROPOSED.search(heartbeats.run(REST)) is None


def test_the_system_prompt_is_stable_and_grows_at_its_end(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    before = system_of(heartbeats.run(REST))
    assert system_of(heartbeats.run(REST)) == before
    proposal = propose_change(agent, content="tea", change={"aspect": "value"}, confidence=0.9)
    heartbeats.run(reply_deciding(proposal, "accept"))
    after = system_of(heartbeats.run(REST))
    assert after.replace("- tea\n", "", 1) == before


def test_an_insight_into_a_known_trait_changes_its_strength(
    heartbeats: HeartbeatRunner, agent: Agent
) -> None:
    ground = store_fact(agent, "I waited for the tide, twice.")
    for confidence in (0.9, 0.6):
        insight = {"kind": "trait", "content": "patient", "confidence": confidence, "evidence": [ground]}
        heartbeats.run(reply_of(identity_insights=[insight, insight | {"content": "so\nsaid a stranger"}]))
        (dropped,) = last_heartbeat(agent).dropped
        assert "one line" in dropped["reason"]
        # A person may decide at any time; an agent waits four hours.
        with tenant_transaction(agent.tenant_id):
            proposal = Proposal.objects.get(agent_id=agent.id, status="pending")
            accept(proposal_id=proposal.id, decided_by="user:ann")
            assert IdentityAspect.objects.get(kind="trait", content="patient").strength == confidence
