"""What memories have beside their text, from the store to the prompt."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from apps.agents.models import Agent
from apps.agents.services.percepts import perceive
from apps.memories.models import Memory, Practice
from apps.memories.services.store.create import Creation, create_memories
from apps.memories.services.store.provenance import record_outcome
from apps.tenants.scope import tenant_transaction
from arbor.memory.details import Detail, EpisodicDetail, ProceduralDetail, SemanticDetail
from arbor.memory.trust import Source
from tests.integration.heartbeats.beater import Beater, action_of, reply_of
from tests.integration.heartbeats.conftest import REST, last_of

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


def made(agent: Agent) -> Memory:
    """Return the memory that the only action of the latest heartbeat made."""
    (action,) = last_of(agent).actions
    assert (action["verdict"], action["outcome"]) == ("run", "success"), action
    with tenant_transaction(agent.tenant_id):
        return Memory.objects.get(id=action["memory_ids"][0])


@pytest.mark.parametrize(
    ("given", "kind", "stored"),
    [
        ({"steps": list(STEPS)}, "procedural", {"steps": list(STEPS)}),
        ({"steps": "Trim the wick\n\nOpen the vent"}, "procedural", {"steps": list(STEPS[:2])}),
        ({"pattern": "Light before dusk"}, "strategic", {"pattern": "Light before dusk"}),
        ({"type": "episodic", "context": "at dusk"}, "episodic", {"context": "at dusk"}),
    ],
)
def test_an_agent_remembers_steps_context_and_pattern(
    beater: Beater, agent: Agent, given: dict[str, Any], kind: str, stored: dict[str, Any]
) -> None:
    beater.beat(reply_of(actions=[action_of("remember", content=TITLE, **given)]))
    memory = made(agent)
    assert (memory.type, memory.detail) == (kind, stored)


def test_a_fact_keeps_its_context_beside_its_source(beater: Beater, agent: Agent) -> None:
    beater.beat(
        reply_of(actions=[action_of("remember", content="The oil lasts a night.", context="in winter")])
    )
    memory = made(agent)
    assert (memory.type, memory.detail["context"]) == ("semantic", "in winter")
    assert [source["kind"] for source in memory.detail["sources"]] == ["heartbeat"]


def test_a_revised_procedure_keeps_its_steps_and_outcomes(beater: Beater, agent: Agent) -> None:
    memory_id = known(agent, TITLE, ProceduralDetail(steps=STEPS))
    with tenant_transaction(agent.tenant_id):
        record_outcome(agent_id=agent.id, memory_id=memory_id, success=True)
        Memory.objects.filter(id=memory_id).update(retention="permanent")
    params = {"target": "memory", "id": str(memory_id)}
    looked = beater.beat(reply_of(actions=[action_of("maintain", **params)]), REST)
    assert "worked 1 of 1 times" in looked
    judged = {"verdict": "revise", "content": "How to light the old lamp", "reason": "there are two"}
    beater.beat(reply_of(actions=[action_of("maintain", **params, **judged)]))
    revised = made(agent)
    assert (revised.id != memory_id, revised.content) == (True, "How to light the old lamp")
    assert (revised.detail, revised.retention) == ({"steps": list(STEPS)}, "permanent")
    with tenant_transaction(agent.tenant_id):
        assert Practice.objects.get(memory_id=revised.id).successes == 1


def test_a_revised_fact_keeps_confidence_and_sources(beater: Beater, agent: Agent) -> None:
    source = Source(kind="document", reference="pilot.pdf", trust=0.9)
    memory_id = known(agent, "The reef is deep.", SemanticDetail(confidence=0.5, sources=(source,)))
    judged = {"verdict": "revise", "content": "The reef is ten fathoms deep.", "reason": "clearer"}
    beater.beat(reply_of(actions=[action_of("maintain", target="memory", id=str(memory_id), **judged)]))
    revised = made(agent)
    assert revised.detail["confidence"] == 0.5
    assert "pilot.pdf" in [written["reference"] for written in revised.detail["sources"]]
    assert revised.trust <= 0.5
