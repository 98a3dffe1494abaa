"""The broker's transport: one client per channel, task events in batches."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
import redis
from kombu.transport.redis import Channel

from apps.queues import Task, TaskMessage, publish
from workers.app import app
from workers.broker import EVENTS_BUFFERED_S, Consumer, Transport


class Hub:
    """An event loop that records the calls to run later."""

    def __init__(self) -> None:
        self.later: list[tuple[float, Any]] = []

    def call_later(self, delay: float, callback: Any) -> None:
        self.later.append((delay, callback))


@pytest.mark.usefixtures("broker")
def test_many_messages_are_sent_by_one_client(monkeypatch: pytest.MonkeyPatch) -> None:
    clients: list[redis.Redis] = []
    original_init = redis.Redis.__init__

    def init(self: redis.Redis, *args: Any, **kwargs: Any) -> None:
        clients.append(self)
        original_init(self, *args, **kwargs)

    message = TaskMessage(task=Task.ADVANCE, tenant_id=uuid4(), arguments={}, shown="")
    assert publish(message)
    monkeypatch.setattr(redis.Redis, "__init__", init)
    assert all(publish(message) for _ in range(10))
    assert clients == []


def test_each_thread_publishes_to_the_configured_broker(broker: redis.Redis) -> None:
    message = TaskMessage(task=Task.ADVANCE, tenant_id=uuid4(), arguments={}, shown="")
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(publish, message).result()
    assert broker.llen("arbor:heartbeat") == 1


def test_a_channel_that_lost_its_pool_gets_another_client(broker: redis.Redis) -> None:
    with app.connection_for_write() as connection:
        assert isinstance(connection.transport, Transport)
        channel = connection.default_channel
        assert isinstance(channel, Channel)
        with channel.conn_or_acquire() as first, channel.conn_or_acquire() as second:
            assert first is second
        channel._after_fork()  # type: ignore[attr-defined]  # private to kombu
        with channel.conn_or_acquire() as other:
            assert other is not first
            assert other.ping()


def test_task_events_are_sent_together_and_none_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    consumer = Consumer.__new__(Consumer)
    consumer.hub = Hub()
    for _ in range(5):
        consumer.on_send_event_buffered()
    assert [delay for delay, _ in consumer.hub.later] == [EVENTS_BUFFERED_S]
    # The connection was lost, and the hub's timers with it: the next event sets another timer.
    consumer.hub.later.clear()
    now[0] += EVENTS_BUFFERED_S
    consumer.on_send_event_buffered()
    assert len(consumer.hub.later) == 1
