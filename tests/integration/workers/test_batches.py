"""Messages that carry several agents of one tenant."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest
import redis
from celery import Celery
from django.db import transaction

from apps.agents.models import Agent
from apps.heartbeats.models import HeartbeatStatus
from apps.queues import (
    ALSO,
    MAX_BATCH_SIZE,
    TENANT_HEADER,
    Queue,
    Task,
    TaskMessage,
    enqueue,
    publish_batched,
)
from apps.tenants.models import Tenant
from tests.integration.heartbeats.conftest import REST, begin_heartbeat, heartbeats_of, make_due
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script
from workers import tasks

HERE, THERE = uuid4(), uuid4()


def _hint(tenant_id: UUID, number: int) -> TaskMessage:
    arguments = {"agent_id": str(UUID(int=number)), "epoch": number}
    return TaskMessage(task=Task.ADVANCE, tenant_id=tenant_id, arguments=arguments, shown=f"agent={number}")


def _queued_messages(broker: redis.Redis) -> list[tuple[str, list[int]]]:
    """Return the messages in the order of delivery: their tenants and epochs."""
    messages = []
    for raw in reversed(broker.lrange(f"arbor:{Queue.HEARTBEAT}", 0, -1)):
        message: dict[str, Any] = json.loads(raw)
        _args, kwargs, _embed = json.loads(base64.b64decode(message["body"]))
        epochs = [kwargs["epoch"], *(arguments["epoch"] for arguments in kwargs.get(ALSO, ()))]
        messages.append((message["headers"][TENANT_HEADER], epochs))
    return messages


def test_agents_of_one_tenant_share_a_message_and_tenants_alternate(
    database: None, celery: Celery, broker: redis.Redis
) -> None:
    celery.set_current()
    many = MAX_BATCH_SIZE + 2
    with transaction.atomic():
        enqueue(*(_hint(HERE, number) for number in range(many)), _hint(THERE, 99))
        assert _queued_messages(broker) == []
    assert _queued_messages(broker) == [
        (str(HERE), list(range(MAX_BATCH_SIZE))),
        (str(THERE), [99]),
        (str(HERE), list(range(MAX_BATCH_SIZE, many))),
    ]


def test_a_lost_agent_gets_a_message_of_its_own(celery: Celery, broker: redis.Redis) -> None:
    celery.set_current()
    publish_batched([_hint(HERE, 1), replace(_hint(HERE, 2), alone=True), _hint(HERE, 3)])
    assert sorted(_queued_messages(broker)) == [(str(HERE), [1, 3]), (str(HERE), [2])]


def test_each_agent_of_a_message_has_its_own_heartbeat(
    fleet: Fleet, agent: Agent, celery: Celery, scripted: Script
) -> None:
    scripted(REST)
    begin_heartbeat(fleet, agent)
    message = fleet.pop_message()
    stranger = {"agent_id": str(uuid4()), "epoch": 1}
    celery.tasks[Task.ADVANCE.value].apply(
        kwargs={**stranger, ALSO: [message.arguments]},
        headers={TENANT_HEADER: str(agent.tenant_id)},
        throw=True,
    )
    assert [heartbeat.status for heartbeat in heartbeats_of(agent)] == [HeartbeatStatus.WAITING]


def test_calls_of_a_message_run_at_once_with_threads(
    fleet: Fleet,
    tenant: Tenant,
    new_agent: Callable[..., Agent],
    celery: Celery,
    scripted: Script,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agents = [new_agent(tenant, name=f"agent {number}") for number in range(3)]
    together = threading.Barrier(3, timeout=60)

    def wait_for_all(_request: object) -> str:
        together.wait()
        return REST

    scripted(wait_for_all, repeat=True)
    for agent in agents:
        make_due(agent)
    fleet.dispatch()
    for _ in agents:
        fleet.step()
    first, *others = [fleet.pop_message() for _ in agents]
    with ThreadPoolExecutor(3) as pool:
        monkeypatch.setattr(tasks, "_threads", pool)
        celery.tasks[Task.EXECUTE_CALL.value].apply(
            kwargs={**first.arguments, ALSO: [message.arguments for message in others]},
            headers={TENANT_HEADER: str(tenant.id)},
            throw=True,
        )
    fleet.run()
    assert [heartbeat.status for agent in agents for heartbeat in heartbeats_of(agent)] == [
        HeartbeatStatus.DONE
    ] * 3


def test_calls_of_a_message_run_in_turn_without_threads(
    fleet: Fleet, agent: Agent, celery: Celery, scripted: Script
) -> None:
    scripted(REST)
    begin_heartbeat(fleet, agent, steps=1)
    message = fleet.pop_message()
    celery.tasks[Task.EXECUTE_CALL.value].apply(
        kwargs={"call_id": str(uuid4()), ALSO: [message.arguments]},
        headers={TENANT_HEADER: str(agent.tenant_id)},
        throw=True,
    )
    fleet.run()
    assert [heartbeat.status for heartbeat in heartbeats_of(agent)] == [HeartbeatStatus.DONE]
