"""Statements that stay prepared in a connection, sent and read by the driver's own compiled parts.

The driver's cursors are made for everything a database can do: at each statement they go by a generator, a lock, a
table of columns and two counts. What a heartbeat runs is one statement with values and its rows; past the cursors it
takes a third of the time. Values are written and read exactly as the cursors do, by the same `Transformer`.
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
    """A column of a result, as far as our readers need it."""

    name: str


class Statements:
    """Runs statements with `$1` in them on one connection, and holds the result of the last one.

    A statement is prepared from its `prepared_after`-th use on, the `most` used last stay so. The driver must prepare
    nothing itself in this connection: after a rollback it drops all that is prepared, ours as well.
    """

    def __init__(self, connection: Any, *, prepared_after: int, most: int) -> None:
        self._pgconn = connection.pgconn
        self._transformer: Any = Transformer.from_context(connection)
        self._prepared_after = prepared_after
        self._most = most
        self._names: OrderedDict[_Key, bytes] = OrderedDict()
        self._uses: OrderedDict[_Key, int] = OrderedDict()
        self._last = 0
        self._result: Any = None

    def execute(self, sql: str, values: Sequence[Any], *, binary: bool = False) -> None:
        """Run a statement. Raises the driver's errors, OperationalError if the connection is lost."""
        transformer = self._transformer
        written = transformer.dump_sequence(values, [PyFormat.AUTO] * len(values)) if values else []
        types, formats = (transformer.types, transformer.formats) if values else ((), [])
        key = (sql, types)
        name = self._names.get(key)
        if name is None:
            name = self._prepared(key)
        else:
            self._names.move_to_end(key)
        read_as = Format.BINARY if binary else Format.TEXT
        if name:
            result = self._pgconn.exec_prepared(name, written, formats, read_as)
        else:
            result = self._pgconn.exec_params(sql.encode(), written, types, formats, read_as)
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
        return [ResultColumn(self._result.fname(place).decode()) for place in range(self._result.nfields)]

    @property
    def rowcount(self) -> int:
        """How many rows the last statement changed or returned."""
        return self._result.command_tuples or 0

    def _prepared(self, key: _Key) -> bytes:
        """Count a use; return the name under which the statement is prepared by now, or none."""
        uses = self._uses.pop(key, 0) + 1
        if uses <= self._prepared_after:
            self._uses[key] = uses
            if len(self._uses) > self._most:
                self._uses.popitem(last=False)
            return b""
        if len(self._names) >= self._most:
            self._check(self._pgconn.close_prepared(self._names.popitem(last=False)[1]))
        self._last += 1
        name = b"arbor_%d" % self._last
        sql, types = key
        self._check(self._pgconn.prepare(name, sql.encode(), types))
        self._names[key] = name
        return name

    def _forget(self, key: _Key) -> None:
        """Drop a statement that failed: where a table was altered, it would fail at every use, and prepared anew not."""
        name = self._names.pop(key, None)
        if name is not None and self._pgconn.status != ConnStatus.BAD:
            # Also in a transaction that is broken. Nothing hangs on it: what failed is the fault to tell of.
            self._pgconn.close_prepared(name)

    def _check(self, result: Any) -> None:
        if result.status in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
            return
        if self._pgconn.status == ConnStatus.BAD:
            raise OperationalError(result.get_error_message())
        raise error_from_result(result)
