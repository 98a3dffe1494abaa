"""Handwritten statements of seeds, built from the columns of the tables: rows are read as a stream and written in bulk.

The names of tables and columns are those of the models; no text of a seed is part of a statement.
"""

from __future__ import annotations

from functools import cache

from django.db import connections, models

from apps.fleet.seeds.sections import BY_NAME, SeedSection
from apps.tenants.fields import WithinTenant
from apps.tenants.scope import APP

# Makes a transaction read the rows of one moment; it must be the first statement.
ONE_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"


@cache
def read_rows(name: str) -> str:
    """Return the statement that reads a section's rows as JSON, then each vector in binary and its model."""
    section = BY_NAME[name]
    columns = ", ".join(f't."{field.column}"' for field in section.columns)
    vectors = "".join(
        f', halfvec_send(t."{field.column}"), {_model_column(section)}' for field in section.vectors
    )
    order = ", ".join(f't."{column}"' for column in section.key) or "1"
    return (
        f"SELECT to_jsonb(r)::text{vectors} FROM {_table(section)}"  # noqa: S608 (no external input)
        f" CROSS JOIN LATERAL (SELECT {columns}) r WHERE {_of_agent(section)}{_only(section)} ORDER BY {order}"
    )


@cache
def delete_others(name: str) -> str:
    """Return the statement that deletes an agent's rows of a section except those with these ids."""
    section = BY_NAME[name]
    (key,) = section.key
    return (
        f"DELETE FROM {section.model._meta.db_table} d WHERE d.tenant_id = %(tenant)s AND d.{key} IN ("  # noqa: S608
        f"SELECT t.{key} FROM {_table(section)} WHERE {_of_agent(section)}{_only(section)}"
        f" AND NOT t.{key} = ANY(%(ids)s::uuid[]))"
    )


@cache
def delete_all(name: str) -> str:
    """Return the statement that deletes an agent's rows of a section."""
    section = BY_NAME[name]
    key = ", ".join(f't."{column}"' for column in section.key)
    if not key:
        return f"DELETE FROM {_table(section)} WHERE {_of_agent(section)}"  # noqa: S608
    return (
        f"DELETE FROM {section.model._meta.db_table} d WHERE d.tenant_id = %(tenant)s AND"  # noqa: S608
        f" ({key.replace('t.', 'd.')}) IN (SELECT {key} FROM {_table(section)}"
        f" WHERE {_of_agent(section)}{_only(section)})"
    )


@cache
def free_places(name: str) -> str:
    """Return the statement that makes room in a unique index before rows of a section are written."""
    section = BY_NAME[name]
    return f"UPDATE {section.model._meta.db_table} t SET {section.frees} t.tenant_id = %(tenant)s AND t.agent_id = %(agent)s"  # noqa: S608


@cache
def insert_rows_of(name: str, columns: tuple[str, ...]) -> str:
    """Return the statement that writes rows of a section, over existing ones unless the section is only added to."""
    section = BY_NAME[name]
    table = section.model._meta.db_table
    names = ", ".join(f'"{column}"' for column in columns)
    typed = ", ".join(f'"{column}" {_type(section, column)}' for column in columns)
    own = "tenant_id" if section.parent else "tenant_id, agent_id"
    values = ", ".join(_read_value(section, column) for column in columns)
    owner = "%(tenant)s" if section.parent else "%(tenant)s, %(agent)s::uuid"
    keys = ", ".join(["tenant_id", *(section.key or ("agent_id",))])
    changes = ", ".join(
        f'"{column}" = {_new_value(section, column)}' for column in columns if column not in section.key
    )
    owned = "" if section.parent else " WHERE t.agent_id = %(agent)s::uuid"
    conflict = "DO NOTHING" if section.appended or not changes else f"DO UPDATE SET {changes}{owned}"
    return (
        f"INSERT INTO {table} AS t ({own}, {names}) SELECT {owner}, {values}"  # noqa: S608
        f" FROM json_to_recordset(%(rows)s::json) AS new ({typed}) ON CONFLICT ({keys}) {conflict}"
    )


@cache
def update_references(name: str, column: str) -> str:
    """Return the statement that sets references between rows of one table, once all of the rows are written."""
    section = BY_NAME[name]
    return (
        f'UPDATE {section.model._meta.db_table} t SET "{column}" = r.target'  # noqa: S608
        " FROM json_to_recordset(%(rows)s::json) AS r (id uuid, target uuid)"
        " WHERE t.tenant_id = %(tenant)s AND t.id = r.id"
    )


def _read_value(section: SeedSection, column: str) -> str:
    """Return the value of a column in a new row: a vector is a slice of the numbers that are sent beside the rows."""
    if not any(field.column == column for field in section.vectors):
        return f'new."{column}"'
    end = f'(new."{column}" * %(dimension)s)'
    return f"(%(numbers)s::real[])[{end} - %(dimension)s + 1 : {end}]::halfvec"


def _new_value(section: SeedSection, column: str) -> str:
    """Return the value that a column of an existing row gets: its vector stays if its text does and the seed has no vector."""
    if column not in ("embedding", "embedding_model") or not section.vectors:
        return f'EXCLUDED."{column}"'
    text = "content" if any(field.column == "content" for field in section.columns) else "summary"
    return (
        f'CASE WHEN EXCLUDED.embedding IS NULL AND t."{text}" = EXCLUDED."{text}"'
        f' THEN t."{column}" ELSE EXCLUDED."{column}" END'
    )


def _table(section: SeedSection) -> str:
    table = f"{section.model._meta.db_table} t"
    if not section.parent:
        return table
    reference: WithinTenant = section.model._meta.get_field(section.parent)  # type: ignore[assignment]
    target: type[models.Model] = reference.remote_field.model
    return (
        f"{table} JOIN {target._meta.db_table} p ON p.tenant_id = t.tenant_id"
        f" AND p.{target._meta.pk.column} = t.{reference.column}"
    )


def _of_agent(section: SeedSection) -> str:
    owner = "p" if section.parent else "t"
    return f"t.tenant_id = %(tenant)s AND {owner}.tenant_id = %(tenant)s AND {owner}.agent_id = %(agent)s"


def _only(section: SeedSection) -> str:
    return f" AND {section.only}" if section.only else ""


def _model_column(section: SeedSection) -> str:
    names = {str(field.column) for field in section.model._meta.concrete_fields}
    return "t.embedding_model" if "embedding_model" in names else "''"


def _type(section: SeedSection, column: str) -> str:
    field = next(field for field in section.model._meta.concrete_fields if field.column == column)
    if field in section.vectors:
        return "int"
    return str(field.db_type(connections[APP]))
