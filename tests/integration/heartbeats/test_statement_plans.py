"""Plans of the statements of heartbeats, made while tables are empty, as the connections of a new installation keep them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connections
from psycopg import Connection, connect
from psycopg._queries import PostgresQuery
from psycopg.adapt import Transformer

from apps.agents.models import Agent
from apps.tenants.checks import tenant_models
from apps.tenants.planner_statistics import seed_statistics
from apps.tenants.scope import APP, OPS, OWNER, tenant_transaction
from tests.integration.heartbeats.fleet import Fleet

#: Tables in which a tenant has many rows, and a heartbeat needs few of them.
LARGE = (
    "calls_dailyusage",
    "heartbeats_percept",
    "calls_externalcall",
    "goals_goal",
    "goals_intent",
    "goals_plan",
    "goals_planstep",
    "heartbeats_heartbeatschedule",
    "heartbeats_heartbeat",
    "memories_edge",
    "memories_memory",
    "memories_mind",
    "memories_term",
    "selves_belief",
    "selves_identityaspect",
)


#: Tables in which each other agent gets a copy of one of the agent's rows, so that they have pages, without being analyzed.
_COPIED = (
    "agents_agentstate",
    "heartbeats_heartbeatschedule",
    "memories_mind",
    "goals_goal",
    "heartbeats_heartbeat",
    "calls_externalcall",
    "calls_dailyusage",
)
#: The number of copies for each other agent, by table.
_REPEATED = {"goals_intent": 20}
_COLUMNS = """
SELECT string_agg(quote_ident(attname), ', ') FROM pg_attribute
WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
"""

_TYPES = "SELECT coalesce(nullif(oid, 0)::regtype::text, 'unknown') FROM unnest(%s::oid[]) oid"


@pytest.mark.usefixtures("unprepared")
@pytest.mark.parametrize("others", [0, 300])
def test_heartbeats_read_few_rows_of_large_tables(
    fleet: Fleet, agent: Agent, superuser: Connection[Any], others: int
) -> None:
    _forget_statistics()
    # Autovacuum, which would count rows in the middle of the test, finds nothing to do: the rows that other tests have changed
    # are forgotten.
    superuser.execute("SELECT pg_stat_reset()")
    tables: dict[str, str] = dict(superuser.execute("SELECT indexname, tablename FROM pg_indexes").fetchall())
    wide: set[str] = set()
    indexes: set[str] = set()

    def explain(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if re.match(r"\s*(WITH|SELECT|INSERT|UPDATE|DELETE)\b", sql) and not many:
            with connections[APP].connection.cursor() as cursor:
                cursor.execute("EXPLAIN (FORMAT JSON) " + sql, params)
                plan = cursor.fetchone()[0][0]["Plan"]
            wide.update(f"{reads} in {' '.join(sql.split())[:150]}" for reads in _wide_reads(plan, tables))
            indexes.update(node["Index Name"] for node in _nodes(plan) if "Index Name" in node)
        return execute(sql, params, many, context)

    for number in range(7):  # one to have rows of everything, then each mode once
        if number == 1:
            _add_others(agent, others)
            wide.clear()
        # A requested heartbeat is never idle.
        fleet.claim(agent)
        with connections[APP].execute_wrapper(explain):
            fleet.run()
    assert not wide, "\n".join(sorted(wide))
    # The latest memories are read in order, not all of them sorted.
    assert "memories_memory_recent" in indexes, sorted(indexes)


@pytest.mark.django_db(databases=[APP, OPS, OWNER])
def test_tables_without_rows_have_first_statistics() -> None:
    with connections[OWNER].cursor() as cursor:
        cursor.execute(
            "SELECT attname, n_distinct FROM pg_stats WHERE tablename = 'memories_edge' AND attname LIKE '%%t_id'"
        )
        assert dict(cursor.fetchall()) == {"tenant_id": 1.0, "agent_id": 5.0}


def _forget_statistics() -> None:
    """Bring the planner's statistics to those of a new installation: autovacuum has counted rows of other tests.

    The planner also looks at the sizes of tables and indexes, so the pages of deleted rows go.
    """
    with connect(**connections[OWNER].get_connection_params(), autocommit=True) as connection:
        connection.execute(f"VACUUM (FULL) {', '.join(LARGE)}")
        connection.execute(
            "SELECT pg_clear_attribute_stats('public', tablename, attname, inherited) FROM pg_stats WHERE schemaname = 'public'"
        )
        connection.execute(
            "SELECT pg_clear_relation_stats('public', relname) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        )
        with connection.cursor() as cursor:
            seed_statistics(cursor, tenant_models())


def _generic_plan(connection: Connection[Any], sql: str, params: Any) -> dict[str, Any]:
    """Return the plan of a statement for any values, which workers keep."""
    # The driver's own conversion, because the server knows no named parameters.
    query = PostgresQuery(Transformer(connection))
    query.convert(sql, params)
    nulls = ", ".join("NULL" for _ in query.types)
    with connection.cursor() as cursor:
        cursor.execute(_TYPES, [list(query.types)])
        types = ", ".join(name for (name,) in cursor.fetchall())
        cursor.execute(f"PREPARE explained{f' ({types})' if types else ''} AS ".encode() + query.query)
        # In every transaction: the server would choose a generic plan after five executions.
        cursor.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        cursor.execute(f"EXPLAIN (FORMAT JSON) EXECUTE explained{f' ({nulls})' if nulls else ''}")
        plan: dict[str, Any] = cursor.fetchone()[0][0]["Plan"]  # type: ignore[index]
        cursor.execute("DEALLOCATE explained")
    return plan


def _add_others(agent: Agent, number: int) -> None:
    """Add a number of other agents with a copy of the agent's row in each of some tables."""
    with tenant_transaction(agent.tenant_id), connections[APP].cursor() as cursor:
        _copy(
            cursor, "agents_agent", agent, "a.id", {"id": "n.id", "name": "n.id", "public_id": "n.id"}, number
        )
        for table in (*_COPIED, *_REPEATED):
            of_agent = {"agent_id": "n.id", "id": "gen_random_uuid()"}
            for _ in range(_REPEATED.get(table, 1)):
                _copy(cursor, table, agent, "a.agent_id", of_agent, number)


def _copy(cursor: Any, table: str, agent: Agent, owner: str, changed: dict[str, str], number: int) -> None:
    """Insert a copy of one of the agent's rows for each of a number of other agents."""
    cursor.execute(_COLUMNS, [table])
    columns = cursor.fetchone()[0]
    values = ", ".join(f"'{name}', {value}" for name, value in changed.items() if name in columns.split(", "))
    cursor.execute(
        f"INSERT INTO {table} ({columns}) SELECT {', '.join(f'copy.{name}' for name in columns.split(', '))}"
        f" FROM (SELECT ctid FROM {table} a WHERE {owner} = %s LIMIT 1) one JOIN {table} a ON a.ctid = one.ctid"
        " CROSS JOIN (SELECT md5('other ' || i)::uuid AS id FROM generate_series(1, %s) i) n"
        f" CROSS JOIN LATERAL jsonb_populate_record(a, jsonb_build_object({values})) copy",
        [agent.id, number],
    )


def _wide_reads(plan: dict[str, Any], tables: dict[str, str]) -> Iterator[str]:
    """Yield the indexes that a plan reads by the tenant alone, and the large tables that it reads as a whole."""
    for node in _nodes(plan):
        name, condition = node.get("Index Name", ""), node.get("Index Cond", "")
        if node["Node Type"] == "Seq Scan" and node["Relation Name"] in LARGE:
            yield node["Relation Name"]
        if (
            node.get("Relation Name", tables.get(name)) in LARGE
            and name
            and not re.search(r"\b(?!tenant_id\b)\w*id\b = ", condition)
        ):
            yield f"{name} by {condition}"


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from _nodes(child)
