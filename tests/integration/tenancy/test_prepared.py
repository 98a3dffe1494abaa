"""Prepared statements return the rows, counts and errors that the driver's cursors return."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.db import connections

from apps.tenants.postgresql.prepared import Statements
from apps.tenants.scope import APP

pytestmark = pytest.mark.django_db

_PREPARED = "SELECT count(*) FROM pg_prepared_statements"


def _connected(alias: str) -> psycopg.Connection[Any]:
    params: dict[str, Any] = connections[alias].get_connection_params()
    options = {
        name: params[name] for name in ("dbname", "user", "password", "host", "port") if name in params
    }
    return psycopg.connect(**options, autocommit=True, prepare_threshold=None)


@pytest.fixture
def connection() -> Iterator[psycopg.Connection[Any]]:
    with _connected(APP) as opened:
        yield opened


def statements(connection: psycopg.Connection[Any], *, most: int = 10) -> Statements:
    return Statements(connection, prepared_after=1, most=most)


@pytest.mark.parametrize(
    "value",
    [
        "a word",
        "",
        None,
        7,
        70_000,
        2**40,
        1.5,
        True,
        UUID(int=5),
        datetime(2026, 1, 2, 3, 4, 5, 678, UTC),
        ["a", "b"],
        [1, 2],
        b"\x00\x01",
    ],
)
def test_values_come_back_as_by_a_cursor(connection: psycopg.Connection[Any], value: Any) -> None:
    run = statements(connection)
    sql = "SELECT $1::text[]" if value == ["a", "b"] else "SELECT $1"
    raw = psycopg.RawCursor(connection)
    raw.execute(sql, [value])
    expected = raw.fetchall()
    for _ in range(3):  # sent as text, then prepared, then by its name
        run.execute(sql, [value])
        assert run.fetchall() == expected
        assert run.fetchone() == expected[0]
    run.execute(sql, [value], binary=True)
    raw.execute(sql, [value], binary=True)
    assert run.fetchall() == raw.fetchall()


def test_a_statement_reports_columns_and_row_counts(connection: psycopg.Connection[Any]) -> None:
    run = statements(connection)
    run.execute("SELECT 1 AS one, g AS two FROM generate_series(1, 3) g WHERE g <> $1", [2])
    assert [column.name for column in run.description] == ["one", "two"]
    assert run.rowcount == 2
    run.execute("SELECT 1 WHERE false", [])
    assert run.fetchone() is None
    assert run.fetchall() == []


def test_no_more_stay_prepared_than_wanted(connection: psycopg.Connection[Any]) -> None:
    run = statements(connection, most=2)
    for number in range(5):
        for _ in range(3):
            run.execute(f"SELECT $1 + {number}", [1])
            assert run.fetchone() == (1 + number,)
    assert connection.execute(_PREPARED).fetchone() == (2,)


def test_a_prepared_statement_survives_a_rollback(connection: psycopg.Connection[Any]) -> None:
    run = statements(connection)
    for _ in range(2):
        run.execute("SELECT $1 + 1", [1])
    connection.execute("BEGIN")
    connection.execute("SAVEPOINT here")
    connection.execute("ROLLBACK TO SAVEPOINT here")
    connection.rollback()
    run.execute("SELECT $1 + 1", [1])
    assert run.fetchone() == (2,)


def test_faults_are_the_drivers(connection: psycopg.Connection[Any]) -> None:
    run = statements(connection)
    with pytest.raises(psycopg.errors.DivisionByZero):
        run.execute("SELECT 1 / $1", [0])
    with pytest.raises(psycopg.errors.UndefinedTable):
        run.execute("SELECT * FROM nowhere", [])
    with pytest.raises(psycopg.DataError, match="NUL"):
        run.execute("SELECT $1", ["\x00"])
    run.execute("SELECT $1", ["still here"])
    assert run.fetchone() == ("still here",)


@pytest.fixture
def owner(connection: psycopg.Connection[Any]) -> Iterator[psycopg.Connection[Any]]:
    """Return a connection of the owner, with a table that the application may read, and one row: 7."""
    with _connected("owner") as opened:
        opened.execute("CREATE TABLE tried_out (number integer)")
        opened.execute("INSERT INTO tried_out VALUES (7)")
        opened.execute(f"GRANT SELECT ON tried_out TO {connection.info.user}")
        yield opened
        connection.close()
        opened.execute("DROP TABLE tried_out")


def test_a_statement_on_an_altered_table_fails_once(
    connection: psycopg.Connection[Any], owner: psycopg.Connection[Any]
) -> None:
    run = statements(connection)
    sql = "SELECT number FROM tried_out WHERE number::text = $1"
    for _ in range(3):
        run.execute(sql, ["7"])
        assert run.fetchall() == [(7,)]
    owner.execute("ALTER TABLE tried_out ALTER COLUMN number TYPE text")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="must not change result type"):
        run.execute(sql, ["7"])
    for _ in range(2):
        run.execute(sql, ["7"])
        assert run.fetchall() == [("7",)]


def test_failed_statements_leave_nothing_prepared(connection: psycopg.Connection[Any]) -> None:
    run = statements(connection)
    sql = "SELECT 1 / $1"
    for _ in range(3):
        run.execute(sql, [1])
    for _ in range(3):
        # Statements in a failed transaction, too.
        connection.execute("BEGIN")
        for fault in (psycopg.errors.DivisionByZero, psycopg.errors.InFailedSqlTransaction):
            with pytest.raises(fault):
                run.execute(sql, [0])
        connection.execute("ROLLBACK")
    run.execute(sql, [1])
    assert run.fetchone() == (1,)
    assert connection.execute(_PREPARED).fetchone() == (1,)


def test_a_lost_connection_is_an_operational_error(connection: psycopg.Connection[Any]) -> None:
    run = statements(connection)
    with pytest.raises(psycopg.OperationalError):
        run.execute("SELECT pg_terminate_backend(pg_backend_pid())", [])
    with pytest.raises(psycopg.OperationalError):
        run.execute("SELECT $1", [1])
    assert connection.closed
