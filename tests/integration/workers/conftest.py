"""The Celery application on a throw-away broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis
from celery import Celery
from kombu import pools

from config.servers.valkey import EmbeddedValkey
from tests.integration.heartbeats.conftest import agent, fleet, new_agent, scripted
from workers.app import app

__all__ = ["agent", "fleet", "new_agent", "scripted"]


@pytest.fixture(scope="module")
def valkey() -> Iterator[EmbeddedValkey]:
    """Return a running throw-away broker, to which the application publishes."""
    broker_url_before = app.conf.broker_url
    with EmbeddedValkey.temporary() as server:
        _reset_connections()
        app.conf.update(broker_url=server.url)
        app.set_current()
        yield server
        _reset_connections()
        app.conf.update(broker_url=broker_url_before)


def _reset_connections() -> None:
    """Discard the connections and producers that Celery caches, which may belong to the broker of another test."""
    pools.reset()
    app.amqp._producer_pool = None  # type: ignore[attr-defined]  # private to Celery
    app._pool = None  # type: ignore[attr-defined]  # private to Celery


@pytest.fixture
def broker(valkey: EmbeddedValkey) -> Iterator[redis.Redis]:
    """Return a client of the emptied broker."""
    with redis.Redis.from_url(valkey.url) as client:
        client.flushall()
        yield client


@pytest.fixture
def celery() -> Celery:
    """Return the application with its tasks."""
    app.loader.import_default_modules()
    return app
