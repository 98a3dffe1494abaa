"""PostgreSQL for Django, with each transaction told for which tenant it runs."""

from __future__ import annotations

from typing import Any

from django.db.backends.postgresql import base
from psycopg import OperationalError, sql
from psycopg.pq import ExecStatus

from apps.tenants.scope import APP, current_scope, scope_settings


class DatabaseWrapper(base.DatabaseWrapper):
    """Begins a transaction and sets its scope in one round trip."""

    def _set_autocommit(self, autocommit: bool) -> None:
        super()._set_autocommit(autocommit)  # type: ignore[misc]
        scope = current_scope()
        if autocommit or self.alias != APP or scope is None:
            return
        calls = sql.SQL(", ").join(
            sql.SQL("set_config({}, {}, true)").format(sql.Literal(name), sql.Literal(value))
            for name, value in scope_settings(scope).items()
            if value
        )
        statement = sql.SQL("BEGIN; SELECT {}").format(calls).as_bytes(self.connection)
        connection: Any = self.connection
        with self.wrap_database_errors:
            # psycopg sees the transaction as begun and does not begin it again. The transaction-local settings end
            # with it, so a connection that goes back to the pool carries nothing over.
            result = connection.pgconn.exec_(statement)
            if result.status != ExecStatus.TUPLES_OK:
                message = result.error_message.decode("utf-8", "replace")
                raise OperationalError(message)
