"""Protect tables after a migration: roles, privileges, row-level security, keys that start with the tenant.

`protect()` is idempotent. The migrate command calls it, so each new model with a tenant gets its policy; until then the
serving roles have no privileges on the new table.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import OperationalError, connections, models, transaction
from psycopg import sql
from psycopg.errors import DeadlockDetected

from apps.tenants.checks import tenant_models
from apps.tenants.fields import OnDelete, WithinTenant
from apps.tenants.planner_statistics import seed_statistics
from apps.tenants.policies import (
    ALL_ROWS,
    OWN_MEMBERSHIPS,
    SCOPED_TENANT,
    RowPolicy,
    StatementBatch,
    create_policy,
    force_row_security,
    grant,
    limit_deletion,
    privileges_of,
    protect_installation_tables,
    role_of,
)
from apps.tenants.policy_catalog import comment_policies, read_policy_catalog
from apps.tenants.role_passwords import scram_verifier
from apps.tenants.scope import APP, OPS, OWNER, SERVING
from apps.tenants.vector_indexes import create_vector_indexes

#: The most transactions of one protection, if all but the last one deadlock.
_TRIES = 5

#: The constraints of a table by their names: the kind as in pg_constraint, and the columns in order.
type Constraints = dict[str, tuple[str, list[str]]]


def protect() -> list[str]:
    """Create or change roles, privileges, policies and keys as the models require; return the newly protected tables.

    Runs as the owner, in one transaction, under a lock that serializes concurrent migrations. While other processes run, the
    transaction may deadlock, since it locks the tables that it changes; it is repeated then.
    """
    for _ in range(_TRIES - 1):
        try:
            return _protect()
        except OperationalError as error:
            if not isinstance(error.__cause__, DeadlockDetected):
                raise
    return _protect()


def _protect() -> list[str]:
    new: list[str] = []
    with transaction.atomic(using=OWNER), connections[OWNER].cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('arbor.protect'))")
        existing = set(connections[OWNER].introspection.table_names(cursor))
        _create_roles(cursor)
        statements = StatementBatch(read_policy_catalog(cursor))
        constraints = _constraints(cursor)
        migrated = [model for model in tenant_models() if model._meta.db_table in existing]
        # A reference needs the key of the table that it refers to.
        for model in migrated:
            if _key_with_tenant(statements, model, constraints[model._meta.db_table]):
                new.append(model._meta.db_table)
        for model in migrated:
            _reference_within_tenant(statements, model, constraints[model._meta.db_table])
            _drop_implied_reference(statements, model, constraints[model._meta.db_table])
            _isolate(statements, model)
        protect_installation_tables(statements, existing)
        create_vector_indexes(statements, migrated)
        statements.run(cursor)
        comment_policies(cursor, statements.new_policies)
        seed_statistics(cursor, migrated)
    return new


def _create_roles(cursor: Any) -> None:
    # A new role has no other attributes; `checks.find_role_faults` reports a role with more.
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
        # A statement that never ends, and a transaction that was forgotten, would keep their locks for ever.
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
    """Return the limit of the serving roles' statements, and of their idle transactions, in milliseconds."""
    milliseconds: int = settings.ARBOR_STATEMENT_TIMEOUT // timedelta(milliseconds=1)
    return milliseconds


def _constraints(cursor: Any) -> dict[str, Constraints]:
    """Return the constraints of each table of the schema."""
    cursor.execute(
        "SELECT t.relname, k.conname, k.contype::text, array_agg(a.attname::text ORDER BY u.ord) FROM pg_constraint k"
        " JOIN pg_class t ON t.oid = k.conrelid AND t.relnamespace = 'public'::regnamespace"
        " CROSS JOIN LATERAL unnest(k.conkey) WITH ORDINALITY u(attnum, ord)"
        " JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.attnum GROUP BY 1, 2, 3"
    )
    constraints: defaultdict[str, Constraints] = defaultdict(dict)
    for table, name, kind, columns in cursor.fetchall():
        constraints[table][name] = (kind, columns)
    return constraints


def _key_with_tenant(statements: StatementBatch, model: type[models.Model], existing: Constraints) -> bool:
    """Change the primary key to (tenant, id); return whether it was another."""
    table = model._meta.db_table
    if isinstance(model._meta.pk, models.CompositePrimaryKey):
        return False
    key = str(model._meta.pk.column)
    for name, (kind, columns) in existing.items():
        if kind == "p" and columns == ["tenant_id", key]:
            return False
        if kind == "p":
            statements.add(
                "ALTER TABLE {} DROP CONSTRAINT {}, ADD PRIMARY KEY (tenant_id, {})", table, name, key
            )
    return True


def _reference_within_tenant(
    statements: StatementBatch, model: type[models.Model], existing: Constraints
) -> None:
    table = model._meta.db_table
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
        statements.add(
            "ALTER TABLE {} ADD CONSTRAINT {} FOREIGN KEY (tenant_id, {}) REFERENCES {} (tenant_id, {}) ON DELETE {}",
            table,
            name,
            field.column,
            target.db_table,
            str(target.pk.column),
            deleting,
        )


def _drop_implied_reference(
    statements: StatementBatch, model: type[models.Model], existing: Constraints
) -> None:
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
    for name, (kind, columns) in existing.items():
        if kind == "f" and columns == ["tenant_id"]:
            statements.add("ALTER TABLE {} DROP CONSTRAINT {}", table, name)


def _isolate(statements: StatementBatch, model: type[models.Model]) -> None:
    table = model._meta.db_table
    force_row_security(statements, table)
    match = sql.SQL("tenant_id = {}").format(SCOPED_TENANT)
    create_policy(statements, table, RowPolicy(name="tenant_isolation", role=role_of(APP), using=match))
    create_policy(statements, table, RowPolicy(name="operations", role=role_of(OPS), using=ALL_ROWS))
    limit_deletion(statements, model)
    if table == "tenants_membership":
        policy = RowPolicy(name="own_memberships", role=role_of(APP), using=OWN_MEMBERSHIPS, command="SELECT")
        create_policy(statements, table, policy)
    grant(statements, table, privileges_of(model))
