"""The database of a benchmark: migrations, bulk loads, and the cost of statements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from django.core.management import call_command
from django.db import connections
from psycopg.types.json import Jsonb

from apps.agents.services.templates import seed_builtin_templates
from apps.tenants.packing import unpack
from bench.support.installation import Installation

#: The beginnings of statements that only begin, scope, check or end a transaction, which are not counted as work.
_CONTROL = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "SET ", "SELECT set_config", "SELECT 1")


@dataclass(frozen=True, kw_only=True)
class Statement:
    """The cost of one statement since the last reset."""

    text: str
    calls: int
    #: Planning and execution.
    total_ms: float
    planning_ms: float
    rows: int


def migrate() -> None:
    """Create the tables, roles and policies, and the built-in templates."""
    call_command("migrate", verbosity=0, interactive=False)
    seed_builtin_templates()
    connections["owner"].close()


@contextmanager
def connect_as_superuser(installation: Installation) -> Iterator[psycopg.Connection[Any]]:
    """Open a connection as superuser, for bulk loads, statistics and plans."""
    with psycopg.connect(installation.postgres.superuser_url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        yield connection


def fetch_value(
    connection: psycopg.Connection[Any],
    statement: str,
    values: Sequence[Any] | Mapping[str, Any] | None = None,
) -> Any:
    """Return the first column of a statement's first row."""
    row = connection.execute(statement, values).fetchone()
    assert row is not None
    return row[0]


def unpack_actions(connection: psycopg.Connection[Any]) -> None:
    """Unpack the actions of all heartbeats into a temporary table, `unpacked_action` (heartbeat_id, action), for checks by SQL."""
    stored = connection.execute("SELECT id, actions FROM heartbeats_heartbeat").fetchall()
    connection.execute("DROP TABLE IF EXISTS unpacked_action")
    connection.execute("CREATE TEMP TABLE unpacked_action (heartbeat_id uuid, action jsonb)")
    with (
        connection.cursor() as cursor,
        cursor.copy("COPY unpacked_action (heartbeat_id, action) FROM STDIN") as copy,
    ):
        for heartbeat_id, packed in stored:
            for action in unpack(packed):
                copy.write_row((heartbeat_id, Jsonb(action)))


def reset_statements(connection: psycopg.Connection[Any]) -> None:
    """Reset the counters of statements."""
    connection.execute("SELECT pg_stat_statements_reset()")


def statements(connection: psycopg.Connection[Any]) -> list[Statement]:
    """Return the statements of the serving roles since the reset, the costliest first."""
    rows = connection.execute(
        "SELECT query, sum(calls), sum(total_exec_time + total_plan_time), sum(total_plan_time), sum(rows) FROM pg_stat_statements s"
        " JOIN pg_roles r ON r.oid = s.userid WHERE r.rolname IN ('arbor_app', 'arbor_ops') AND s.toplevel"
        " GROUP BY query ORDER BY 3 DESC"
    ).fetchall()
    return [
        Statement(
            text=" ".join(text.split()),
            calls=int(calls),
            total_ms=float(total),
            planning_ms=float(planning),
            rows=int(count),
        )
        for text, calls, total, planning, count in rows
    ]


def wal_bytes(connection: psycopg.Connection[Any]) -> int:
    """Return the bytes written to the write-ahead log so far."""
    return int(fetch_value(connection, "SELECT (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint"))


def is_control(statement: Statement) -> bool:
    """Return whether a statement only begins, scopes, checks or ends a transaction."""
    return statement.text.startswith(_CONTROL)
