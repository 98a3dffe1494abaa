"""The benchmark of the console, with few agents: its rows are complete copies, and it requests every kind of page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.conf import settings as used

from apps.agents.services.templates import seed_builtin_templates
from bench.console import count_rows, fill, measure_pages
from bench.support.addresses import api_addresses, console_addresses
from config.servers.postgres import EmbeddedPostgres

AGENTS, HEARTBEATS, BUSY_HEARTBEATS = 25, 50, 10
#: References between copies: a table, its column, and the table that the column refers to.
REFERENCES = (
    ("heartbeats_heartbeat", "agent_id", "agents_agent"),
    ("calls_externalcall", "heartbeat_id", "heartbeats_heartbeat"),
    ("calls_ledgerentry", "call_id", "calls_externalcall"),
    ("heartbeats_heartbeat", "memory_id", "memories_memory"),
    ("goals_plan", "goal_id", "goals_goal"),
)


@pytest.fixture
def session(postgres: EmbeddedPostgres, database: None) -> Iterator[psycopg.Connection[Any]]:
    """Return a session of the superuser for this test alone: the benchmark creates temporary objects in it."""
    with psycopg.connect(postgres.superuser_url, autocommit=True) as opened:
        yield opened


def test_pages_of_copied_agents_are_measured(session: psycopg.Connection[Any], settings: Any) -> None:
    settings.ARBOR_DEFAULT_MODEL = "reflex/rules"
    seed_builtin_templates()
    busy = fill(session, agents=AGENTS, tenants=3, heartbeats=HEARTBEATS, busy_heartbeats=BUSY_HEARTBEATS)

    # The five agents that were copied have had heartbeats too.
    assert count_rows(session)["agents"] == AGENTS + 5
    assert _count(session, "heartbeats_heartbeat") == HEARTBEATS + 10 + BUSY_HEARTBEATS
    assert _count(session, "heartbeats_heartbeat", f"agent_id = '{busy.agent_id}'") == 2 + BUSY_HEARTBEATS
    for table, column, referred in REFERENCES:
        dangling = f"{column} IS NOT NULL AND NOT EXISTS (SELECT FROM {referred} r WHERE r.id = t.{column} AND r.tenant_id = t.tenant_id)"
        assert not _count(session, table, dangling), (table, column)

    # One address of each group.
    listed = {address.group: address for address in [*console_addresses(busy), *api_addresses(busy)]}
    figures = measure_pages(busy, list(listed.values()), rounds=1)
    assert not figures["refused"]
    assert {line["name"] for line in figures["groups"]} == set(listed)
    assert all(line["p50_ms"] > 0 and line["statements"] for line in figures["groups"])
    assert used.ROOT_URLCONF == "config.urls"


def _count(session: psycopg.Connection[Any], table: str, condition: str = "true") -> int:
    row = session.execute(f"SELECT count(*) FROM {table} t WHERE {condition}").fetchone()
    assert row is not None
    return int(row[0])
