"""Recall of an agent's own heartbeats, in its prompt and in the review of its goals."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from apps.agents.models import Agent
from apps.fleet.contact import message_agent
from apps.goals.models import Goal
from apps.goals.services.goals import create_goal
from apps.memories.models import Activation, Memory
from apps.memories.services.store.remember import remember
from apps.tenants.scope import tenant_transaction
from arbor.goals.values import GoalState
from arbor.memory.values import HEARTBEATS_SESSION, NewMemory
from tests.integration.heartbeats.conftest import REST, last_heartbeat
from tests.integration.heartbeats.heartbeat_runner import HeartbeatRunner, action_of, reply_of
from tests.integration.memories.in_scope import recall_in_scope
from tests.integration.memories.recall.cache_and_scan import scanning
from tests.support.database import recorded_statements

DAYS_AT_SEA = (
    "Gulls nested upon the tower again.",
    "Bread was baked for the harbour feast.",
    "Ines repaired the winch with copper wire.",
    "Snow fell early this autumn.",
    "Nobody answered the radio tonight.",
    "Trains to town ran late.",
)
CHARTED = "The reef is bleached, so I charted its northern edge."
SECTION = "## Memories that may matter now"


def chart_the_reef_and_move_on(heartbeats: HeartbeatRunner) -> None:
    """Chart the reef in one heartbeat, then run others until a prompt no longer lists it as recent."""
    heartbeats.run(reply_of(thinking=CHARTED))
    for day in DAYS_AT_SEA:
        heartbeats.run(reply_of(thinking=day))


def relevant_of(prompt: str) -> str:
    return prompt.split(SECTION)[1].split("## ")[0]


def ask(agent: Agent, text: str) -> None:
    with tenant_transaction(agent.tenant_id):
        message_agent(agent_id=agent.id, text=text, actor="user:ann")


def test_an_agent_recalls_its_own_heartbeats(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    chart_the_reef_and_move_on(heartbeats)
    ask(agent, "What did you do about the reef?")
    prompt = heartbeats.run(REST)
    assert CHARTED in relevant_of(prompt)
    # The latest heartbeats are listed among the latest events only.
    assert DAYS_AT_SEA[-1] not in relevant_of(prompt)


def test_many_own_heartbeats_need_no_second_recall(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    heartbeats.run(REST)
    with tenant_transaction(agent.tenant_id):
        start = Memory.objects.get(session=HEARTBEATS_SESSION, position=1).occurred_at
    narratives = [
        NewMemory(
            content=f"Heartbeat {number}. Is the reef bleached, number {number}? I saw the bleached reef.",
            occurred_at=start - timedelta(hours=number),
            session=HEARTBEATS_SESSION,
            position=1000 + number,
        )
        for number in range(120)
    ]
    fact = NewMemory(content="The reef is bleached since May.", occurred_at=start - timedelta(days=30))
    others = [replace(fact, content=f"Bread number {number} was baked.") for number in range(20)]
    remember(tenant_id=agent.tenant_id, agent_id=agent.id, memories=[*narratives, fact, *others])
    ask(agent, "Is the reef bleached?")
    with scanning(), recorded_statements() as sent:
        prompt = heartbeats.run(REST)
    assert fact.content in relevant_of(prompt)
    assert len([statement for statement in sent if statement.lstrip().startswith("WITH asked AS")]) == 1


def test_a_mood_brings_back_heartbeats_that_felt_so(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    heartbeats.run(reply_of(thinking=CHARTED, concerns=["the reef dies", "nobody listens"]))
    chart_the_reef_and_move_on(heartbeats)
    with tenant_transaction(agent.tenant_id):
        worried = Memory.objects.get(session=HEARTBEATS_SESSION, position=1)
        assert worried.emotional_valence < 0
        found = recall_in_scope(agent_id=agent.id, text=CHARTED, vector=None, limit=20, mood=-1.0)
    moods = {memory.id: memory.components.mood for memory in found}
    assert moods[worried.id] == pytest.approx(0.05 * -worried.emotional_valence)


def test_the_recall_action_finds_own_heartbeats(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    chart_the_reef_and_move_on(heartbeats)
    heartbeats.run(reply_of(actions=[action_of("recall", query="the bleached reef")]))
    with tenant_transaction(agent.tenant_id):
        charted = Memory.objects.get(session=HEARTBEATS_SESSION, position=1)
    assert str(charted.id) in last_heartbeat(agent).actions[0]["memory_ids"]


def test_a_recalled_heartbeat_brings_its_goal_to_the_review(
    heartbeats: HeartbeatRunner, agent: Agent
) -> None:
    with tenant_transaction(agent.tenant_id):
        Goal.objects.filter(agent_id=agent.id, state=GoalState.ACTIVE).update(state=GoalState.BACKBURNER)
        create_goal(agent_id=agent.id, title="Sing in the choir", state=GoalState.ACTIVE)
        goal = create_goal(agent_id=agent.id, title="Map it all", state=GoalState.QUEUED)
    heartbeats.run(
        reply_of(thinking=CHARTED, goal_updates=[{"goal_id": str(goal.id), "note": "a first look"}])
    )
    for day in DAYS_AT_SEA:
        heartbeats.run(reply_of(thinking=day))
    with tenant_transaction(agent.tenant_id):
        charted = Memory.objects.get(session=HEARTBEATS_SESSION, position=1)
        Activation.objects.all().delete()
    assert "it bears on the present moment" not in heartbeats.run(REST)
    ask(agent, "Is the reef bleached?")
    assert CHARTED in relevant_of(heartbeats.run(REST))
    with tenant_transaction(agent.tenant_id):
        assert Activation.objects.filter(memory_id=charted.id).exists()
    prompt = heartbeats.run(REST)
    assert "Map it all: make it active, for it bears on the present moment." in prompt
