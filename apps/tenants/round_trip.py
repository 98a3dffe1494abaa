"""Several reads in one round trip to the server, each with its own time limit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg
from django.db import DatabaseError, connections, transaction

from apps.tenants.scope import APP, current_tenant

type Rows = list[tuple[Any, ...]]

_LIMIT = "SELECT set_config('statement_timeout', %s, true)"


@dataclass(frozen=True, kw_only=True, slots=True)
class Read:
    """A statement that only reads; `%(tenant)s` is the current tenant where its values have names."""

    name: str
    statement: str
    values: Mapping[str, Any] | Sequence[Any]
    time_limit: timedelta


@dataclass(frozen=True, kw_only=True, slots=True)
class FailedRead:
    """A read without a result."""

    error: Exception


def read_together(reads: Iterable[Read], *, setup: str = "") -> dict[str, Rows | FailedRead]:
    """Return the rows of each read by its name, in the open transaction of a tenant; `setup` runs before them.

    All reads are sent before the first answer is awaited. A read that fails or takes longer than its limit is rolled back, and the
    reads after it are sent again: one more round trip for each failure. Settings end with the reads.
    """
    waiting = list(reads)
    answers: dict[str, Rows | FailedRead] = {}
    while waiting:
        answers |= _read(waiting, setup)
        waiting = [read for read in waiting if read.name not in answers]
    return answers


def _read(reads: Sequence[Read], setup: str) -> dict[str, Rows | FailedRead]:
    """Send the reads and return the answers up to the first failure."""
    connection = connections[APP]
    cursors: dict[str, Any] = {}
    error: Exception | None = None
    # A savepoint, always rolled back: it undoes the settings, and a failure does not end the caller's transaction.
    with transaction.atomic(using=APP):
        raw: Any = connection.connection
        # The driver raises the first error while statements are sent or when the pipeline ends, where it also raises one for aborted statements.
        try:
            with raw.pipeline():
                try:
                    _send(reads, setup, cursors)
                except (DatabaseError, psycopg.Error) as raised:
                    error = raised
        except psycopg.Error as raised:
            error = error or raised
        transaction.set_rollback(True, using=APP)
    answers: dict[str, Rows | FailedRead] = {}
    for read in reads:
        cursor = cursors.get(read.name)
        if cursor is None or cursor.pgresult is None:
            if error is None:
                raise RuntimeError(f"the read {read.name} has neither rows nor an error")
            answers[read.name] = FailedRead(error=error)
            break
        answers[read.name] = cursor.fetchall()
    return answers


def _send(reads: Sequence[Read], setup: str, cursors: dict[str, Any]) -> None:
    """Send the reads without waiting for an answer, each after its time limit."""
    connection = connections[APP]
    tenant = current_tenant()
    if setup:
        connection.cursor().execute(setup)
    for read in reads:
        connection.cursor().execute(_LIMIT, [f"{read.time_limit // timedelta(milliseconds=1)}ms"])
        values = read.values
        if isinstance(values, Mapping):
            values = {**values, "tenant": tenant}
        cursors[read.name] = connection.cursor()
        cursors[read.name].execute(read.statement, values)
