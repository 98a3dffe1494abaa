"""Memories that a person teaches, days later: a procedure is followed, and a belief gives way to a fact."""

from __future__ import annotations

import json
from datetime import timedelta
from uuid import UUID

from django.db.models import F

from apps.agents.models import Agent
from apps.contacts.services.chat import exchange_turns, open_session
from apps.goals.models import Goal, Intent
from apps.goals.services.goals import create_goal
from apps.heartbeats.models import Heartbeat
from apps.heartbeats.services.calls.calls import execute_call
from apps.memories.models import Memory, Practice
from apps.memories.services.graph.traversal import find_causes
from apps.memories.services.store.create import Creation, create_memories
from apps.selves.models import Belief, Proposal
from apps.selves.services.beliefs import add_belief
from apps.selves.services.proposals import accept
from apps.tenants.scope import tenant_transaction
from arbor.clock import SystemClock
from arbor.goals.values import GoalState
from arbor.memory.details import Detail, ProceduralDetail, SemanticDetail
from arbor.memory.relations import GraphNode, GraphNodeKind
from arbor.selves.values import BeliefCategory, NewBelief
from tests.integration.heartbeats.conftest import REST, run_heartbeat
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import HeartbeatRunner, Script, action_of, reply_of

TITLE = "How to clear the fog horn of ice"
STEPS = ("Switch the horn off", "Warm the cone", "Wipe it dry")
SHOWN = "steps: 1. Switch the horn off; 2. Warm the cone; 3. Wipe it dry"
DAYS = timedelta(days=5)


def teach(agent: Agent, content: str, detail: Detail) -> UUID:
    """Give the agent a memory, as `arbor memory add` does; return its id."""
    creation = Creation(content=content, detail=detail, source="operator")
    return create_memories(
        tenant_id=agent.tenant_id, agent_id=agent.id, creations=[creation], actor="cli:nora"
    ).ids[0]


def move_into_past(agent: Agent) -> None:
    """Move the agent's memories and heartbeats five days into the past."""
    with tenant_transaction(agent.tenant_id):
        Memory.objects.filter(agent_id=agent.id).update(
            occurred_at=F("occurred_at") - DAYS, created_at=F("created_at") - DAYS
        )
        Heartbeat.objects.filter(agent_id=agent.id).update(started_at=F("started_at") - DAYS)


def ask(agent: Agent, scripted: Script, text: str) -> str:
    """Ask the agent in a conversation; return the prompt of its turn."""
    model = scripted(json.dumps({"thinking": "", "reply": "First switch it off."}))
    with tenant_transaction(agent.tenant_id):
        session = open_session(agent_id=agent.id, person="cli:nora")
    exchange_turns(tenant_id=agent.tenant_id, session_id=session.id, text=text, execute=execute_call)
    return str(model.requests[0].messages[0].content)


def test_a_taught_procedure_is_recalled_followed_and_counted(
    heartbeats: HeartbeatRunner, agent: Agent, scripted: Script
) -> None:
    memory_id = teach(agent, TITLE, ProceduralDetail(steps=STEPS))
    with tenant_transaction(agent.tenant_id):
        Goal.objects.filter(agent_id=agent.id).delete()
        goal = create_goal(agent_id=agent.id, title="Clear the fog horn of ice", state=GoalState.ACTIVE)
    heartbeats.run(REST)
    move_into_past(agent)

    assert SHOWN in ask(agent, scripted, "There is ice in the fog horn. What do I do?")

    step = {"action": "reflect", "description": "Clear the horn", "follows": str(memory_id)}
    plan = reply_of(decompositions=[{"goal_id": str(goal.id), "intentions": [step]}])
    assert SHOWN in heartbeats.run(plan)
    with tenant_transaction(agent.tenant_id):
        intent = Intent.objects.get(agent_id=agent.id, status="pending")
    done = reply_of(
        actions=[action_of("reflect", str(intent.id), insight="Off, warm, dry: the horn is clear.")]
    )
    assert f"follows {memory_id}" in heartbeats.run(done)

    with tenant_transaction(agent.tenant_id):
        practice = Practice.objects.get(memory_id=memory_id)
        intent.refresh_from_db()
    assert (practice.successes, practice.failures, intent.status) == (1, 0, "completed")
    assert "worked 1 of 1 time" in ask(agent, scripted, "And the ice in the fog horn now?")


def test_a_procedure_is_followed_and_counted_without_a_model(agent: Agent, fleet: Fleet) -> None:
    memory_id = teach(agent, TITLE, ProceduralDetail(steps=STEPS))
    with tenant_transaction(agent.tenant_id):
        Goal.objects.filter(agent_id=agent.id).delete()
        create_goal(agent_id=agent.id, title="Clear the fog horn of ice", state=GoalState.ACTIVE)
    for _ in range(6):
        run_heartbeat(fleet, agent)
    with tenant_transaction(agent.tenant_id):
        intent = Intent.objects.get(agent_id=agent.id, procedure_id=memory_id)
        practice = Practice.objects.get(memory_id=memory_id)
    assert (intent.status, practice.successes, practice.failures) == ("completed", 1, 0)


def test_a_belief_gives_way_to_a_fact_which_is_its_cause(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        Belief.objects.filter(agent_id=agent.id).delete()
        new = NewBelief(
            statement="Seals leave the bay in winter.",
            category=BeliefCategory.WORLD,
            confidence=0.6,
            stability=0.2,
            source="operator",
        )
        belief = add_belief(agent_id=agent.id, belief=new, actor="cli:nora")
    fact = teach(agent, "Forty seals were in the bay in January.", SemanticDetail())
    move_into_past(agent)

    against = action_of("connect", from_id=str(fact), to_id=str(belief.id), relation="contradicts")
    heartbeats.run(reply_of(actions=[against]))
    prompt = heartbeats.run(REST)
    assert f"belief [{belief.id}] Seals leave the bay in winter. — memory [{fact}] Forty seals" in prompt
    with tenant_transaction(agent.tenant_id):
        proposal = Proposal.objects.get(agent_id=agent.id, kind="belief", status="pending")
        now = SystemClock().now()
        accept(proposal_id=proposal.id, decided_by="operator:nora", reason="I counted them", now=now)
        belief.refresh_from_db()
        causes = find_causes(agent_id=agent.id, node=GraphNode(GraphNodeKind.BELIEF, belief.id)).found
    assert belief.confidence < 0.6
    assert [(cause.id, cause.path[0].relation) for cause in causes] == [(fact, "learned_from")]
    assert "## What speaks against your beliefs" not in heartbeats.run(REST)
