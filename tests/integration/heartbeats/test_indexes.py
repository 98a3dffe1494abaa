"""Indexes: frequent writes touch none, and frequent reads use one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.db import connections, transaction

import apps.fleet.trust_scores as trust_scores
import apps.maintenance.services.prompts as maintenance_prompts
from apps.agents.models import Agent
from apps.calls.models import CallStatus, ExternalCall
from apps.heartbeats.services import schedule
from apps.memories.services.jobs.summaries import agents_with_unsummarized
from apps.tenants.models import Tenant
from apps.tenants.scope import OPS, tenant_transaction
from apps.tenants.statements import change, fetch
from tests.factories.heartbeats import MaintenanceCallFactory
from tests.integration.heartbeats.conftest import begin_heartbeat, make_due, run_heartbeat
from tests.integration.heartbeats.fleet import Fleet

#: The rows of a table that this transaction has updated: all, and those without a change of an index (HOT).
_UPDATED = """
SELECT pg_stat_get_xact_tuples_updated(%(table)s::regclass), pg_stat_get_xact_tuples_hot_updated(%(table)s::regclass)
"""
#: Due schedules, each of another tenant.
_DUE_IN_MANY_TENANTS = """
INSERT INTO heartbeats_heartbeatschedule
    (tenant_id, agent_id, state, epoch, next_due_at, interval_s, trigger, attempts, last_error)
SELECT gen_random_uuid(), gen_random_uuid(), 'idle', 0, now() - random() * interval '1 hour', 60, '', 0, ''
FROM generate_series(1, 1000)
"""
_ROWS_READ = """
SELECT t.seq_tup_read + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes i WHERE i.relid = t.relid)
FROM pg_stat_user_tables t WHERE t.relname = 'heartbeats_heartbeatschedule'
"""
#: Clear the statistics that other tests left, and set only the number of tenants.
_STATISTICS_OF_MANY_TENANTS = (
    "SELECT pg_clear_relation_stats('public', 'heartbeats_heartbeatschedule')",
    """
    SELECT pg_clear_attribute_stats(schemaname, tablename, attname, inherited) FROM pg_stats
    WHERE schemaname = 'public' AND tablename = 'heartbeats_heartbeatschedule'
    """,
    """
    SELECT pg_restore_attribute_stats(
        'schemaname', 'public', 'relname', 'heartbeats_heartbeatschedule', 'attname', 'tenant_id', 'inherited', false,
        'null_frac', 0::real, 'avg_width', 16, 'n_distinct', -1::real
    )
    """,
)


@pytest.mark.parametrize(
    ("table", "statement"),
    [
        ("heartbeats_heartbeatschedule", "SET state = 'running', lease_until = now()"),
        (
            "heartbeats_heartbeatschedule",
            "SET lease_until = now() + interval '1 hour', attempts = 1, epoch = 7",
        ),
        (
            "calls_externalcall",
            "SET status = 'running', attempts = 1, lease_until = now(), started_at = now()",
        ),
        (
            "calls_externalcall",
            "SET status = 'complete', reply = 'Yes', lease_until = NULL, ended_at = now()",
        ),
    ],
)
def test_frequent_updates_touch_no_index(fleet: Fleet, agent: Agent, table: str, statement: str) -> None:
    begin_heartbeat(fleet, agent, steps=1)
    update = f"UPDATE {table} {statement} WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s"
    with tenant_transaction(agent.tenant_id):
        ((all_before, hot_before),) = fetch(_UPDATED, table=table)
        # The first update may find its page full; an update that touches an index is never HOT.
        for _ in range(3):
            change(update, agent=agent.id)
        ((all_after, hot_after),) = fetch(_UPDATED, table=table)
    assert all_after - all_before == 3
    assert hot_after - hot_before >= 2


def test_a_maintenance_call_has_its_own_status_and_lease(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        call = MaintenanceCallFactory(agent=agent, status=CallStatus.RUNNING)
        change("UPDATE calls_externalcall SET lease_until = now() WHERE tenant_id = %(tenant)s")
        row = ExternalCall.objects.get(id=call.id)
        assert (row.errand_status, row.errand_lease) == ("running", row.lease_until)


def test_a_heartbeats_call_has_no_status_of_a_maintenance_call(fleet: Fleet, agent: Agent) -> None:
    run_heartbeat(fleet, agent)
    with tenant_transaction(agent.tenant_id):
        call = ExternalCall.objects.filter(agent_id=agent.id).latest("requested_at")
    assert (call.status, call.errand_status, call.errand_lease) == (CallStatus.COMPLETE, None, None)


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        (schedule._LONGEST_DUE.format(most=501), "heartbeats_due"),
        (schedule._IN_FLIGHT, "heartbeats_in_flight"),
        (
            f"SELECT ({maintenance_prompts._WAITING}) FROM tenants_tenant t".replace(
                "%(age)s", "'1 day'"
            ).replace("%(passed)s", "'{}'"),
            "calls_maintenance_prompts",
        ),
        (
            f"SELECT FROM tenants_tenant t JOIN audit_auditevent e ON e.tenant_id = t.id WHERE {trust_scores._BREACH}",
            "audit_event_breach",
        ),
        (
            "SELECT FROM audit_platformevent WHERE action = 'health.changed' ORDER BY id DESC LIMIT 1",
            "audit_platform_by_action",
        ),
        (
            f"SELECT FROM tenants_tenant t CROSS JOIN LATERAL ({agents_with_unsummarized()}) w",
            "memories_episode_unsummarized",
        ),
    ],
)
def test_frequent_queries_use_their_index(database: None, statement: str, index: str) -> None:
    with transaction.atomic(using=OPS), connections[OPS].cursor() as cursor:
        plan = _plan_by_indexes(cursor, statement)
    # On a table without rows an index by tenant costs the same.
    assert f"using {index} " in plan or f"using {index}_tenant " in plan


@pytest.fixture
def schedules_of_many_tenants(superuser: psycopg.Connection[Any]) -> Iterator[psycopg.Cursor[Any]]:
    """Yield a cursor of the operations role that sees due schedules of many tenants."""
    with superuser.transaction(force_rollback=True):
        # Without foreign keys: the rows have no tenant and no agent.
        superuser.execute("SET LOCAL session_replication_role = replica")
        superuser.execute(_DUE_IN_MANY_TENANTS)
        for statement in _STATISTICS_OF_MANY_TENANTS:
            superuser.execute(statement)
        superuser.execute("SET LOCAL ROLE arbor_ops")
        yield superuser.cursor()


def test_the_dispatcher_finds_due_agents_of_a_tenant_by_the_index(
    schedules_of_many_tenants: psycopg.Cursor[Any],
) -> None:
    values = {
        "active": "active",
        "pivot": UUID(int=0),
        "per_tenant": 5,
        "budget": 5,
        "lease": 60,
        "jitter": 0.05,
    }
    plan = _plan_by_indexes(schedules_of_many_tenants, schedule._CLAIM_DUE_OF_ALL, values)
    # By due time alone, a tenant's agents would be found among those of all tenants.
    assert "using heartbeats_due_tenant " in plan, plan


def test_the_dispatcher_finds_the_longest_due_by_the_index(
    schedules_of_many_tenants: psycopg.Cursor[Any],
) -> None:
    # The plan with all of the planner's methods allowed.
    plan = _plan(schedules_of_many_tenants, schedule._LONGEST_DUE.format(most=501))
    assert re.search(r"(using|on) heartbeats_due .*\n.*Index Cond: \(next_due_at <= now\(\)\)", plan), plan


@pytest.mark.parametrize(("batch", "some"), [(2, True), (1, False)])
def test_only_tenants_with_due_agents_are_asked_if_all_are_counted(
    fleet: Fleet, tenant: Tenant, new_agent: Callable[..., Agent], settings: Any, batch: int, some: bool
) -> None:
    settings.ARBOR_CLAIM_BATCH = batch
    for name in ("first", "second"):
        make_due(new_agent(tenant, name=name))
    sent: list[str] = []

    def record(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        sent.append(sql)
        return execute(sql, params, many, context)

    with connections[OPS].execute_wrapper(record):
        assert fleet.dispatch().due == batch
    assert (schedule._CLAIM_DUE_OF_SOME in sent, schedule._CLAIM_DUE_OF_ALL in sent) == (some, not some)


@pytest.fixture
def schedules_not_due(superuser: psycopg.Connection[Any]) -> Iterator[None]:
    """Store many schedules that are not due, with statistics."""
    with superuser.transaction():
        # Without foreign keys: the rows have no tenant and no agent.
        superuser.execute("SET LOCAL session_replication_role = replica")
        superuser.execute(_DUE_IN_MANY_TENANTS.replace("now() - ", "now() + interval '1 hour' + "))
    superuser.execute("ANALYZE heartbeats_heartbeatschedule")
    yield
    superuser.execute("DELETE FROM heartbeats_heartbeatschedule")


@pytest.mark.usefixtures("schedules_not_due")
def test_an_idle_dispatcher_reads_no_schedule_that_is_not_due(
    fleet: Fleet, superuser: psycopg.Connection[Any]
) -> None:
    # The server chooses a plan for all values after some runs.
    for _ in range(12):
        assert fleet.dispatch().due == 0
    before = _rows_read(superuser)
    for _ in range(5):
        fleet.dispatch()
    assert _rows_read(superuser) - before < 50


def _rows_read(superuser: psycopg.Connection[Any]) -> int:
    """Return the number of rows that scans of schedules and of their indexes have read so far."""
    with connections[OPS].cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute("SELECT 1")
    row = superuser.execute(_ROWS_READ).fetchone()
    assert row is not None
    return int(row[0])


def _plan_by_indexes(cursor: Any, statement: str, values: dict[str, Any] | None = None) -> str:
    """Return the plan of a statement that has to read and to sort by indexes, because its tables are small.

    The settings last until the cursor's transaction ends.
    """
    for setting in ("enable_seqscan", "enable_bitmapscan", "enable_sort"):
        cursor.execute(f"SET LOCAL {setting} = off")
    return _plan(cursor, statement, values)


def _plan(cursor: Any, statement: str, values: dict[str, Any] | None = None) -> str:
    cursor.execute(f"EXPLAIN {statement}", values)
    return "\n".join(line for (line,) in cursor.fetchall())
