"""Messages that carry the work of several agents: what goes together, and that each is done by itself."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest
import redis
from celery import Celery
from structlog.testing import capture_logs

from apps.agents.models import Agent
from apps.heartbeats.models import HeartbeatStatus
from apps.queues import ALSO, MOST_TOGETHER, TENANT_HEADER, Message, Queue, Task, gathered, publish
from tests.integration.heartbeats.conftest import REST, beats_of, make_due
from tests.integration.heartbeats.fleet import Fleet
from workers import batches
from workers.batches import Teller, at_once, in_turn

HERE, THERE = uuid4(), uuid4()


def _hint(tenant_id: UUID, number: int) -> Message:
    arguments = {"agent_id": str(UUID(int=number)), "epoch": number}
    return Message(task=Task.ADVANCE, tenant_id=tenant_id, arguments=arguments, shown=f"agent={number}")


def _waiting(broker: redis.Redis) -> list[tuple[str, list[int]]]:
    """Return the messages in the order in which they are taken: whose they are, and the epochs they carry."""
    found = []
    for raw in reversed(broker.lrange(f"arbor:{Queue.HEARTBEAT}", 0, -1)):  # type: ignore[arg-type]
        message: dict[str, Any] = json.loads(raw)
        _args, kwargs, _embed = json.loads(base64.b64decode(message["body"]))
        epochs = [kwargs["epoch"], *(each["epoch"] for each in kwargs.get(ALSO, ()))]
        found.append((message["headers"][TENANT_HEADER], epochs))
    return found


def test_what_is_told_together_goes_together_and_tenants_take_turns(
    celery: Celery, broker: redis.Redis
) -> None:
    celery.set_current()
    many = MOST_TOGETHER + 2
    with gathered():
        for number in range(many):
            publish(_hint(HERE, number))
        publish(_hint(THERE, 99))
        assert _waiting(broker) == []
    assert _waiting(broker) == [
        (str(HERE), list(range(MOST_TOGETHER))),
        (str(THERE), [99]),
        (str(HERE), list(range(MOST_TOGETHER, many))),
    ]


def test_what_was_lost_goes_alone(celery: Celery, broker: redis.Redis) -> None:
    celery.set_current()
    with gathered():
        publish(_hint(HERE, 1))
        publish(replace(_hint(HERE, 2), alone=True))
        assert _waiting(broker) == [(str(HERE), [2])]


def test_what_threads_tell_is_gathered_and_published(celery: Celery, broker: redis.Redis) -> None:
    celery.set_current()
    teller = Teller()
    teller.gather(_hint(HERE, 1))
    teller.gather(_hint(HERE, 2))
    teller.flush()
    assert sorted(each for _, epochs in _waiting(broker) for each in epochs) == [1, 2]


def test_the_fault_of_one_keeps_no_other_from_its_turn() -> None:
    done: list[int] = []

    def work(number: int) -> None:
        if number == 1:
            raise ZeroDivisionError
        done.append(number)

    with pytest.raises(ZeroDivisionError):
        in_turn(work, [{"number": number} for number in range(3)])
    assert done == [0, 2]


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let this process be one of many threads."""
    with ThreadPoolExecutor(3) as pool:
        monkeypatch.setattr(batches, "_threads", pool)
        yield


def test_the_fault_of_the_first_hides_no_fault_of_the_others(threads: None) -> None:
    first_failed = threading.Event()
    done: list[int] = []

    def work(number: int) -> None:
        if number == 0:
            first_failed.set()
            raise ZeroDivisionError
        # The others come to their end only then.
        assert first_failed.wait(10)
        if number == 1:
            raise KeyError(number)
        if number == 2:
            raise LookupError(number)
        done.append(number)

    with capture_logs() as logs, pytest.raises(LookupError, match="2"):
        at_once(work, [{"number": number} for number in range(4)])
    faults = sorted(each["number"] for each in logs if each["event"] == "fault_in_batch")
    assert (faults, done) == ([0, 1, 2], [3])


def test_the_fault_of_the_first_alone_is_raised_when_the_others_are_done(threads: None) -> None:
    done: list[int] = []

    def work(number: int) -> None:
        if number == 0:
            raise ZeroDivisionError
        done.append(number)

    with pytest.raises(ZeroDivisionError):
        at_once(work, [{"number": number} for number in range(3)])
    assert sorted(done) == [1, 2]


def test_each_agent_of_a_message_walks_its_own_heartbeat(
    fleet: Fleet, agent: Agent, celery: Celery, scripted: Any
) -> None:
    scripted(REST)
    make_due(agent)
    fleet.dispatch()
    told = fleet.take()
    stranger = {"agent_id": str(uuid4()), "epoch": 1}
    celery.tasks[Task.ADVANCE.value].apply(
        kwargs={**stranger, ALSO: [told.arguments]},
        headers={TENANT_HEADER: str(agent.tenant_id)},
        throw=True,
    )
    assert [beat.status for beat in beats_of(agent)] == [HeartbeatStatus.WAITING]
