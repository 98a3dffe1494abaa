"""Fixed statements on a tenant's rows, for what every heartbeat passes.

Django builds a query anew each time it is used, which takes ten times as long as sending it. Where a path runs
hundreds of times a second, its statements are written out and run here, in the tenant's open transaction; `%(tenant)s`
is that tenant. Everywhere else, querysets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from typing import Any

from django.db import connections
from django.db.models import Model

from apps.tenants.encoding import to_json
from apps.tenants.postgresql.base import DatabaseWrapper
from apps.tenants.scope import APP, current_tenant

#: A value's place in a statement, and a percent sign that is meant.
_PLACE = re.compile(r"%\((\w+)\)s|%%")


def fetch(statement: str, **values: Any) -> list[tuple[Any, ...]]:
    """Run a statement and return its rows. Raises TenantRequired outside a tenant's transaction."""
    return run(statement, {**values, "tenant": current_tenant()}, _rows)


def change(statement: str, **values: Any) -> int:
    """Run a statement and return how many rows it changed. Raises TenantRequired outside a tenant's transaction."""
    changed: int = run(statement, {**values, "tenant": current_tenant()}, _count)
    return changed


def run[T](statement: str, values: dict[str, Any], read: Callable[[Any], T], *, binary: bool = False) -> T:
    """Run a statement with values by name, and return what `read` takes from the cursor; bytes come as they are if `binary`.

    Where statements are prepared, past Django's cursors, which take longer than the statement's way to the server and
    back; Django's own wrappers, which count statements, see it as they see the others.
    """
    connection: Any = connections[APP]
    assert isinstance(connection, DatabaseWrapper)
    raw = connection.raw_cursor()
    if raw is None:
        with connection.cursor() as cursor:
            cursor.execute(statement, values)
            return read(cursor)
    text, names = _numbered(statement)
    execute = partial(_execute, connection, raw, binary)
    for wrapper in reversed(connection.execute_wrappers):
        execute = partial(wrapper, execute)
    execute(text, [values[name] for name in names], False, {"connection": connection, "cursor": raw})
    return read(raw)


def _execute(
    connection: Any, raw: Any, binary: bool, sql: str, params: Sequence[Any], _many: bool, _context: Any
) -> None:
    with connection.wrap_database_errors:
        raw.execute(sql, params, binary=binary)


def _rows(cursor: Any) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def _count(cursor: Any) -> int:
    count: int = cursor.rowcount
    return count


@lru_cache(maxsize=2000)
def _numbered(statement: str) -> tuple[str, tuple[str, ...]]:
    """Return the statement with its values numbered, `$1` for the first, and their names in that order."""
    numbers: dict[str, int] = {}

    def numbered(place: re.Match[str]) -> str:
        if place[1] is None:
            return "%"
        return f"${numbers.setdefault(place[1], len(numbers) + 1)}"

    return _PLACE.sub(numbered, statement), tuple(numbers)


def fetch_rows[T: Model](model: type[T], condition: str, **values: Any) -> list[T]:
    """Return the tenant's rows of a model that meet a condition written in SQL, which may end in ORDER BY or FOR UPDATE.

    For models whose fields hold what the driver returns: none of JSON.
    """
    names, statement = _select_statement(model)
    return [model.from_db(APP, names, row) for row in fetch(f"{statement} AND {condition}", **values)]


def insert_rows(rows: Sequence[Model]) -> None:
    """Insert new rows of one model by one statement, the same for any number of them."""
    if rows:
        fields = [field.attname for field in type(rows[0])._meta.concrete_fields]
        change(_insert_statement(type(rows[0])), rows=_as_json(rows, fields, new=True))


def update_rows(rows: Sequence[Model], fields: tuple[str, ...]) -> None:
    """Write these fields of rows of one model by one statement, the same for any number of them."""
    if rows:
        change(_update_statement(type(rows[0]), fields), rows=_as_json(rows, ("id", *fields)))


@cache
def _select_statement(model: type[Model]) -> tuple[list[str], str]:
    fields: list[Any] = list(model._meta.concrete_fields)
    assert not any(hasattr(field, "from_db_value") for field in fields), model
    columns = ", ".join(field.column for field in fields)
    return (
        [field.attname for field in fields],
        f"SELECT {columns} FROM {model._meta.db_table} WHERE tenant_id = %(tenant)s",  # noqa: S608
    )


@cache
def _insert_statement(model: type[Model]) -> str:
    names = [str(field.column) for field in model._meta.concrete_fields]
    return (
        f"INSERT INTO {model._meta.db_table} ({', '.join(names)}) SELECT {', '.join(names)}"  # noqa: S608 (our own names)
        f" FROM jsonb_to_recordset(%(rows)s) AS new ({_columns(model, names)})"
    )


@cache
def _update_statement(model: type[Model], names: tuple[str, ...]) -> str:
    changes = ", ".join(f"{name} = new.{name}" for name in names)
    return (
        f"UPDATE {model._meta.db_table} old SET {changes}"  # noqa: S608
        f" FROM jsonb_to_recordset(%(rows)s) AS new ({_columns(model, ('id', *names))})"
        " WHERE old.tenant_id = %(tenant)s AND old.id = new.id"
    )


def _columns(model: type[Model], names: Sequence[str]) -> str:
    connection = connections[APP]
    return ", ".join(f"{name} {model._meta.get_field(name).db_type(connection)}" for name in names)


def _as_json(rows: Sequence[Model], names: Sequence[str], *, new: bool = False) -> str:
    fields: list[Any] = [type(rows[0])._meta.get_field(name) for name in names]
    return to_json([{field.attname: field.pre_save(row, new) for field in fields} for row in rows])
