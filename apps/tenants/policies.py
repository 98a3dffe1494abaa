"""Policies of row-level security and privileges of the serving roles, as statements: for tables of tenants, and of the installation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, LiteralString

from django.apps import apps
from django.conf import settings
from django.db import connections, models
from psycopg import sql

from apps.tenants.checks import tenant_models
from apps.tenants.policy_catalog import PolicyCatalog, PolicyKey
from apps.tenants.scope import ACCOUNTS, APP, OPS, SERVING, TENANT_SETTING, USER_SETTING

# No sub-select, which would add two nodes to the plan for each table. As each statement has `tenant_id = …` too, the
# planner compares the two values once per statement, not for each row.
SCOPED_TENANT = sql.SQL("nullif(current_setting({}, true), '')::uuid").format(sql.Literal(TENANT_SETTING))
SCOPED_USER = sql.SQL("(SELECT nullif(current_setting({}, true), '')::bigint)").format(
    sql.Literal(USER_SETTING)
)
OWN_MEMBERSHIPS = sql.SQL("user_id = {}").format(SCOPED_USER)
ALL_ROWS = sql.SQL("true")


class StatementBatch:
    """Statements that are sent in one round trip: protecting an installation takes eight hundred.

    What the catalog has already gets no statement, because most statements lock their table against all other use.
    """

    def __init__(self, catalog: PolicyCatalog) -> None:
        self.catalog = catalog
        #: The statements that create policies.
        self.new_policies: dict[PolicyKey, str] = {}
        self._all: list[sql.Composable] = []

    def add(self, statement: LiteralString, *parts: str | sql.Composable) -> None:
        """Add a statement to the end, with names or parts of SQL in its placeholders."""
        composed = (sql.Identifier(part) if isinstance(part, str) else part for part in parts)
        self._all.append(sql.SQL(statement).format(*composed))

    def run(self, cursor: Any) -> None:
        """Execute the statements in their order, in the cursor's transaction."""
        if self._all:
            cursor.execute(sql.SQL(";\n").join(self._all))


@dataclass(frozen=True, kw_only=True)
class RowPolicy:
    """A policy of row-level security: the rows that a role may use, for a command."""

    name: str
    role: sql.Composable
    using: sql.Composable
    command: str = "ALL"
    kind: str = "PERMISSIVE"


def role_of(alias: str) -> sql.Identifier:
    """Return the role of a connection."""
    return sql.Identifier(str(connections[alias].settings_dict["USER"]))


def force_row_security(statements: StatementBatch, table: str) -> None:
    """Enable row-level security on a table, for its owner too."""
    if table not in statements.catalog.secured:
        statements.add(
            "ALTER TABLE {0} ENABLE ROW LEVEL SECURITY; ALTER TABLE {0} FORCE ROW LEVEL SECURITY", table
        )


def create_policy(statements: StatementBatch, table: str, policy: RowPolicy) -> None:
    """Create a policy, or replace one that differs. A policy for INSERT alone has a check instead of a filter."""
    create = sql.SQL("CREATE POLICY {} ON {} AS {} FOR {} TO {} {} ({})").format(
        sql.Identifier(policy.name),
        sql.Identifier(table),
        sql.SQL(policy.kind),
        sql.SQL(policy.command),
        policy.role,
        sql.SQL("WITH CHECK" if policy.command == "INSERT" else "USING"),
        policy.using,
    )
    key = (table, policy.name)
    if statements.catalog.has_policy(key, create.as_string()):
        return
    statements.add("DROP POLICY IF EXISTS {} ON {}", policy.name, table)
    statements.add("{}", create)
    statements.new_policies[key] = create.as_string()


def limit_deletion(statements: StatementBatch, model: type[models.Model]) -> None:
    """Allow the operations role to delete only records that have reached their age (`deleted_after`).

    The age is that of the settings when the tables were last protected, by the server's clock: no code of a serving
    process, and no clock that runs ahead, deletes an audit record before its time.
    """
    record = getattr(model, "deleted_after", None)
    if record is None:
        return
    age = settings.ARBOR_HISTORY_AGES[record]
    seconds = sql.Literal(f"{age.total_seconds()} seconds") if age else sql.Literal("infinity")
    aged = sql.SQL("at < now() - {}::interval").format(seconds)
    policy = RowPolicy(
        name="deleted_by_age", role=role_of(OPS), using=aged, command="DELETE", kind="RESTRICTIVE"
    )
    create_policy(statements, model._meta.db_table, policy)


def privileges_of(model: type[models.Model]) -> dict[str, str]:
    """Return the privileges of each serving role on the model's table; none for a role that the model does not name."""
    return {
        APP: str(getattr(model, "app_privileges", "")),
        OPS: str(getattr(model, "ops_privileges", "")),
        ACCOUNTS: str(getattr(model, "accounts_privileges", "")),
    }


def grant(statements: StatementBatch, table: str, privileges: Mapping[str, str]) -> None:
    """Give each serving role exactly these privileges on a table."""
    for alias in SERVING:
        role = role_of(alias)
        # Revokes those on single columns too.
        statements.add("REVOKE ALL ON {} FROM {}", table, role)
        if privileges.get(alias):
            statements.add("GRANT {} ON {} TO {}", sql.SQL(privileges[alias]), table, role)


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
}


def protect_installation_tables(statements: StatementBatch, existing: set[str]) -> None:
    """Grant privileges on the existing tables of the installation, and restrict their rows."""
    for table, privileges in _shared_tables():
        if table in existing:
            grant(statements, table, privileges)
    own = set(tenant_models())
    for model in apps.get_models():
        if model not in own and model._meta.db_table in existing and hasattr(model, "deleted_after"):
            _protect_records(statements, model)
    for alias in SERVING:
        statements.add("GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {}", role_of(alias))
    if "tenants_tenant" in existing:
        _isolate_tenants(statements)
        _isolate_accounts(statements)


def _shared_tables() -> Iterator[tuple[str, dict[str, str]]]:
    yield from SHARED.items()
    own = set(tenant_models())
    for model in apps.get_models():
        if model not in own and hasattr(model, "app_privileges"):
            yield model._meta.db_table, privileges_of(model)


def _protect_records(statements: StatementBatch, model: type[models.Model]) -> None:
    """Protect records of the installation: the operations role alone sees them, and that of accounts adds some."""
    table = model._meta.db_table
    force_row_security(statements, table)
    create_policy(statements, table, RowPolicy(name="operations", role=role_of(OPS), using=ALL_ROWS))
    added = RowPolicy(name="accounts", role=role_of(ACCOUNTS), using=ALL_ROWS, command="INSERT")
    create_policy(statements, table, added)
    limit_deletion(statements, model)


def _isolate_tenants(statements: StatementBatch) -> None:
    """Restrict the rows of tenants to the current tenant, and to the tenants of the signed-in user."""
    table = "tenants_tenant"
    force_row_security(statements, table)
    visible = sql.SQL(
        "id = {} OR id IN (SELECT tenant_id FROM tenants_membership WHERE user_id = {})"
    ).format(SCOPED_TENANT, SCOPED_USER)
    create_policy(statements, table, RowPolicy(name="tenant_isolation", role=role_of(APP), using=visible))
    create_policy(statements, table, RowPolicy(name="operations", role=role_of(OPS), using=ALL_ROWS))


def _isolate_accounts(statements: StatementBatch) -> None:
    """Restrict the names of accounts that the serving role reads to members of the current tenant."""
    table = "tenants_user"
    force_row_security(statements, table)
    # Row-level security of memberships applies within the sub-select.
    members = sql.SQL("id IN (SELECT user_id FROM tenants_membership)")
    create_policy(statements, table, RowPolicy(name="members", role=role_of(APP), using=members))
    create_policy(statements, table, RowPolicy(name="operations", role=role_of(OPS), using=ALL_ROWS))
    create_policy(statements, table, RowPolicy(name="accounts", role=role_of(ACCOUNTS), using=ALL_ROWS))
