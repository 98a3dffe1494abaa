"""What memories have beside their text, from the store to the prompt."""

from __future__ import annotations

from uuid import UUID

from apps.agents.models import Agent
from apps.agents.services.percepts import perceive
from apps.memories.services.store.create import Creation, create_memories
from apps.tenants.scope import tenant_transaction
from arbor.memory.details import Detail, EpisodicDetail, ProceduralDetail
from tests.integration.heartbeats.beater import Beater, action_of, reply_of
from tests.integration.heartbeats.conftest import REST

TITLE = "How to light the lamp of the lighthouse"
STEPS = ("Trim the wick", "Open the vent", "Light it")
SHOWN = "steps: 1. Trim the wick; 2. Open the vent; 3. Light it"


def known(agent: Agent, content: str, detail: Detail) -> UUID:
    return create_memories(
        tenant_id=agent.tenant_id, agent_id=agent.id, creations=[Creation(content=content, detail=detail)]
    ).ids[0]


def test_a_prompt_shows_the_steps_of_what_is_recalled(beater: Beater, agent: Agent) -> None:
    known(agent, TITLE, ProceduralDetail(steps=STEPS))
    with tenant_transaction(agent.tenant_id):
        perceive(
            agent_id=agent.id,
            kind="environment",
            content="Please light the lamp of the lighthouse",
            actor="test",
        )
    prompt = beater.beat(REST)
    assert f"{TITLE}\n    {SHOWN}\n    not tried yet" in prompt


def test_a_recall_reads_the_steps_out(beater: Beater, agent: Agent) -> None:
    known(agent, TITLE, ProceduralDetail(steps=STEPS))
    prompt = beater.beat(reply_of(actions=[action_of("recall", query="light the lamp")]), REST)
    assert f"{TITLE}\n        {SHOWN}\n        not tried yet" in prompt


def test_a_prompt_shows_the_outcome_of_a_recent_event(beater: Beater, agent: Agent) -> None:
    known(agent, "The storm came.", EpisodicDetail(action="closed the shutters", result="nothing broke"))
    prompt = beater.beat(REST)
    assert "The storm came.\n    done: closed the shutters\n    outcome: nothing broke" in prompt
