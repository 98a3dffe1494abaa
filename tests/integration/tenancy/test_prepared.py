"""Prepared statements: their rows, counts and errors are those of the driver's cursors."""

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

COUNT_PREPARED = "SELECT count(*) FROM pg_prepared_statements"


def _connect(alias: str) -> psycopg.Connection[Any]:
    params: dict[str, Any] = connections[alias].get_connection_params()
    options = {
        name: params[name] for name in ("dbname", "user", "password", "host", "port") if name in params
    }
    return psycopg.connect(**options, autocommit=True, prepare_threshold=None)


@pytest.fixture
def connection() -> Iterator[psycopg.Connection[Any]]:
    with _connect(APP) as opened:
        yield opened


def make_statements(connection: psycopg.Connection[Any], *, most: int = 10) -> Statements:
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
def test_values_are_read_as_by_a_cursor(connection: psycopg.Connection[Any], value: Any) -> None:
    prepared = make_statements(connection)
    sql = "SELECT $1::text[]" if value == ["a", "b"] else "SELECT $1"
    raw = psycopg.RawCursor(connection)
    raw.execute(sql, [value])
    expected = raw.fetchall()
    for _ in range(3):  # sent as text, then prepared, then by its name
        prepared.execute(sql, [value])
        assert prepared.fetchall() == expected
        assert prepared.fetchone() == expected[0]
    prepared.execute(sql, [value], binary=True)
    raw.execute(sql, [value], binary=True)
    assert prepared.fetchall() == raw.fetchall()


def test_a_statement_reports_columns_and_row_counts(connection: psycopg.Connection[Any]) -> None:
    prepared = make_statements(connection)
    prepared.execute("SELECT 1 AS one, g AS two FROM generate_series(1, 3) g WHERE g <> $1", [2])
    assert [column.name for column in prepared.description] == ["one", "two"]
    assert prepared.rowcount == 2
    prepared.execute("SELECT 1 WHERE false", [])
    assert prepared.fetchone() is None
    assert prepared.fetchall() == []


def test_the_number_of_prepared_statements_is_limited(connection: psycopg.Connection[Any]) -> None:
    prepared = make_statements(connection, most=2)
    for number in range(5):
        for _ in range(3):
            prepared.execute(f"SELECT $1 + {number}", [1])
            assert prepared.fetchone() == (1 + number,)
    assert connection.execute(COUNT_PREPARED).fetchone() == (2,)


def test_a_prepared_statement_survives_a_rollback(connection: psycopg.Connection[Any]) -> None:
    prepared = make_statements(connection)
    for _ in range(2):
        prepared.execute("SELECT $1 + 1", [1])
    connection.execute("BEGIN")
    connection.execute("SAVEPOINT point")
    connection.execute("ROLLBACK TO SAVEPOINT point")
    connection.rollback()
    prepared.execute("SELECT $1 + 1", [1])
    assert prepared.fetchone() == (2,)


def test_errors_are_those_of_the_driver(connection: psycopg.Connection[Any]) -> None:
    prepared = make_statements(connection)
    with pytest.raises(psycopg.errors.DivisionByZero):
        prepared.execute("SELECT 1 / $1", [0])
    with pytest.raises(psycopg.errors.UndefinedTable):
        prepared.execute("SELECT * FROM nowhere", [])
    with pytest.raises(psycopg.DataError, match="NUL"):
        prepared.execute("SELECT $1", ["\x00"])
    prepared.execute("SELECT $1", ["after the errors"])
    assert prepared.fetchone() == ("after the errors",)


@pytest.fixture
def owner(connection: psycopg.Connection[Any]) -> Iterator[psycopg.Connection[Any]]:
    """Return a connection of the owner, with a table that the application may read, and one row: 7."""
    with _connect("owner") as opened:
        opened.execute("CREATE TABLE altered_table (number integer)")
        opened.execute("INSERT INTO altered_table VALUES (7)")
        opened.execute(f"GRANT SELECT ON altered_table TO {connection.info.user}")
        yield opened
        connection.close()
        opened.execute("DROP TABLE altered_table")


def test_a_statement_on_an_altered_table_fails_once(
    connection: psycopg.Connection[Any], owner: psycopg.Connection[Any]
) -> None:
    prepared = make_statements(connection)
    sql = "SELECT number FROM altered_table WHERE number::text = $1"
    for _ in range(3):
        prepared.execute(sql, ["7"])
        assert prepared.fetchall() == [(7,)]
    owner.execute("ALTER TABLE altered_table ALTER COLUMN number TYPE text")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="must not change result type"):
        prepared.execute(sql, ["7"])
    for _ in range(2):
        prepared.execute(sql, ["7"])
        assert prepared.fetchall() == [("7",)]


def test_failed_statements_leave_nothing_prepared(connection: psycopg.Connection[Any]) -> None:
    prepared = make_statements(connection)
    sql = "SELECT 1 / $1"
    for _ in range(3):
        prepared.execute(sql, [1])
    for _ in range(3):
        # Statements in a failed transaction, too.
        connection.execute("BEGIN")
        for error in (psycopg.errors.DivisionByZero, psycopg.errors.InFailedSqlTransaction):
            with pytest.raises(error):
                prepared.execute(sql, [0])
        connection.execute("ROLLBACK")
    prepared.execute(sql, [1])
    assert prepared.fetchone() == (1,)
    assert connection.execute(COUNT_PREPARED).fetchone() == (1,)


def test_a_lost_connection_is_an_operational_error(connection: psycopg.Connection[Any]) -> None:
    prepared = make_statements(connection)
    with pytest.raises(psycopg.OperationalError):
        prepared.execute("SELECT pg_terminate_backend(pg_backend_pid())", [])
    with pytest.raises(psycopg.OperationalError):
        prepared.execute("SELECT $1", [1])
    assert connection.closed
