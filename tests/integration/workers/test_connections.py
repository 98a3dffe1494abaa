"""Database connections: persistent in a child process, few for many waiting threads, none during a model call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import batched
from typing import Any
from uuid import UUID

import psycopg
import pytest
from celery.signals import task_postrun, worker_process_init
from django.db import OperationalError, connections

from apps.agents.models import Agent
from apps.heartbeats.models import HeartbeatStatus
from apps.heartbeats.services.calls.calls import execute_call, execute_calls
from apps.queues import Task, captured
from apps.tenants.models import Tenant
from apps.tenants.scope import APP, OPS, tenant_transaction
from arbor.models.ports import ModelRequest
from config.servers.postgres import EmbeddedPostgres
from tests.integration.heartbeats.conftest import REST, heartbeats_of, make_due, run_heartbeat
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script
from tests.support.database import connection_pool
from workers.app import app

# The signals' receivers come with the application's modules.
app.loader.import_default_modules()

#: Calls that wait for a model at once, and the connections that they share.
CALLS, POOL = 20, 2


def test_no_transaction_is_open_while_a_model_is_asked(fleet: Fleet, agent: Agent, scripted: Script) -> None:
    open_transactions: list[bool] = []

    def record_transactions(_: ModelRequest) -> str:
        open_transactions.extend(connections[alias].in_atomic_block for alias in (APP, OPS))
        return REST

    scripted(record_transactions)
    run_heartbeat(fleet, agent)
    assert open_transactions == [False, False]
    assert [heartbeat.status for heartbeat in heartbeats_of(agent)] == [HeartbeatStatus.DONE]


@pytest.fixture
def pooled(settings: Any) -> Iterator[None]:
    """Let the threads of this process share few connections, as workers of the queue llm do."""
    settings.ARBOR_DB_POOL_SIZE = POOL
    with connection_pool(POOL):
        yield


def enqueue_calls_that_wait_for_all(
    fleet: Fleet, tenant: Tenant, new_agent: Callable[..., Agent], scripted: Script
) -> None:
    """Enqueue CALLS calls, of which none is answered before all are being executed."""
    together = threading.Barrier(CALLS, timeout=30)

    def wait_for_all(_: ModelRequest) -> str:
        # All calls must arrive here, so none may occupy a connection that another call needs.
        together.wait()
        return REST

    scripted(wait_for_all, repeat=True)
    for number in range(CALLS):
        make_due(new_agent(tenant, name=f"agent {number}"))
    fleet.dispatch()
    for _ in range(CALLS):
        fleet.step()


@pytest.mark.usefixtures("pooled")
def test_many_calls_wait_at_once_on_few_connections(
    fleet: Fleet, tenant: Tenant, new_agent: Callable[..., Agent], scripted: Script
) -> None:
    enqueue_calls_that_wait_for_all(fleet, tenant, new_agent, scripted)
    messages = [fleet.pop_message() for _ in range(CALLS)]
    assert {message.task for message in messages} == {Task.EXECUTE_CALL}
    connections[APP].close()

    def execute(call_id: UUID) -> bool:
        with captured():
            executed = execute_call(call_id=call_id, tenant_id=tenant.id)
        connections[APP].close()
        return executed

    with ThreadPoolExecutor(CALLS) as threads:
        results = list(threads.map(execute, [UUID(message.arguments["call_id"]) for message in messages]))
    assert results == [True] * CALLS


@pytest.mark.usefixtures("pooled")
def test_messages_of_several_calls_share_a_few_connections(
    fleet: Fleet,
    tenant: Tenant,
    new_agent: Callable[..., Agent],
    scripted: Script,
) -> None:
    enqueue_calls_that_wait_for_all(fleet, tenant, new_agent, scripted)
    call_ids = [UUID(fleet.pop_message().arguments["call_id"]) for _ in range(CALLS)]
    connections[APP].close()

    with ThreadPoolExecutor(CALLS) as threads, ThreadPoolExecutor(CALLS) as messages:

        def execute(calls: Sequence[UUID]) -> int:
            with captured():
                executed = execute_calls(call_ids=calls, tenant_id=tenant.id, submit=threads.submit)
            connections[APP].close()
            return executed

        # Each message waits for its calls, without a connection meanwhile.
        results = list(messages.map(execute, batched(call_ids, 4, strict=True)))
    assert results == [4] * (CALLS // 4)


def _backend_pid(tenant: Tenant) -> int:
    with tenant_transaction(tenant.id), connections[APP].cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def test_a_childs_connection_lasts_from_task_to_task(tenant: Tenant) -> None:
    first = _backend_pid(tenant)
    task_postrun.send(sender=None)
    assert _backend_pid(tenant) == first


def _terminate_backend(postgres: EmbeddedPostgres, pid: int) -> None:
    with psycopg.connect(postgres.superuser_url, autocommit=True) as database:
        assert database.execute("SELECT pg_terminate_backend(%s, 5000)", [pid]).fetchone() == (True,)


def test_a_closed_connection_is_replaced_before_the_next_task(
    tenant: Tenant, postgres: EmbeddedPostgres
) -> None:
    first = _backend_pid(tenant)
    task_postrun.send(sender=None)
    _terminate_backend(postgres, first)
    assert _backend_pid(tenant) != first


def test_a_connection_closed_during_a_task_fails_that_task_only(
    tenant: Tenant, postgres: EmbeddedPostgres
) -> None:
    first = _backend_pid(tenant)
    _terminate_backend(postgres, first)
    with pytest.raises(OperationalError):
        _backend_pid(tenant)
    task_postrun.send(sender=None)
    assert _backend_pid(tenant) != first


def test_a_new_child_forgets_inherited_connections_without_closing(tenant: Tenant) -> None:
    first = _backend_pid(tenant)
    parents = {
        connection.alias: connection.connection for connection in connections.all(initialized_only=True)
    }
    worker_process_init.send(sender=None)
    assert [connection.connection for connection in connections.all(initialized_only=True)] == [None] * len(
        parents
    )
    for alias, connection in parents.items():
        assert connection is None or not connection.closed
        connections[alias].connection = connection
    assert _backend_pid(tenant) == first
