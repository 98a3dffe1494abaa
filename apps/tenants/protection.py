"""Protect tables after a migration: roles, privileges, row-level security, keys that start with the tenant.

`protect()` is idempotent. The migrate command calls it, so each new model with a tenant gets its policy; until then the
serving roles have no privileges on the new table.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import connections, models, transaction
from psycopg import sql

from apps.tenants.checks import tenant_models
from apps.tenants.fields import OnDelete, WithinTenant
from apps.tenants.planner_statistics import seed_statistics
from apps.tenants.policies import (
    OWN_MEMBERSHIPS,
    SCOPED_TENANT,
    RowPolicy,
    create_policy,
    force_row_security,
    grant,
    limit_deletion,
    privileges_of,
    protect_installation_tables,
    role_of,
)
from apps.tenants.role_passwords import scram_verifier
from apps.tenants.scope import APP, OPS, OWNER, SERVING


def protect() -> list[str]:
    """Create or change roles, privileges, policies and keys as the models require; return the newly protected tables.

    Runs as the owner, in one transaction, under a lock that serializes concurrent migrations.
    """
    new: list[str] = []
    with transaction.atomic(using=OWNER), connections[OWNER].cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('arbor.protect'))")
        _create_roles(cursor)
        existing = set(connections[OWNER].introspection.table_names(cursor))
        for model in tenant_models():
            if model._meta.db_table in existing and _key_with_tenant(cursor, model):
                new.append(model._meta.db_table)
        for model in tenant_models():
            if model._meta.db_table in existing:
                _reference_within_tenant(cursor, model)
                _drop_implied_reference(cursor, model)
                _isolate(cursor, model)
        seed_statistics(cursor, [model for model in tenant_models() if model._meta.db_table in existing])
        protect_installation_tables(cursor, existing)
    return new


def _create_roles(cursor: Any) -> None:
    # A new role has no other attributes; `checks.unsafe_role` reports a role with more.
    for alias in SERVING:
        name, password = (str(connections[alias].settings_dict[key]) for key in ("USER", "PASSWORD"))
        cursor.execute("SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = %s)", [name])
        verb = sql.SQL("ALTER" if cursor.fetchone()[0] else "CREATE")
        cursor.execute(
            sql.SQL("{} ROLE {} LOGIN PASSWORD {}").format(
                verb,
                sql.Identifier(name),
                sql.Literal(scram_verifier(connections[OWNER].connection, name, password)),
            )
        )
        # A statement that never ends, and a transaction that was forgotten, would hold their locks for ever.
        for limit in ("statement_timeout", "idle_in_transaction_session_timeout"):
            cursor.execute(
                sql.SQL("ALTER ROLE {} SET {} = {}").format(
                    sql.Identifier(name), sql.Identifier(limit), sql.Literal(statement_timeout_ms())
                )
            )
        cursor.execute(
            sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(
                sql.Identifier(connections[OWNER].settings_dict["NAME"]), sql.Identifier(name)
            )
        )
        cursor.execute(sql.SQL("GRANT USAGE ON SCHEMA public TO {}").format(sql.Identifier(name)))


def statement_timeout_ms() -> int:
    """Return the limit of the serving roles' statements."""
    milliseconds: int = settings.ARBOR_STATEMENT_TIMEOUT // timedelta(milliseconds=1)
    return milliseconds


def _constraints(cursor: Any, table: str) -> dict[str, tuple[str, list[str]]]:
    cursor.execute(
        "SELECT k.conname, k.contype::text, array_agg(a.attname::text ORDER BY u.ord) FROM pg_constraint k"
        " CROSS JOIN LATERAL unnest(k.conkey) WITH ORDINALITY u(attnum, ord)"
        " JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.attnum"
        " WHERE k.conrelid = %s::regclass GROUP BY 1, 2",
        [table],
    )
    return {name: (kind, columns) for name, kind, columns in cursor.fetchall()}


def _key_with_tenant(cursor: Any, model: type[models.Model]) -> bool:
    """Change the primary key to (tenant, id); return whether it was another."""
    table = model._meta.db_table
    if isinstance(model._meta.pk, models.CompositePrimaryKey):
        return False
    key = str(model._meta.pk.column)
    for name, (kind, columns) in _constraints(cursor, table).items():
        if kind == "p" and columns == ["tenant_id", key]:
            return False
        if kind == "p":
            cursor.execute(
                sql.SQL("ALTER TABLE {} DROP CONSTRAINT {}, ADD PRIMARY KEY (tenant_id, {})").format(
                    sql.Identifier(table), sql.Identifier(name), sql.Identifier(key)
                )
            )
    return True


def _reference_within_tenant(cursor: Any, model: type[models.Model]) -> None:
    table = model._meta.db_table
    existing = _constraints(cursor, table)
    for field in model._meta.concrete_fields:
        if not isinstance(field, WithinTenant):
            continue
        name = f"{table}_{field.column}_in_tenant"[:63]
        if name in existing:
            continue
        target = field.remote_field.model._meta
        # `SET NULL` must name the column, or it would empty the tenant too.
        deleting = (
            sql.SQL("SET NULL ({})").format(sql.Identifier(field.column))
            if field.deleting is OnDelete.SET_NULL
            else sql.SQL("CASCADE")
        )
        cursor.execute(
            sql.SQL(
                "ALTER TABLE {} ADD CONSTRAINT {} FOREIGN KEY (tenant_id, {}) REFERENCES {} (tenant_id, {}) ON DELETE {}"
            ).format(
                sql.Identifier(table),
                sql.Identifier(name),
                sql.Identifier(field.column),
                sql.Identifier(target.db_table),
                sql.Identifier(str(target.pk.column)),
                deleting,
            )
        )


def _drop_implied_reference(cursor: Any, model: type[models.Model]) -> None:
    """Drop a table's own reference to the tenant where each row refers to another one of the same tenant.

    That other row proves that the tenant exists. A second check would cost a look-up per written row, and a lock on the
    tenant's row, which all transactions of the tenant share.
    """
    implied = any(
        isinstance(field, WithinTenant) and not field.null and field.remote_field.model is not model
        for field in model._meta.concrete_fields
    )
    if not implied:
        return
    table = model._meta.db_table
    for name, (kind, columns) in _constraints(cursor, table).items():
        if kind == "f" and columns == ["tenant_id"]:
            cursor.execute(
                sql.SQL("ALTER TABLE {} DROP CONSTRAINT {}").format(
                    sql.Identifier(table), sql.Identifier(name)
                )
            )


def _isolate(cursor: Any, model: type[models.Model]) -> None:
    table = model._meta.db_table
    force_row_security(cursor, table)
    match = sql.SQL("tenant_id = {}").format(SCOPED_TENANT)
    create_policy(cursor, table, RowPolicy(name="tenant_isolation", role=role_of(APP), using=match))
    create_policy(cursor, table, RowPolicy(name="operations", role=role_of(OPS), using=sql.SQL("true")))
    limit_deletion(cursor, model)
    if table == "tenants_membership":
        policy = RowPolicy(name="own_memberships", role=role_of(APP), using=OWN_MEMBERSHIPS, command="SELECT")
        create_policy(cursor, table, policy)
    grant(cursor, table, privileges_of(model))
