"""Skills in prompts: whole in the system part of heartbeats and conversations, without a statement once cached."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from apps.agents.models import Agent
from apps.agents.services.templates import add_template
from apps.contacts.services.chat import exchange_turns, open_session
from apps.fleet.creation import create_agent
from apps.heartbeats.models import Heartbeat
from apps.heartbeats.services.calls.calls import execute_call
from apps.heartbeats.services.reports.replay import read_recorded_heartbeat
from apps.knowledge.models import AgentSkill
from apps.knowledge.services.active_skills import active_skills, choose_skills
from apps.knowledge.services.skill_texts import clear_text_cache
from apps.knowledge.services.skills import add_skill, replace_skill
from apps.tenants.scope import tenant_transaction
from arbor.errors import NotFound
from arbor.heartbeat.replay import replay
from arbor.models.ports import ScriptedModel
from tests.integration.heartbeats.batch import heartbeat_statements
from tests.integration.heartbeats.conftest import REST, run_at_once
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script
from tests.integration.skills.conftest import ACTOR, skill_text

BODY = "Count the lamps.\n\n## Steps\n1. " + "Walk along the pier. " * 100

TEMPLATE = """---
name: Keeper
version: "1"
character: {{name: Keeper, description: You keep the lighthouse.}}
actions: [rest]
skills: [{skills}]
---
"""


@pytest.fixture
def keeper(agent: Agent) -> Agent:
    """Return an agent with the skill `lamps`."""
    with tenant_transaction(agent.tenant_id):
        add_skill(text=skill_text("lamps", BODY), actor=ACTOR)
        choose_skills(agent_id=agent.id, names=["lamps"], actor=ACTOR)
    return agent


def run(fleet: Fleet, agent: Agent, model: ScriptedModel) -> Heartbeat:
    heartbeat = run_at_once(fleet, agent)
    assert model.requests
    return heartbeat


def test_a_heartbeat_follows_its_skills_below_its_actions(
    fleet: Fleet, keeper: Agent, scripted: Script
) -> None:
    model = scripted(REST)
    heartbeat = run(fleet, keeper, model)
    system = model.requests[0].system
    assert BODY.strip() in system
    assert system.index("# What you can do") < system.index("# Your skills") < system.index(BODY.strip())
    (stored,) = heartbeat.situation["skills"]
    assert set(stored) == {"name", "digest"}


def test_a_replay_has_the_skill_version_of_its_prompt(fleet: Fleet, keeper: Agent, scripted: Script) -> None:
    heartbeat = run(fleet, keeper, scripted(REST))
    with tenant_transaction(keeper.tenant_id):
        replace_skill(text=skill_text("lamps", "Sleep."), actor=ACTOR)
    clear_text_cache()
    found = read_recorded_heartbeat(heartbeat_id=heartbeat.id, tenant_id=heartbeat.tenant_id)
    assert replay(found.heartbeat).differences == []


def test_the_next_heartbeat_has_the_new_version(fleet: Fleet, keeper: Agent, scripted: Script) -> None:
    model = scripted(REST, REST)
    run(fleet, keeper, model)
    with tenant_transaction(keeper.tenant_id):
        replace_skill(text=skill_text("lamps", "Sleep."), actor=ACTOR)
    run(fleet, keeper, model)
    before, after = (request.system for request in model.requests)
    assert "Walk along the pier" in before
    assert "Walk along the pier" not in after
    assert after.endswith("## lamps\nSleep.")


def test_a_conversation_follows_the_skills(keeper: Agent, scripted: Script) -> None:
    model = scripted(json.dumps({"thinking": "", "reply": "Twelve."}))
    with tenant_transaction(keeper.tenant_id):
        session = open_session(agent_id=keeper.id, person="cli:nora")
    exchange_turns(
        tenant_id=keeper.tenant_id, session_id=session.id, text="How many lamps?", execute=execute_call
    )
    assert BODY.strip() in model.requests[0].system


def test_skills_cost_one_statement_once(fleet: Fleet, agent: Agent, scripted: Script) -> None:
    scripted(REST, repeat=True)

    heartbeat_statements(fleet, agent)
    without = heartbeat_statements(fleet, agent)
    with tenant_transaction(agent.tenant_id):
        add_skill(text=skill_text("lamps", BODY), actor=ACTOR)
        choose_skills(agent_id=agent.id, names=["lamps"], actor=ACTOR)
    first, cached = heartbeat_statements(fleet, agent), heartbeat_statements(fleet, agent)
    assert [text for text in without + cached if "knowledge_skillversion" in text] == []
    assert len([text for text in first if "knowledge_skillversion" in text]) == 1
    assert len(cached) == len(without)


def test_agents_begin_with_the_skills_of_their_template(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        add_skill(text=skill_text("lamps"), actor=ACTOR)
        add_template(text=TEMPLATE.format(skills="lamps"), actor=ACTOR)
        keeper = create_agent(name="Ines", template_name="Keeper", actor=ACTOR, interval=timedelta(hours=1))
        assert [skill.name for skill in active_skills(keeper.id)] == ["lamps"]
        add_template(text=TEMPLATE.format(skills="ropes").replace("Keeper", "Sailor"), actor=ACTOR)
        with pytest.raises(NotFound, match="there is no skill 'ropes'; there is: lamps"):
            create_agent(name="Odo", template_name="Sailor", actor=ACTOR)


def test_a_destroyed_agent_leaves_no_choice(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        add_skill(text=skill_text("lamps"), actor=ACTOR)
        choose_skills(agent_id=agent.id, names=["lamps"], actor=ACTOR)
        Agent.objects.filter(id=agent.id).delete()
        assert not AgentSkill.objects.exists()
