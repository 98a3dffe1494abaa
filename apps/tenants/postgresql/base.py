"""Django's PostgreSQL backend with the current tenant set in each transaction."""

from __future__ import annotations

import json
from typing import Any

import orjson
from django.db.backends.postgresql import base
from psycopg import ClientCursor, OperationalError
from psycopg.adapt import Loader
from psycopg.pq import ExecStatus, TransactionStatus

from apps.tenants.postgresql.arrays import (
    Blobs,
    BlobsDumper,
    BlobsTextDumper,
    Reals,
    RealsDumper,
    RealsTextDumper,
)
from apps.tenants.postgresql.prepared import Statements
from apps.tenants.scope import APP, current_scope, scope_settings

#: Statements that a connection keeps prepared. A beat has about fifty; of some there is one for each kind of integer.
PREPARED_MOST = 400


class _JsonLoader(Loader):
    """Reads a column of type json, as `to_json` writes: three times as fast as the driver by the standard library."""

    def load(self, data: Any) -> Any:
        """Return the value, whole numbers beyond 64 bits as the nearest float.

        The standard library reads what is rarer still: halves of characters, and numbers beyond floats.
        """
        try:
            return orjson.loads(data)
        except ValueError:
            return json.loads(bytes(data))


class DatabaseWrapper(base.DatabaseWrapper):
    """Begins a transaction and sets its scope in one round trip."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Connect; what a beat runs stays prepared from one to the next."""
        connection = super().get_new_connection(conn_params)
        connection.prepared_max = PREPARED_MOST
        connection.adapters.register_dumper(Reals, RealsTextDumper)
        connection.adapters.register_dumper(Reals, RealsDumper)
        connection.adapters.register_dumper(Blobs, BlobsTextDumper)
        connection.adapters.register_dumper(Blobs, BlobsDumper)
        prepares = not issubclass(connection.cursor_factory, ClientCursor)
        # A pool gives the same connection again and again.
        if self.alias == APP and prepares and connection.prepare_threshold is not None:
            # Of this connection alone. Columns of type jsonb stay texts, which Django's fields read.
            connection.adapters.register_loader("json", _JsonLoader)
            connection.arbor_statements = Statements(
                connection, prepared_after=connection.prepare_threshold, most=PREPARED_MOST
            )
            connection.prepare_threshold = None
        return connection

    def is_usable(self) -> bool:
        """Return whether the server answers, and no transaction waits for its rollback; asked before each task."""
        connection: Any = self.connection
        if connection is None:
            return False
        try:
            # Nothing to parse: a tenth of a statement's cost.
            result = connection.pgconn.exec_(b"")
        except OperationalError:
            return False
        status = connection.pgconn.transaction_status
        return bool(result.status == ExecStatus.EMPTY_QUERY and status != TransactionStatus.INERROR)

    def create_cursor(self, name: str | None = None) -> Any:
        """Make a cursor; a named one ends with the transaction it was opened in."""
        connection: Any = self.connection
        if name and self.in_atomic_block:
            return connection.cursor(name, scrollable=False, withhold=False)
        return super().create_cursor(name)

    def fixed_statements(self) -> Statements | None:
        """Return what runs the connection's statements with `$1` in them.

        None where Django has a say: nothing is connected, statements are not prepared here or are being logged, or the
        transaction is broken.
        """
        connection: Any = self.connection
        if connection is None or self.needs_rollback or self.queries_logged:
            return None
        found: Statements | None = getattr(connection, "arbor_statements", None)
        return found

    def _set_autocommit(self, autocommit: bool) -> None:
        connection: Any = self.connection
        scope = current_scope()
        if autocommit and connection.autocommit:
            return
        if autocommit or self.alias != APP or scope is None:
            super()._set_autocommit(autocommit)  # type: ignore[misc]
            return
        # The driver stays where each statement stands for itself, and sees the transaction as begun. The settings are
        # local to it and end with it, so a connection that goes back to the pool carries nothing over. Their values are
        # ids of ours, without a quote in them.
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
        """Send what answers with no rows, in one round trip."""
        connection: Any = self.connection
        with self.wrap_database_errors:
            result = connection.pgconn.exec_(text.encode())
            if result.status != ExecStatus.COMMAND_OK:
                message = result.error_message.decode("utf-8", "replace")
                raise OperationalError(message)
