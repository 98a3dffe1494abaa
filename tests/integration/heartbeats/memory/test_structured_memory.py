"""Details of memories, from storage to the prompt."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from apps.agents.models import Agent
from apps.agents.services.percepts import perceive
from apps.goals.models import Goal, Intent
from apps.goals.services.goals import create_goal
from apps.memories.models import Memory, Practice
from apps.memories.services.store.create import Creation, create_memories
from apps.memories.services.store.provenance import record_outcome
from apps.tenants.scope import tenant_transaction
from arbor.goals.values import GoalState
from arbor.ids import uuid7
from arbor.memory.details import Detail, EpisodicDetail, ProceduralDetail, SemanticDetail
from arbor.memory.trust import Source
from tests.integration.heartbeats.conftest import REST, last_heartbeat
from tests.integration.heartbeats.heartbeat_runner import HeartbeatRunner, action_of, reply_of, store_memory

TITLE = "How to light the lamp of the lighthouse"
STEPS = ("Trim the wick", "Open the vent", "Light it")
SHOWN = "steps: 1. Trim the wick; 2. Open the vent; 3. Light it"


def store_detailed(agent: Agent, content: str, detail: Detail) -> UUID:
    """Store a memory with its detail; return its id."""
    return create_memories(
        tenant_id=agent.tenant_id, agent_id=agent.id, creations=[Creation(content=content, detail=detail)]
    ).ids[0]


def test_a_prompt_shows_the_steps_of_what_is_recalled(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    store_detailed(agent, TITLE, ProceduralDetail(steps=STEPS))
    with tenant_transaction(agent.tenant_id):
        perceive(
            agent_id=agent.id,
            kind="environment",
            content="Please light the lamp of the lighthouse",
            actor="test",
        )
    prompt = heartbeats.run(REST)
    assert f"{TITLE}\n    {SHOWN}\n    not tried yet" in prompt


def test_the_results_of_a_recall_show_the_steps(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    store_detailed(agent, TITLE, ProceduralDetail(steps=STEPS))
    prompt = heartbeats.run(reply_of(actions=[action_of("recall", query="light the lamp")]), REST)
    assert f"{TITLE}\n        {SHOWN}\n        not tried yet" in prompt


def test_a_prompt_shows_the_outcome_of_a_recent_event(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    store_detailed(
        agent, "The storm came.", EpisodicDetail(action="closed the shutters", result="nothing broke")
    )
    prompt = heartbeats.run(REST)
    assert "The storm came.\n    done: closed the shutters\n    outcome: nothing broke" in prompt


def new_memory_of(agent: Agent) -> Memory:
    """Check that the only action of the latest heartbeat succeeded, and return the memory that it stored."""
    (action,) = last_heartbeat(agent).actions
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
    heartbeats: HeartbeatRunner, agent: Agent, given: dict[str, Any], kind: str, stored: dict[str, Any]
) -> None:
    heartbeats.run(reply_of(actions=[action_of("remember", content=TITLE, **given)]))
    memory = new_memory_of(agent)
    assert (memory.type, memory.detail) == (kind, stored)


def test_a_fact_keeps_its_context_beside_its_source(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    heartbeats.run(
        reply_of(actions=[action_of("remember", content="The oil lasts a night.", context="in winter")])
    )
    memory = new_memory_of(agent)
    assert (memory.type, memory.detail["context"]) == ("semantic", "in winter")
    assert [source["kind"] for source in memory.detail["sources"]] == ["heartbeat"]


def test_a_revised_procedure_keeps_its_steps_and_outcomes(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    memory_id = store_detailed(agent, TITLE, ProceduralDetail(steps=STEPS))
    with tenant_transaction(agent.tenant_id):
        record_outcome(agent_id=agent.id, memory_id=memory_id, success=True)
        Memory.objects.filter(id=memory_id).update(retention="permanent")
    params = {"target": "memory", "id": str(memory_id)}
    prompt = heartbeats.run(reply_of(actions=[action_of("maintain", **params)]), REST)
    assert "worked 1 of 1 time" in prompt
    verdict = {"verdict": "revise", "content": "How to light the old lamp", "reason": "there are two"}
    heartbeats.run(reply_of(actions=[action_of("maintain", **params, **verdict)]))
    revised = new_memory_of(agent)
    assert (revised.id != memory_id, revised.content) == (True, "How to light the old lamp")
    assert (revised.detail, revised.retention) == ({"steps": list(STEPS)}, "permanent")
    with tenant_transaction(agent.tenant_id):
        assert Practice.objects.get(memory_id=revised.id).successes == 1


def test_a_revised_fact_keeps_confidence_and_sources(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    source = Source(kind="document", reference="pilot.pdf", trust=0.9)
    memory_id = store_detailed(agent, "The reef is deep.", SemanticDetail(confidence=0.5, sources=(source,)))
    verdict = {"verdict": "revise", "content": "The reef is ten fathoms deep.", "reason": "clearer"}
    heartbeats.run(reply_of(actions=[action_of("maintain", target="memory", id=str(memory_id), **verdict)]))
    revised = new_memory_of(agent)
    assert revised.detail["confidence"] == 0.5
    assert "pilot.pdf" in [written["reference"] for written in revised.detail["sources"]]
    assert revised.trust <= 0.5


def count_outcomes(memory_id: UUID, agent: Agent) -> tuple[int, int]:
    """Return the successes and failures of a procedure."""
    with tenant_transaction(agent.tenant_id):
        practice = Practice.objects.filter(memory_id=memory_id).first()
        return (practice.successes, practice.failures) if practice else (0, 0)


def plan_step(heartbeats: HeartbeatRunner, agent: Agent, action: str, follows: str) -> str:
    """Plan one step that follows a memory; return the id of its intent."""
    with tenant_transaction(agent.tenant_id):
        Goal.objects.filter(agent_id=agent.id).delete()
        goal = create_goal(agent_id=agent.id, title="Light the lamp", state=GoalState.ACTIVE)
    step = {"action": action, "description": "Light it now", "follows": follows}
    heartbeats.run(reply_of(decompositions=[{"goal_id": str(goal.id), "intentions": [step]}]))
    with tenant_transaction(agent.tenant_id):
        return str(Intent.objects.get(agent_id=agent.id, status="pending").id)


def test_an_intent_that_follows_a_procedure_counts_its_outcome(
    heartbeats: HeartbeatRunner, agent: Agent
) -> None:
    memory_id = store_detailed(agent, TITLE, ProceduralDetail(steps=STEPS))
    intent_id = plan_step(heartbeats, agent, "connect", str(memory_id))

    # No memory has these ids, so the attempt fails.
    wrong = action_of("connect", intent_id, from_id=str(uuid7()), to_id=str(uuid7()), relation="causes")
    prompt = heartbeats.run(reply_of(actions=[wrong]))
    assert f"follows {memory_id}" in prompt
    assert f"    {TITLE}\n    {SHOWN}\n    not tried yet" in prompt
    assert count_outcomes(memory_id, agent) == (0, 1)

    other = store_memory(agent, "The oil is in the cellar.")
    right = action_of("connect", intent_id, from_id=other, to_id=str(memory_id), relation="supports")
    assert "worked 0 of 1 time" in heartbeats.run(reply_of(actions=[right]))
    assert count_outcomes(memory_id, agent) == (1, 1)


def test_a_step_that_follows_an_unknown_memory_follows_none(
    heartbeats: HeartbeatRunner, agent: Agent
) -> None:
    intent_id = plan_step(heartbeats, agent, "reflect", str(uuid7()))
    assert "there is none with this one" in str(last_heartbeat(agent).dropped)
    heartbeats.run(reply_of(actions=[action_of("reflect", intent_id, insight="It burns.")]))
    with tenant_transaction(agent.tenant_id):
        assert Intent.objects.get(id=intent_id).procedure_id is None
        assert not Practice.objects.exists()


def test_a_step_follows_no_memory_that_is_no_procedure(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    note = store_memory(agent, "The lamp is old.")
    intent_id = plan_step(heartbeats, agent, "reflect", note)
    assert "a step follows a procedural memory of yours" in str(last_heartbeat(agent).dropped)
    heartbeats.run(reply_of(actions=[action_of("reflect", intent_id, insight="It burns.")]))
    with tenant_transaction(agent.tenant_id):
        intent = Intent.objects.get(id=intent_id)
        assert (intent.status, intent.procedure_id) == ("completed", None)
        assert not Practice.objects.exists()
