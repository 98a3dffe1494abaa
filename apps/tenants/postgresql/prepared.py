"""Prepared statements of a connection, executed without psycopg's cursors.

A cursor supports every feature of the database: for each statement it uses a generator, a lock, a description of
columns and two counters. A heartbeat only needs to execute a statement with values and fetch its rows; without a cursor
this takes a third of the time. Values are adapted exactly as by a cursor, with the same `Transformer`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

from psycopg import Error, OperationalError
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus, Format

type _Key = tuple[str, tuple[int, ...]]


class ResultColumn(NamedTuple):
    """The name of a result column, the only part of `cursor.description` that Arbor reads."""

    name: str


class Statements:
    """Execute statements with `$1` placeholders on one connection, and store the last result.

    A statement is prepared after `prepared_after` uses; the least recently used is closed when there are more than `most`.
    Psycopg must not prepare statements in this connection: after a rollback it deallocates all, including these.
    """

    def __init__(self, connection: Any, *, prepared_after: int, most: int) -> None:
        self._pgconn = connection.pgconn
        self._transformer: Any = Transformer.from_context(connection)
        self._prepared_after = prepared_after
        self._most = most
        self._names: OrderedDict[_Key, bytes] = OrderedDict()
        self._uses: OrderedDict[_Key, int] = OrderedDict()
        self._last_number = 0
        self._result: Any = None

    def execute(self, sql: str, values: Sequence[Any], *, binary: bool = False) -> None:
        """Execute a statement. Raises psycopg's errors, OperationalError if the connection is lost."""
        transformer = self._transformer
        parameters = transformer.dump_sequence(values, [PyFormat.AUTO] * len(values)) if values else []
        types, formats = (transformer.types, transformer.formats) if values else ((), [])
        key = (sql, types)
        name = self._names.get(key)
        if name is None:
            name = self._prepare_if_frequent(key)
        else:
            self._names.move_to_end(key)
        result_format = Format.BINARY if binary else Format.TEXT
        if name:
            result = self._pgconn.exec_prepared(name, parameters, formats, result_format)
        else:
            result = self._pgconn.exec_params(sql.encode(), parameters, types, formats, result_format)
        try:
            self._check(result)
        except Error:
            self._forget(key)
            raise
        transformer.set_pgresult(result)
        self._result = result

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return the rows of the last statement."""
        rows: list[tuple[Any, ...]] = self._transformer.load_rows(0, self._result.ntuples, tuple)
        return rows

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the first row of the last statement; None if it has none."""
        if not self._result.ntuples:
            return None
        row: tuple[Any, ...] = self._transformer.load_row(0, tuple)
        return row

    @property
    def description(self) -> Sequence[ResultColumn]:
        """The columns of the last statement."""
        return [ResultColumn(self._result.fname(index).decode()) for index in range(self._result.nfields)]

    @property
    def rowcount(self) -> int:
        """The number of rows that the last statement changed or returned."""
        return self._result.command_tuples or 0

    def _prepare_if_frequent(self, key: _Key) -> bytes:
        """Count a use; prepare the statement if it was used often enough, and return its name, else an empty name."""
        uses = self._uses.pop(key, 0) + 1
        if uses <= self._prepared_after:
            self._uses[key] = uses
            if len(self._uses) > self._most:
                self._uses.popitem(last=False)
            return b""
        if len(self._names) >= self._most:
            self._check(self._pgconn.close_prepared(self._names.popitem(last=False)[1]))
        self._last_number += 1
        name = b"arbor_%d" % self._last_number
        sql, types = key
        self._check(self._pgconn.prepare(name, sql.encode(), types))
        self._names[key] = name
        return name

    def _forget(self, key: _Key) -> None:
        """Close a statement that failed: after a change of its table, only a newly prepared one succeeds."""
        name = self._names.pop(key, None)
        if name is not None and self._pgconn.status != ConnStatus.BAD:
            # Works in an aborted transaction too. The result is ignored, because the caller raises the original error.
            self._pgconn.close_prepared(name)

    def _check(self, result: Any) -> None:
        if result.status in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
            return
        if self._pgconn.status == ConnStatus.BAD:
            raise OperationalError(result.get_error_message())
        raise error_from_result(result)
