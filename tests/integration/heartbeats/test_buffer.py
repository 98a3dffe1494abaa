"""Buffer items of heartbeats: kept for a day, shown where they fit, and promoted if they mattered."""

from __future__ import annotations

import pytest

from apps.agents.models import Agent
from apps.fleet.contact import message_agent
from apps.goals.models import Goal
from apps.goals.services.goals import create_goal
from apps.memories.models import BufferItem, Memory
from apps.memories.services.retention.buffer import promote_buffers
from apps.tenants.scope import tenant_transaction
from arbor.goals.values import GoalState
from tests.integration.heartbeats.conftest import REST, heartbeats_of
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import HeartbeatRunner, Script

SAID = "The harbour pilot is called Ines Bravo, and she sails on Thursdays."
HEADING = "## Heard lately, not yet remembered"


@pytest.fixture
def heartbeats(fleet: Fleet, agent: Agent, scripted: Script) -> HeartbeatRunner:
    """Return the runner of the agent's heartbeats; its only goal is to find the pilot."""
    with tenant_transaction(agent.tenant_id):
        Goal.objects.filter(agent_id=agent.id).delete()
        create_goal(agent_id=agent.id, title="Ask the harbour pilot Ines Bravo", state=GoalState.ACTIVE)
    return HeartbeatRunner(fleet, agent, scripted)


def _message(agent: Agent, text: str) -> None:
    with tenant_transaction(agent.tenant_id):
        message_agent(agent_id=agent.id, text=text, actor="user:ada")


def _buffer_items(agent: Agent) -> list[BufferItem]:
    with tenant_transaction(agent.tenant_id):
        return list(BufferItem.objects.filter(agent_id=agent.id))


def test_a_message_in_the_buffer_is_shown_again(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    _message(agent, SAID)
    assert HEADING not in heartbeats.run(REST)
    (item,) = _buffer_items(agent)
    assert (item.content, item.role, item.accesses) == (SAID, "user", 0)
    assert item.source == f"heartbeat:{heartbeats_of(agent)[-1].id}"
    prompt = heartbeats.run(REST)
    assert SAID in prompt.split(HEADING)[1].split("##")[0]
    assert _buffer_items(agent)[0].accesses == 1


def test_a_buffer_item_shown_often_is_remembered(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    _message(agent, SAID)
    for _ in range(4):
        heartbeats.run(REST)
    assert promote_buffers().done == 1
    with tenant_transaction(agent.tenant_id):
        assert Memory.objects.get(content=SAID).role == "user"
    prompt = heartbeats.run(REST)
    assert HEADING not in prompt
    assert SAID in prompt


def test_a_request_to_remember_is_stored_with_full_importance(
    heartbeats: HeartbeatRunner, agent: Agent
) -> None:
    _message(agent, "Remember this: the gate code is 4711.")
    heartbeats.run(REST)
    assert promote_buffers().done == 1
    with tenant_transaction(agent.tenant_id):
        assert Memory.objects.get(content__startswith="Remember this").importance == 1.0


def test_a_heartbeat_without_percepts_adds_no_buffer_item(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    heartbeats.run(REST)
    assert _buffer_items(agent) == []
