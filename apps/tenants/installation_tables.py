"""Protect the tables of the installation: accounts, sessions, tenants, and the records of acts on all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.db import models
from psycopg import sql

from apps.tenants.checks import tenant_models
from apps.tenants.policies import (
    ALL_ROWS,
    SCOPED_TENANT,
    SCOPED_USER,
    RowPolicy,
    create_policy,
    force_row_security,
    grant,
    limit_deletion,
    privileges_of,
    role_of,
)
from apps.tenants.scope import ACCOUNTS, APP, OPS, SERVING

_READ = dict.fromkeys(SERVING, "SELECT")
#: The privileges of the serving roles on tables without a model of Arbor's that could name them.
SHARED: dict[str, dict[str, str]] = {
    "django_migrations": _READ,
    "django_content_type": _READ,
    # Not in use: `tenants.ConsoleSession` knows whose a session is.
    "django_session": {},
    "auth_permission": {ACCOUNTS: "SELECT"},
    "auth_group": {ACCOUNTS: "SELECT"},
    "auth_group_permissions": {ACCOUNTS: "SELECT"},
    "tenants_user_groups": {ACCOUNTS: "SELECT"},
    "tenants_user_user_permissions": {ACCOUNTS: "SELECT"},
    "tenants_tenant": {APP: "SELECT", OPS: "SELECT, INSERT, UPDATE, DELETE"},
}


def protect_installation_tables(cursor: Any, existing: set[str]) -> None:
    """Grant privileges on the existing tables of the installation, and restrict their rows."""
    for table, privileges in _shared_tables():
        if table in existing:
            grant(cursor, table, privileges)
    own = set(tenant_models())
    for model in apps.get_models():
        if model not in own and model._meta.db_table in existing and hasattr(model, "deleted_after"):
            _protect_records(cursor, model)
    for alias in SERVING:
        cursor.execute(sql.SQL("GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {}").format(role_of(alias)))
    if "tenants_tenant" in existing:
        _isolate_tenants(cursor)
        _isolate_accounts(cursor)


def _shared_tables() -> Iterator[tuple[str, dict[str, str]]]:
    yield from SHARED.items()
    own = set(tenant_models())
    for model in apps.get_models():
        if model not in own and hasattr(model, "app_privileges"):
            yield model._meta.db_table, privileges_of(model)


def _protect_records(cursor: Any, model: type[models.Model]) -> None:
    """Protect records of the installation: the operations role alone sees them, and that of accounts adds some."""
    table = model._meta.db_table
    force_row_security(cursor, table)
    create_policy(cursor, table, RowPolicy(name="operations", role=role_of(OPS), using=ALL_ROWS))
    added = RowPolicy(name="accounts", role=role_of(ACCOUNTS), using=ALL_ROWS, command="INSERT")
    create_policy(cursor, table, added)
    limit_deletion(cursor, model)


def _isolate_tenants(cursor: Any) -> None:
    """Restrict the rows of tenants to the current tenant, and to the tenants of the signed-in user."""
    table = "tenants_tenant"
    force_row_security(cursor, table)
    visible = sql.SQL(
        "id = {} OR id IN (SELECT tenant_id FROM tenants_membership WHERE user_id = {})"
    ).format(SCOPED_TENANT, SCOPED_USER)
    create_policy(cursor, table, RowPolicy(name="tenant_isolation", role=role_of(APP), using=visible))
    create_policy(cursor, table, RowPolicy(name="operations", role=role_of(OPS), using=ALL_ROWS))


def _isolate_accounts(cursor: Any) -> None:
    """Restrict the names of accounts that the serving role reads to members of the current tenant."""
    table = "tenants_user"
    force_row_security(cursor, table)
    # Row-level security of memberships applies within the sub-select.
    members = sql.SQL("id IN (SELECT user_id FROM tenants_membership)")
    create_policy(cursor, table, RowPolicy(name="members", role=role_of(APP), using=members))
    create_policy(cursor, table, RowPolicy(name="operations", role=role_of(OPS), using=ALL_ROWS))
    create_policy(cursor, table, RowPolicy(name="accounts", role=role_of(ACCOUNTS), using=ALL_ROWS))
