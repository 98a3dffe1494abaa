"""Django's PostgreSQL backend with the current tenant set in each transaction."""

from __future__ import annotations

import json
import select
from typing import Any

import orjson
from django.db.backends.postgresql import base
from psycopg import ClientCursor, OperationalError
from psycopg.adapt import Loader
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus, TransactionStatus

from apps.tenants.postgresql.arrays import (
    Blobs,
    BlobsDumper,
    BlobsTextDumper,
    Reals,
    RealsDumper,
    RealsTextDumper,
)
from apps.tenants.postgresql.passwords import RoleConnection, connect_as
from apps.tenants.postgresql.prepared import Statements
from apps.tenants.scope import APP, current_scope, scope_settings

#: Prepared statements per connection at most. A heartbeat uses about fifty, some of them once for each integer type.
MAX_PREPARED = 400


class _JsonLoader(Loader):
    """Decodes columns of type json, three times as fast as the driver, which uses the standard library."""

    def load(self, data: Any) -> Any:
        """Return the value; integers beyond 64 bits become the nearest float.

        Lone surrogates and numbers beyond the range of floats are left to the standard library.
        """
        try:
            return orjson.loads(data)
        except ValueError:
            return json.loads(bytes(data))


def _readable(descriptor: int) -> bool:
    """Return whether a socket has something to read, or is closed by the other side."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


class DatabaseWrapper(base.DatabaseWrapper):
    """Begins a transaction and sets its scope in one round trip."""

    @property
    def pool(self) -> Any:
        """The pool of this alias, if the settings name one."""
        options = self.settings_dict["OPTIONS"].get("pool")
        if isinstance(options, dict):
            options.setdefault("connection_class", RoleConnection)
        return super().pool

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Connect, and prepare the statements of heartbeats for as long as the connection lives."""
        connection = self._connect(conn_params)
        connection.prepared_max = MAX_PREPARED
        connection.adapters.register_dumper(Reals, RealsTextDumper)
        connection.adapters.register_dumper(Reals, RealsDumper)
        connection.adapters.register_dumper(Blobs, BlobsTextDumper)
        connection.adapters.register_dumper(Blobs, BlobsDumper)
        prepares = not issubclass(connection.cursor_factory, ClientCursor)
        # A pool may return a connection that is already set up: registering the dumpers again changes nothing.
        if self.alias == APP and prepares and connection.prepare_threshold is not None:
            # For this connection only. Columns of type jsonb stay text, which Django's fields decode.
            connection.adapters.register_loader("json", _JsonLoader)
            connection.arbor_statements = Statements(
                connection, prepared_after=connection.prepare_threshold, most=MAX_PREPARED
            )
            connection.prepare_threshold = None
        return connection

    def _connect(self, conn_params: dict[str, Any]) -> Any:
        connect = super().get_new_connection
        if self.pool or "password" not in conn_params:
            return connect(conn_params)
        return connect_as(
            lambda password: connect({**conn_params, "password": password}),
            role=str(conn_params.get("user", "")),
            given=conn_params["password"],
        )

    def is_usable(self) -> bool:
        """Return whether the connection is open and has no failed transaction. Django asks before each request and task.

        A server that ends a connection sends a message and closes the socket, so a socket with nothing to read needs no round trip.
        """
        connection: Any = self.connection
        if connection is None:
            return False
        pgconn = connection.pgconn
        if pgconn.status != ConnStatus.OK or pgconn.transaction_status == TransactionStatus.INERROR:
            return False
        try:
            return not _readable(pgconn.socket) or bool(pgconn.exec_(b"").status == ExecStatus.EMPTY_QUERY)
        except OperationalError:
            return False

    def create_cursor(self, name: str | None = None) -> Any:
        """Create a cursor; a named one is closed with the transaction in which it was opened."""
        connection: Any = self.connection
        if name and self.in_atomic_block:
            return connection.cursor(name, scrollable=False, withhold=False)
        return super().create_cursor(name)

    def fixed_statements(self) -> Statements | None:
        """Return the connection's prepared statements, which use `$1` placeholders.

        None if Django's cursors must be used instead: without a connection, where statements are not prepared or are
        being logged, and in a broken transaction.
        """
        connection: Any = self.connection
        if connection is None or self.needs_rollback or self.queries_logged:
            return None
        statements: Statements | None = getattr(connection, "arbor_statements", None)
        return statements

    def _set_autocommit(self, autocommit: bool) -> None:
        connection: Any = self.connection
        scope = current_scope()
        if autocommit and connection.autocommit:
            return
        if autocommit or self.alias != APP or scope is None:
            super()._set_autocommit(autocommit)  # type: ignore[misc]
            return
        # The driver stays in autocommit mode and detects the open transaction. The settings end with the transaction, so a
        # connection that returns to the pool carries none over. Their values are Arbor's ids and contain no quotes.
        self._command(
            "; ".join(
                [
                    "BEGIN",
                    *(
                        f"SET LOCAL {name} = '{value}'"
                        for name, value in scope_settings(scope).items()
                        if value
                    ),
                ]
            )
        )

    def _commit(self) -> None:
        if self.connection is not None:
            if self.queries_logged or self.alias != APP:
                super()._commit()  # type: ignore[misc]
            else:
                self._command("COMMIT")

    def _command(self, text: str) -> None:
        """Send a command without result rows in one round trip."""
        connection: Any = self.connection
        with self.wrap_database_errors:
            result = connection.pgconn.exec_(text.encode())
            if result.status != ExecStatus.COMMAND_OK:
                if connection.pgconn.status == ConnStatus.BAD:
                    raise OperationalError(result.get_error_message())
                # A constraint that is checked at the commit fails with its own class.
                raise error_from_result(result)
