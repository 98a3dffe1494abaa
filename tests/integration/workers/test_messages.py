"""Contents of messages: task names, queues, tenants, ids and names, no secrets."""

from __future__ import annotations

import base64
import json
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
import redis
from celery import Celery
from django.db import transaction

from apps.agents.models import Agent, ScheduleState
from apps.heartbeats.models import HeartbeatStatus
from apps.queues import QUEUE_OF, TENANT_HEADER, Queue, Task, TaskMessage, enqueue, publish
from apps.tenants.models import Tenant
from arbor.errors import TenantRequired
from config.pools import POOLS
from tests.integration.heartbeats.conftest import REST, begin_heartbeat, heartbeats_of, schedule_of
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script
from workers.schedule import entries


def test_every_task_name_has_a_task_and_every_task_a_name(celery: Celery) -> None:
    known = {name for name in celery.tasks if not name.startswith("celery.")}
    assert known == {task.value for task in Task}


def test_every_task_has_a_queue_and_every_queue_a_pool() -> None:
    assert set(QUEUE_OF) == set(Task)
    served = [queue for pool in POOLS for queue in pool.queues]
    assert sorted(served) == sorted(queue.value for queue in Queue)


def test_the_scheduler_sends_few_static_hints_that_expire(celery: Celery) -> None:
    sent = entries()
    assert celery.conf.beat_schedule == sent
    assert Task.DISPATCH in sent
    assert len(sent) <= 33
    for name, entry in sent.items():
        assert entry["task"] == name
        assert entry["options"]["queue"] == QUEUE_OF[Task(name)]
        assert "args" not in entry
        assert "kwargs" not in entry
        assert entry["options"]["expires"] >= entry["schedule"] / timedelta(seconds=1)


@pytest.mark.parametrize("task", list(Task))
def test_a_message_waits_in_the_queue_of_its_task(task: Task, broker: redis.Redis) -> None:
    assert publish(TaskMessage(task=task, tenant_id=uuid4(), arguments={}, shown=""))
    lengths = {queue: broker.llen(f"arbor:{queue}") for queue in Queue}
    assert lengths == {queue: int(queue is QUEUE_OF[task]) for queue in Queue}


def test_an_unsent_message_does_not_block_the_next_one(
    database: None, celery: Celery, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sent: list[str] = []

    def refuse_the_first(name: str, **_: Any) -> None:
        if name == Task.ADVANCE:
            raise redis.ResponseError("OOM command not allowed when used memory > 'maxmemory'")
        sent.append(name)

    monkeypatch.setattr(celery, "send_task", refuse_the_first)
    celery.set_current()
    with transaction.atomic():
        for task in (Task.ADVANCE, Task.EXECUTE_CALL):
            enqueue(TaskMessage(task=task, tenant_id=uuid4(), arguments={}, shown=""))
    assert sent == [Task.EXECUTE_CALL]
    assert "OOM command not allowed" in caplog.text


def _queued_envelope(broker: redis.Redis, queue: Queue) -> dict[str, Any]:
    (raw,) = broker.lrange(f"arbor:{queue}", 0, -1)
    message: dict[str, Any] = json.loads(raw)
    return message


def test_a_message_names_its_agent_for_people_and_carries_ids_only(
    fleet: Fleet, agent: Agent, scripted: Script, broker: redis.Redis
) -> None:
    scripted(REST)
    begin_heartbeat(fleet, agent)
    messages = [fleet.pop_message()]
    fleet.deliver(messages[0])
    messages.append(fleet.pop_message())
    for message in messages:
        publish(message)
        envelope = _queued_envelope(broker, QUEUE_OF[message.task])
        assert envelope["headers"]["argsrepr"].startswith(f"agent={agent.name} ")
        assert envelope["headers"]["kwargsrepr"] == envelope["headers"]["argsrepr"]
        assert envelope["headers"][TENANT_HEADER] == str(agent.tenant_id)
        _args, kwargs, _embed = json.loads(base64.b64decode(envelope["body"]))
        for name, value in kwargs.items():
            assert name in {"agent_id", "call_id", "epoch"}
            assert isinstance(value, int) or UUID(value)


@pytest.mark.parametrize("task", [Task.ADVANCE, Task.EXECUTE_CALL, Task.DELIVER])
def test_a_message_without_a_tenant_is_refused(task: Task, celery: Celery) -> None:
    arguments: dict[Task, dict[str, Any]] = {
        Task.ADVANCE: {"agent_id": str(uuid4()), "epoch": 1},
        Task.EXECUTE_CALL: {"call_id": str(uuid4())},
        Task.DELIVER: {"message_id": str(uuid4())},
    }
    with pytest.raises(TenantRequired, match=f"a message for {task} came without its header {TENANT_HEADER}"):
        celery.tasks[task.value].apply(kwargs=arguments[task], throw=True)


def _deliver(celery: Celery, message: TaskMessage, *, tenant_id: UUID) -> None:
    celery.tasks[message.task.value].apply(
        kwargs=message.arguments, headers={TENANT_HEADER: str(tenant_id)}, throw=True
    )


def test_a_forged_tenant_finds_nothing_to_do(
    fleet: Fleet,
    agent: Agent,
    other_tenant: Tenant,
    scripted: Script,
    celery: Celery,
) -> None:
    model = scripted(REST)
    begin_heartbeat(fleet, agent)
    advance = fleet.pop_message()
    _deliver(celery, advance, tenant_id=other_tenant.id)
    assert heartbeats_of(agent) == []
    assert schedule_of(agent).state == ScheduleState.QUEUED
    _deliver(celery, advance, tenant_id=agent.tenant_id)
    execution = fleet.pop_message()
    _deliver(celery, execution, tenant_id=other_tenant.id)
    assert model.requests == []
    _deliver(celery, execution, tenant_id=agent.tenant_id)
    _deliver(celery, fleet.pop_message(), tenant_id=agent.tenant_id)
    (heartbeat,) = heartbeats_of(agent)
    assert heartbeat.status == HeartbeatStatus.DONE
