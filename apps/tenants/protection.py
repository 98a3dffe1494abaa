"""Protect tables after a migration: roles, privileges, row-level security, keys that start with the tenant.

`protect()` is idempotent. The migrate command calls it, so each new model with a tenant gets its policy; until then the
serving roles have no privileges on the new table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db import connections, models, transaction
from psycopg import sql

from apps.tenants.checks import tenant_models
from apps.tenants.fields import OnDelete, WithinTenant
from apps.tenants.planner_statistics import seed_statistics
from apps.tenants.role_passwords import scram_verifier
from apps.tenants.scope import APP, OPS, TENANT_SETTING, USER_SETTING

OWNER = "owner"
#: Tables that belong to the installation, with the privileges of the two serving roles, APP and OPS.
SHARED: dict[str, tuple[str, str]] = {
    "django_migrations": ("SELECT", "SELECT"),
    "django_content_type": ("SELECT", "SELECT"),
    # Unused: sessions are stored as `tenants.ConsoleSession`, which names the user.
    "django_session": ("", ""),
    "auth_permission": ("SELECT", "SELECT"),
    "auth_group": ("SELECT", "SELECT"),
    "auth_group_permissions": ("SELECT", "SELECT"),
    # A sign-in writes its time, and users change their passwords; their rights can only be changed through OPS.
    "tenants_user": ("SELECT, UPDATE (last_login, password)", "SELECT, INSERT, UPDATE, DELETE"),
    "tenants_user_groups": ("SELECT", "SELECT, INSERT, DELETE"),
    "tenants_user_user_permissions": ("SELECT", "SELECT, INSERT, DELETE"),
    "tenants_tenant": ("SELECT", "SELECT, INSERT, UPDATE, DELETE"),
}
# No sub-select, which would add two nodes to the plan for each table. As each statement has `tenant_id = …` too, the
# planner compares the two values once per statement, not for each row.
_SCOPED_TENANT = sql.SQL("nullif(current_setting({}, true), '')::uuid").format(sql.Literal(TENANT_SETTING))
_SCOPED_USER = sql.SQL("(SELECT nullif(current_setting({}, true), '')::bigint)").format(
    sql.Literal(USER_SETTING)
)


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
        _share(cursor, existing)
    return new


def _roles() -> dict[str, str]:
    return {
        str(connections[alias].settings_dict["USER"]): str(connections[alias].settings_dict["PASSWORD"])
        for alias in (APP, OPS)
    }


def _create_roles(cursor: Any) -> None:
    # A new role has no other attributes; `checks.unsafe_role` reports a role with more.
    for name, password in _roles().items():
        cursor.execute("SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = %s)", [name])
        verb = sql.SQL("ALTER" if cursor.fetchone()[0] else "CREATE")
        cursor.execute(
            sql.SQL("{} ROLE {} LOGIN PASSWORD {}").format(
                verb,
                sql.Identifier(name),
                sql.Literal(scram_verifier(connections[OWNER].connection, name, password)),
            )
        )
        # Without these limits, a hanging statement or an abandoned transaction would never release its locks.
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
    table = sql.Identifier(model._meta.db_table)
    cursor.execute(
        sql.SQL("ALTER TABLE {0} ENABLE ROW LEVEL SECURITY; ALTER TABLE {0} FORCE ROW LEVEL SECURITY").format(
            table
        )
    )
    app, ops = (sql.Identifier(name) for name in _roles())
    match = sql.SQL("tenant_id = {}").format(_SCOPED_TENANT)
    _create_policy(cursor, table, _Policy(name="tenant_isolation", role=app, using=match))
    _create_policy(cursor, table, _Policy(name="operations", role=ops, using=sql.SQL("true")))
    _limit_deletion(cursor, model, ops)
    if model._meta.db_table == "tenants_membership":
        own = sql.SQL("user_id = {}").format(_SCOPED_USER)
        policy = _Policy(name="own_memberships", role=app, using=own, command="SELECT")
        _create_policy(cursor, table, policy)
    _grant(
        cursor, table, str(getattr(model, "app_privileges", "")), str(getattr(model, "ops_privileges", ""))
    )


def _limit_deletion(cursor: Any, model: type[models.Model], ops: sql.Composable) -> None:
    """Limit the operations role to deleting records that have reached their age (`deleted_after`).

    The age is that of the settings when the tables were last protected, by the server's clock: no code of a serving
    process, and no clock that runs ahead, deletes an audit record before its time.
    """
    record = getattr(model, "deleted_after", None)
    if record is None:
        return
    age = settings.ARBOR_HISTORY_AGES[record]
    seconds = sql.Literal(f"{age.total_seconds()} seconds") if age else sql.Literal("infinity")
    aged = sql.SQL("at < now() - {}::interval").format(seconds)
    policy = _Policy(name="deleted_by_age", role=ops, using=aged, command="DELETE", kind="RESTRICTIVE")
    _create_policy(cursor, sql.Identifier(model._meta.db_table), policy)


@dataclass(frozen=True, kw_only=True)
class _Policy:
    """A policy of row-level security: the rows that a role may use, for a command."""

    name: str
    role: sql.Composable
    using: sql.Composable
    command: str = "ALL"
    kind: str = "PERMISSIVE"


def _create_policy(cursor: Any, table: sql.Composable, policy: _Policy) -> None:
    name = sql.Identifier(policy.name)
    cursor.execute(sql.SQL("DROP POLICY IF EXISTS {} ON {}").format(name, table))
    cursor.execute(
        sql.SQL("CREATE POLICY {} ON {} AS {} FOR {} TO {} USING ({})").format(
            name, table, sql.SQL(policy.kind), sql.SQL(policy.command), policy.role, policy.using
        )
    )


def _grant(cursor: Any, table: sql.Composable, app_privileges: str, ops_privileges: str) -> None:
    for name, privileges in zip(_roles(), (app_privileges, ops_privileges), strict=True):
        role = sql.Identifier(name)
        cursor.execute(sql.SQL("REVOKE ALL ON {} FROM {}").format(table, role))
        if privileges:
            cursor.execute(sql.SQL("GRANT {} ON {} TO {}").format(sql.SQL(privileges), table, role))


def _share(cursor: Any, existing: set[str]) -> None:
    for table, (app_privileges, ops_privileges) in _shared_tables():
        if table in existing:
            _grant(cursor, sql.Identifier(table), app_privileges, ops_privileges)
    own = set(tenant_models())
    for model in apps.get_models():
        if model not in own and model._meta.db_table in existing and hasattr(model, "deleted_after"):
            _protect_records(cursor, model)
    for role in _roles():
        cursor.execute(
            sql.SQL("GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {}").format(sql.Identifier(role))
        )
    if "tenants_tenant" in existing:
        _isolate_tenants(cursor)


def _protect_records(cursor: Any, model: type[models.Model]) -> None:
    """Protect records of the installation, which the operations role alone sees."""
    table = sql.Identifier(model._meta.db_table)
    cursor.execute(
        sql.SQL("ALTER TABLE {0} ENABLE ROW LEVEL SECURITY; ALTER TABLE {0} FORCE ROW LEVEL SECURITY").format(
            table
        )
    )
    _, ops = (sql.Identifier(name) for name in _roles())
    _create_policy(cursor, table, _Policy(name="operations", role=ops, using=sql.SQL("true")))
    _limit_deletion(cursor, model, ops)


def _shared_tables() -> Iterator[tuple[str, tuple[str, str]]]:
    yield from SHARED.items()
    own = set(tenant_models())
    for model in apps.get_models():
        if model not in own and hasattr(model, "app_privileges"):
            yield model._meta.db_table, (model.app_privileges, str(getattr(model, "ops_privileges", "")))


def _isolate_tenants(cursor: Any) -> None:
    """Restrict the rows of tenants to the current tenant, and to the tenants of the signed-in user."""
    table = sql.Identifier("tenants_tenant")
    app, ops = (sql.Identifier(name) for name in _roles())
    cursor.execute(
        sql.SQL("ALTER TABLE {0} ENABLE ROW LEVEL SECURITY; ALTER TABLE {0} FORCE ROW LEVEL SECURITY").format(
            table
        )
    )
    visible = sql.SQL(
        "id = {} OR id IN (SELECT tenant_id FROM tenants_membership WHERE user_id = {})"
    ).format(_SCOPED_TENANT, _SCOPED_USER)
    _create_policy(cursor, table, _Policy(name="tenant_isolation", role=app, using=visible))
    _create_policy(cursor, table, _Policy(name="operations", role=ops, using=sql.SQL("true")))
