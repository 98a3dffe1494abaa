"""Execute fixed SQL statements on a tenant's rows, for the paths that each heartbeat takes.

Django compiles a queryset each time it is used, which takes ten times as long as sending the statement. Statements of
paths that run hundreds of times a second are therefore written in SQL and executed here, in the tenant's open
transaction; `%(tenant)s` is that tenant. All other code uses querysets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import Any
from uuid import UUID

from django.db import connections
from django.db.models import JSONField, Model

from apps.tenants.encoding import to_json
from apps.tenants.fields import PackedJSON
from apps.tenants.packing import in_json, pack, sql_literal
from apps.tenants.postgresql.arrays import Blobs
from apps.tenants.postgresql.base import DatabaseWrapper
from apps.tenants.scope import APP, current_tenant

#: A placeholder in a statement, or an escaped percent sign.
_PLACE = re.compile(r"%\((\w+)\)s|%%")


def fetch(statement: str, **values: Any) -> list[tuple[Any, ...]]:
    """Run a statement and return its rows. Raises TenantRequired outside a tenant's transaction."""
    return run(statement, {**values, "tenant": current_tenant()}, all_rows)


def change(statement: str, **values: Any) -> int:
    """Run a statement and return how many rows it changed. Raises TenantRequired outside a tenant's transaction."""
    changed: int = run(statement, {**values, "tenant": current_tenant()}, _count)
    return changed


def run[T](statement: str, values: dict[str, Any], read: Callable[[Any], T], *, binary: bool = False) -> T:
    """Run a statement with named values and return the result of `read(cursor)`; `binary` requests binary results.

    Prepared statements bypass Django's cursors, which take longer than the round trip to the server. Django's execute
    wrappers, which count statements, are called as usual.
    """
    connection: Any = connections[APP]
    assert isinstance(connection, DatabaseWrapper)
    raw = connection.fixed_statements()
    if raw is None:
        with connection.cursor() as cursor:
            cursor.execute(statement, values)
            return read(cursor)
    text, names = _numbered(statement)
    adapted = [_adapt_list(values[name]) for name in names]
    if not connection.execute_wrappers:
        with connection.wrap_database_errors:
            raw.execute(text, adapted, binary=binary)
        return read(raw)
    execute = partial(_execute, connection, raw, binary)
    for wrapper in reversed(connection.execute_wrappers):
        execute = partial(wrapper, execute)
    execute(text, adapted, False, {"connection": connection, "cursor": raw})
    return read(raw)


def all_rows(cursor: Any) -> list[tuple[Any, ...]]:
    """Return all rows of a cursor."""
    rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def _adapt_list(value: Any) -> Any:
    """Format a list of ids, numbers or bytes as a PostgreSQL array; the driver would adapt each item."""
    if type(value) is list and value:
        types = set(map(type, value))
        if types == _IDS:
            # Hexadecimal without hyphens is faster to format.
            return f"{{{','.join([row_id.hex for row_id in value])}}}"
        if types <= _PLAIN:
            return f"{{{','.join(map(str, value))}}}"
        if bytes in types and types <= _BLOBS:
            return Blobs(value)
    return value


_IDS = frozenset({UUID})
_PLAIN = frozenset({UUID, int, float})
_BLOBS = frozenset({bytes, type(None)})


def _execute(
    connection: Any, raw: Any, binary: bool, sql: str, params: Sequence[Any], _many: bool, _context: Any
) -> None:
    with connection.wrap_database_errors:
        raw.execute(sql, params, binary=binary)


def _count(cursor: Any) -> int:
    count: int = cursor.rowcount
    return count


@lru_cache(maxsize=2000)
def _numbered(statement: str) -> tuple[str, tuple[str, ...]]:
    """Return the statement with its values numbered, `$1` for the first, and their names in that order."""
    numbers: dict[str, int] = {}

    def number_of(place: re.Match[str]) -> str:
        if place[1] is None:
            return "%"
        return f"${numbers.setdefault(place[1], len(numbers) + 1)}"

    return _PLACE.sub(number_of, statement), tuple(numbers)


def insert_rows(rows: Sequence[Model]) -> None:
    """Insert new rows of one model by one statement, the same for any number of them."""
    if rows:
        names = _inserted(type(rows[0]))
        change(_insert_of_columns(type(rows[0]), names), rows=_as_json(rows, names))


def _default(field: Any) -> str:
    value = field.get_default()
    if isinstance(field, PackedJSON):
        return sql_literal(value)
    if isinstance(field, JSONField):
        value = to_json(value)
    if isinstance(value, str):
        return "'" + value.replace("'", "''").replace("%", "%%") + "'"
    return str(value)


@cache
def _inserted(model: type[Model]) -> tuple[str, ...]:
    """Return the columns of a new row: all but the generated ones."""
    return tuple(str(field.column) for field in model._meta.concrete_fields if not field.generated)


def _columns(model: type[Model], names: Sequence[str]) -> str:
    connection = connections[APP]
    return ", ".join(f"{name} {model._meta.get_field(name).db_type(connection)}" for name in names)


def _as_json(rows: Sequence[Model], names: Sequence[str]) -> str:
    fields: list[Any] = [type(rows[0])._meta.get_field(name) for name in names]
    return to_json(
        [{field.attname: _in_json(field, field.pre_save(row, True)) for field in fields} for row in rows]
    )


def _in_json(field: Any, value: Any) -> Any:
    """Return a field's value for a row in JSON; packed bytes in PostgreSQL's hexadecimal format."""
    return in_json(pack(value)) if isinstance(field, PackedJSON) and value is not None else value


def write_values(
    inserted: Sequence[tuple[type[Model], Sequence[Mapping[str, Any]]]],
    updated: Sequence[tuple[type[Model], Sequence[Mapping[str, Any]]]],
) -> None:
    """Update, then insert rows of several models, given as values by column, by at most two statements.

    All rows of one model have the same columns. An updated row has its `id`. A new row belongs to the current tenant, and
    its missing columns get their defaults. New rows may refer to each other: PostgreSQL checks references at the end.
    """
    updates = [
        (
            _update_of_columns(model, tuple(rows[0])),
            {"rows": to_json(rows), "ids": [row["id"] for row in rows]},
        )
        for model, rows in updated
        if rows
    ]
    _run_together(updates)
    inserts = [
        (_insert_of_columns(model, tuple(rows[0])), {"rows": to_json(rows)})
        for model, rows in inserted
        if rows
    ]
    _run_together(inserts)


@cache
def _insert_of_columns(model: type[Model], names: tuple[str, ...]) -> str:
    fields: list[Any] = list(model._meta.concrete_fields)
    values = {"tenant_id": "%(tenant)s", **{name: f"new.{name}" for name in names}} | {
        field.attname: _default(field)
        for field in fields
        if not (
            field.attname in ("tenant_id", *names) or field.null or field.generated or field.has_db_default()
        )
    }
    return (
        f"INSERT INTO {model._meta.db_table} ({', '.join(values)}) SELECT {', '.join(values.values())}"  # noqa: S608
        f" FROM json_to_recordset(%(rows)s) AS new ({_columns(model, names)})"
    )


@cache
def _update_of_columns(model: type[Model], names: tuple[str, ...]) -> str:
    # The ids are repeated because the planner cannot estimate rows of JSON, and would read all rows of the tenant.
    changes = ", ".join(f"{name} = new.{name}" for name in names if name != "id")
    return (
        f"UPDATE {model._meta.db_table} old SET {changes}"  # noqa: S608 (no external input)
        f" FROM json_to_recordset(%(rows)s) AS new ({_columns(model, names)})"
        " WHERE old.tenant_id = %(tenant)s AND old.id = new.id AND old.id = ANY(%(ids)s::uuid[])"
    )


def _run_together(writes: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
    """Run writes to different tables as one statement; the names of their values are numbered to be unique."""
    if not writes:
        return
    values: dict[str, Any] = {}
    numbered: list[str] = []
    for place, (statement, own) in enumerate(writes):
        for name, value in own.items():
            statement = statement.replace(f"%({name})s", f"%({name}{place})s")
            values[f"{name}{place}"] = value
        numbered.append(statement)
    *before, last = numbered
    parts = ", ".join(f"write{place} AS ({statement})" for place, statement in enumerate(before))
    change(f"WITH {parts} {last}" if parts else last, **values)
