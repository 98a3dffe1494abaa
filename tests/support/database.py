"""The database of a test process: the connections of its roles, emptied after each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg
from django.db import connections
from django.db.backends.postgresql.base import DatabaseWrapper
from psycopg.pq import TransactionStatus
from psycopg.sql import SQL, Composed, Identifier

from apps.tenants.scope import APP, OWNER, SERVING
from config.databases import PREPARING
from config.environment import env, with_user

ALIASES = (*SERVING, OWNER)
#: Tables that migrations fill.
FILLED = ("django_migrations", "django_content_type", "auth_permission")


#: The columns of a table that are not computed from others.
_STORED_COLUMNS = """
SELECT attname FROM pg_attribute
WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum
"""


def use_database(owner_url: str) -> None:
    """Point the roles' connections at the database, and close the open ones, which lead to another server."""
    for alias in ALIASES:
        connections[alias].close()
        settings = connections.settings[alias]
        url = owner_url
        if alias != OWNER:
            url = with_user(owner_url, settings["USER"], settings["PASSWORD"])
        database = env.db_url_config(url)
        settings.update({key: database[key] for key in ("NAME", "USER", "PASSWORD", "HOST", "PORT")})


def prepare_statements(*, prepared: bool) -> None:
    """Let the roles' connections prepare statements, as workers and the API do, or not, as the console and commands do."""
    for alias in ALIASES:
        options = connections.settings[alias]["OPTIONS"]
        if prepared == (PREPARING.items() <= options.items()):
            continue
        connections[alias].close()
        for name, value in PREPARING.items():
            if prepared:
                options[name] = value
            else:
                del options[name]


@contextmanager
def connection_pool(size: int) -> Iterator[None]:
    """Let all threads of this process share `size` connections of the application's role, as workers of the queue llm do."""
    settings = connections.settings[APP]
    before = {key: settings[key] for key in ("OPTIONS", "CONN_MAX_AGE", "CONN_HEALTH_CHECKS")}
    connections[APP].close()
    del connections[APP]
    pool = {"min_size": 1, "max_size": size, "timeout": 10}
    settings.update(
        {"OPTIONS": {**before["OPTIONS"], "pool": pool}, "CONN_MAX_AGE": 0, "CONN_HEALTH_CHECKS": False}
    )
    try:
        yield
    finally:
        connection = connections[APP]
        assert isinstance(connection, DatabaseWrapper)
        connection.close()
        connection.close_pool()
        del connections[APP]
        settings.update(before)


@contextmanager
def recorded_statements(*aliases: str, control: bool = False) -> Iterator[list[str]]:
    """Collect the statements of connections, by default of the application's, without BEGIN and COMMIT.

    With `control`, those that only set up a transaction are collected too.
    """
    sent: list[str] = []

    def record(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if control or not sql.lstrip().upper().startswith(
            ("SET ", "SELECT SET_CONFIG", "BEGIN", "SAVEPOINT")
        ):
            sent.append(sql)
        return execute(sql, params, many, context)

    with ExitStack() as stack:
        for alias in aliases or (APP,):
            stack.enter_context(connections[alias].execute_wrapper(record))
        yield sent


class DatabaseCleaner:
    """Empties the database through a session that bypasses row security, privileges and references."""

    def __init__(self, session: psycopg.Connection[Any]) -> None:
        self._session = session
        self._session.execute("SET session_replication_role = replica")
        self._tables = [
            name
            for (name,) in self._session.execute(
                "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
            )
            if name not in FILLED
        ]
        self._session.execute(_emptying_function(self._tables))
        #: The names under which rows were saved, by table.
        self._saved: dict[str, set[str]] = {}
        self._fillings: dict[str, Composed] = {}

    def fill(self, table: str, create: Callable[[], object]) -> None:
        """Fill an empty table: by the function for the first time, then with the rows that it has created."""
        if table not in self._fillings:
            create()
            self._fillings[table] = self._save_table(table, "filled", "")
            return
        self._session.execute(self._fillings[table])

    def save(self, name: str, *, beside: str = "") -> None:
        """Save all rows for `insert`, without those that were saved by the name `beside`."""
        inserts = []
        for table in self._tables:
            if self._session.execute(SQL("SELECT FROM public.{} LIMIT 1").format(Identifier(table))).rowcount:
                inserts.append(self._save_table(table, name, beside))
        self._session.execute(
            SQL("CREATE FUNCTION pg_temp.{}() RETURNS void LANGUAGE plpgsql AS $$ BEGIN {} END $$").format(
                Identifier(f"insert_{name}"), SQL("").join(inserts)
            )
        )

    def _save_table(self, table: str, name: str, beside: str) -> Composed:
        """Copy the rows of a table to a temporary one; return the statement that inserts them."""
        columns = SQL(", ").join(
            Identifier(column) for (column,) in self._session.execute(_STORED_COLUMNS, [f"public.{table}"])
        )
        saved = Identifier(f"{name}_{table}")
        rows = SQL("SELECT {} FROM public.{}").format(columns, Identifier(table))
        if beside in self._saved.get(table, ()):
            rows += SQL(" EXCEPT SELECT {} FROM pg_temp.{}").format(columns, Identifier(f"{beside}_{table}"))
        self._session.execute(SQL("CREATE TEMP TABLE {} AS {}").format(saved, rows))
        self._saved.setdefault(table, set()).add(name)
        return SQL("INSERT INTO public.{} ({}) OVERRIDING SYSTEM VALUE SELECT * FROM pg_temp.{}; ").format(
            Identifier(table), columns, saved
        )

    def insert(self, name: str) -> None:
        """Insert the rows that were saved by a name; they are as old as the saving."""
        self._session.execute(SQL("SELECT pg_temp.{}()").format(Identifier(f"insert_{name}")))

    def empty(self) -> None:
        """Roll back open transactions and delete all rows."""
        _end_transactions()
        row = self._session.execute("SELECT pg_temp.empty_tables()").fetchone()
        assert row is not None
        if "memories_memory" in row[0]:
            # Query plans depend on the size of the table, index-only scans on vacuum.
            self._session.execute("VACUUM memories_memory")


def _emptying_function(tables: list[str]) -> Composed:
    """Return the definition of a function that deletes all rows and returns the tables that had some.

    Its statements are planned once for all tests. TRUNCATE would create a new file for each table and index.
    """
    steps = SQL("").join(
        SQL(
            "IF EXISTS (SELECT FROM {table}) THEN DELETE FROM {table}; found := array_append(found, {name}); END IF; "
        ).format(table=Identifier("public", name), name=name)
        for name in tables
    )
    return SQL(
        "CREATE FUNCTION pg_temp.empty_tables() RETURNS text[] LANGUAGE plpgsql"
        " AS $$ DECLARE found text[] := '{{}}'; BEGIN {} RETURN found; END $$"
    ).format(steps)


def _end_transactions() -> None:
    """End the sessions that have a transaction open, with its locks; the others stay for the next test."""
    for alias in SERVING:
        wrapper = connections[alias]
        session: Any = wrapper.connection
        if session is None:
            continue
        idle = not session.closed and session.info.transaction_status == TransactionStatus.IDLE
        if not idle or wrapper.in_atomic_block or "pool" in wrapper.settings_dict["OPTIONS"]:
            wrapper.close()
