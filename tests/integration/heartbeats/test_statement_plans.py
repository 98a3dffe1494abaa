"""Plans of the statements of heartbeats, made while tables are empty, as the connections of a new installation keep them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from django.db import connections

from apps.agents.models import Agent
from apps.tenants.protection import OWNER
from apps.tenants.scope import APP, OPS
from tests.integration.heartbeats.conftest import make_due
from tests.integration.heartbeats.fleet import Fleet

#: Tables in which a tenant has many rows, and a heartbeat needs few of them.
LARGE = (
    "agents_percept",
    "calls_externalcall",
    "goals_goal",
    "goals_intent",
    "heartbeats_heartbeat",
    "memories_edge",
    "memories_memory",
    "memories_mind",
    "selves_belief",
    "selves_identityaspect",
)


def test_heartbeats_read_few_rows_of_large_tables(fleet: Fleet, agent: Agent) -> None:
    wide: set[str] = set()
    indexes: set[str] = set()

    def explain(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if re.match(r"\s*(WITH|SELECT|INSERT|UPDATE|DELETE)\b", sql) and not many:
            with connections[APP].connection.cursor() as cursor:
                cursor.execute("EXPLAIN (FORMAT JSON) " + sql, params)
                plan = cursor.fetchone()[0][0]["Plan"]
            wide.update(f"{reads} in {' '.join(sql.split())[:150]}" for reads in _wide_reads(plan))
            indexes.update(node["Index Name"] for node in _nodes(plan) if "Index Name" in node)
        return execute(sql, params, many, context)

    for _ in range(6):  # each mode once
        make_due(agent)
        with ExitStack() as stack:
            fleet.dispatch()
            stack.enter_context(connections[APP].execute_wrapper(explain))
            fleet.run()
    assert not wide, "\n".join(sorted(wide))
    # The latest memories are read in order, not all of them sorted.
    assert "memories_memory_recent" in indexes


@pytest.mark.django_db(databases=[APP, OPS, OWNER])
def test_tables_without_rows_have_first_statistics() -> None:
    with connections[OWNER].cursor() as cursor:
        cursor.execute(
            "SELECT attname, n_distinct FROM pg_stats WHERE tablename = 'memories_edge' AND attname LIKE '%%t_id'"
        )
        assert dict(cursor.fetchall()) == {"tenant_id": 1.0, "agent_id": 5.0}


def _wide_reads(plan: dict[str, Any]) -> Iterator[str]:
    """Yield the indexes that a plan reads by the tenant alone, and the large tables that it reads as a whole."""
    for node in _nodes(plan):
        name, condition = node.get("Index Name", ""), node.get("Index Cond", "")
        if node["Node Type"] == "Seq Scan" and node["Relation Name"] in LARGE:
            yield node["Relation Name"]
        of_large = name.startswith(tuple(f"{table}_" for table in LARGE))
        if of_large and not re.search(r"\b(?!tenant_id\b)\w*id\b = ", condition):
            yield f"{name} by {condition}"


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from _nodes(child)
