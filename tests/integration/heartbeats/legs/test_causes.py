"""Relations from an agent's actions to their outcomes, stored by rule."""

from __future__ import annotations

from uuid import UUID

import pytest

from apps.agents.models import Agent, Percept
from apps.contacts.models import OutboxMessage
from apps.heartbeats.models import Heartbeat
from apps.memories.models import Edge
from apps.tenants.scope import tenant_transaction
from tests.factories.contacts import OutboxMessageFactory
from tests.integration.heartbeats.conftest import REST
from tests.integration.heartbeats.heartbeat_runner import HeartbeatRunner


def memory_of_last(agent: Agent) -> UUID:
    """Return the memory of the agent's latest heartbeat."""
    with tenant_transaction(agent.tenant_id):
        latest = Heartbeat.objects.filter(agent_id=agent.id, memory__isnull=False).latest("started_at")
        assert latest.memory_id is not None
        return UUID(str(latest.memory_id))


def causes_of(agent: Agent) -> set[tuple[UUID, UUID]]:
    """Return the ids of causes and effects among the agent's memories."""
    with tenant_transaction(agent.tenant_id):
        edges = Edge.objects.filter(agent_id=agent.id, relation="causes")
        return set(edges.values_list("source_id", "target_id"))


def store_percept(agent: Agent, kind: str, **detail: str) -> None:
    with tenant_transaction(agent.tenant_id):
        Percept.objects.create(
            tenant_id=agent.tenant_id, agent_id=agent.id, kind=kind, content="It came back.", detail=detail
        )


@pytest.mark.parametrize("kind", ["action_result", "timeout"])
def test_a_step_that_was_given_up_causes_what_follows(
    heartbeats: HeartbeatRunner, agent: Agent, kind: str
) -> None:
    heartbeats.run(REST)
    cause_id = memory_of_last(agent)
    store_percept(agent, kind)
    heartbeats.run(REST)
    assert causes_of(agent) == {(cause_id, memory_of_last(agent))}


def test_a_message_causes_its_answer(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    heartbeats.run(REST)
    cause_id = memory_of_last(agent)
    with tenant_transaction(agent.tenant_id):
        heartbeat = Heartbeat.objects.get(agent_id=agent.id, memory_id=cause_id)
        message: OutboxMessage = OutboxMessageFactory(agent=agent, heartbeat_id=heartbeat.id)
    heartbeats.run(REST)
    store_percept(agent, "user_message", message=str(message.id))
    heartbeats.run(REST)
    assert causes_of(agent) == {(cause_id, memory_of_last(agent))}


def test_other_percepts_have_no_cause(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    heartbeats.run(REST)
    store_percept(agent, "environment")
    heartbeats.run(REST)
    assert causes_of(agent) == set()
