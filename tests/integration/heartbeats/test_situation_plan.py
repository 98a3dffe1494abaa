"""The plan of the statement that reads situations, made while its tables are empty, as a new installation makes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connections

from apps.agents.models import Agent
from apps.heartbeats.services import situation
from apps.tenants.protection import OWNER
from apps.tenants.scope import APP, OPS, tenant_transaction
from tests.integration.heartbeats.conftest import agent

__all__ = ["agent"]

#: Tables in which a tenant has many rows, and an agent few.
_OF_AGENTS = ("memories_edge", "memories_memory", "selves_belief", "selves_identityaspect", "goals_goal")


@pytest.fixture
def nodes(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    def explain(statement: str, values: dict[str, Any], _read: Callable[..., Any]) -> dict[Any, Any]:
        with connections[APP].cursor() as cursor:
            cursor.execute("EXPLAIN (FORMAT JSON) " + statement, values)
            return {"nodes": list(_nodes(cursor.fetchone()[0][0]["Plan"]))}

    monkeypatch.setattr(situation, "run", explain)
    with tenant_transaction(agent.tenant_id, generic_plans=True):
        return situation.load_situations([agent.id])["nodes"]  # type: ignore[index, return-value]


def test_a_situation_reads_no_table_as_a_whole(nodes: list[dict[str, Any]]) -> None:
    assert len(nodes) > 100
    assert [node["Relation Name"] for node in nodes if node["Node Type"] == "Seq Scan"] == []


@pytest.mark.parametrize("table", _OF_AGENTS)
def test_a_situation_reads_no_other_agents_rows(nodes: list[dict[str, Any]], table: str) -> None:
    scans = [node for node in nodes if _index_of(node).startswith(f"{table}_")]
    assert scans
    for scan in scans:
        condition = scan["Index Cond"]
        reads_few = "agent_id" in condition or "(id = " in condition
        assert reads_few, f"{scan['Index Name']}: {condition}, {scan['Plan Rows']} rows"


def test_recent_memories_are_read_in_order(nodes: list[dict[str, Any]]) -> None:
    assert "memories_memory_recent" in [node.get("Index Name") for node in nodes]


@pytest.mark.django_db(databases=[APP, OPS, OWNER])
def test_tables_that_were_never_analyzed_have_statistics() -> None:
    with connections[OWNER].cursor() as cursor:
        cursor.execute(
            "SELECT attname, n_distinct FROM pg_stats WHERE tablename = 'memories_edge' AND attname LIKE '%%_id'"
        )
        assert dict(cursor.fetchall()) == {"tenant_id": 1.0, "agent_id": 5.0}


def _index_of(node: dict[str, Any]) -> str:
    return str(node.get("Index Name", ""))


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from _nodes(child)
