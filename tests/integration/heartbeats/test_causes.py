"""What an agent did is related to what came of it, by rule."""

from __future__ import annotations

from uuid import UUID

import pytest

from apps.agents.models import Agent, Percept
from apps.contacts.models import OutboxMessage
from apps.heartbeats.models import Heartbeat
from apps.memories.models import Edge
from apps.tenants.scope import tenant_transaction
from tests.factories.contacts import OutboxMessageFactory
from tests.integration.heartbeats.beater import Beater
from tests.integration.heartbeats.conftest import REST


def memory_of_last(agent: Agent) -> UUID:
    """Return the memory of the agent's latest heartbeat."""
    with tenant_transaction(agent.tenant_id):
        found = Heartbeat.objects.filter(agent_id=agent.id, memory__isnull=False).latest("started_at")
        assert found.memory_id is not None
        return UUID(str(found.memory_id))


def causes(agent: Agent) -> set[tuple[UUID, UUID]]:
    with tenant_transaction(agent.tenant_id):
        edges = Edge.objects.filter(agent_id=agent.id, relation="causes")
        return set(edges.values_list("source_id", "target_id"))


def met(agent: Agent, kind: str, **detail: str) -> None:
    with tenant_transaction(agent.tenant_id):
        Percept.objects.create(
            tenant_id=agent.tenant_id, agent_id=agent.id, kind=kind, content="It came back.", detail=detail
        )


@pytest.mark.parametrize("kind", ["action_result", "timeout"])
def test_a_step_that_was_given_up_causes_what_follows(beater: Beater, agent: Agent, kind: str) -> None:
    beater.beat(REST)
    did = memory_of_last(agent)
    met(agent, kind)
    beater.beat(REST)
    assert causes(agent) == {(did, memory_of_last(agent))}


def test_a_message_causes_its_answer(beater: Beater, agent: Agent) -> None:
    beater.beat(REST)
    did = memory_of_last(agent)
    with tenant_transaction(agent.tenant_id):
        wrote = Heartbeat.objects.get(agent_id=agent.id, memory_id=did)
        message: OutboxMessage = OutboxMessageFactory(agent=agent, heartbeat_id=wrote.id)
    beater.beat(REST)
    met(agent, "user_message", message=str(message.id))
    beater.beat(REST)
    assert causes(agent) == {(did, memory_of_last(agent))}


def test_other_percepts_have_no_cause(beater: Beater, agent: Agent) -> None:
    beater.beat(REST)
    met(agent, "environment")
    beater.beat(REST)
    assert causes(agent) == set()
