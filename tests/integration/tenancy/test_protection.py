"""Protection of each table with a tenant: tables of models, of no model, and of future models."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from datetime import timedelta
from typing import Any, ClassVar
from uuid import uuid4

import psycopg
import pytest
from django.core.management import call_command
from django.db import OperationalError, ProgrammingError, connection, connections, models, transaction
from django.test.utils import isolate_apps

from apps.agents.models import Agent
from apps.tenants import checks
from apps.tenants.checks import check_models, find_table_faults, tenant_models
from apps.tenants.fields import TenantForeignKey
from apps.tenants.models import TenantModel
from apps.tenants.policies import StatementBatch
from apps.tenants.protection import protect
from apps.tenants.scope import OWNER
from config.servers.postgres import EmbeddedPostgres
from tests.integration.tenancy.conftest import fetch_raw

#: All tables, views and the like outside PostgreSQL's own schemas that have a column `tenant_id`, without temporary ones.
WITH_TENANT = (
    "SELECT c.oid, c.relname, c.relkind::text, c.relrowsecurity AND c.relforcerowsecurity FROM pg_class c"
    " JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid"
    " WHERE a.attname = 'tenant_id' AND c.relkind IN ('r', 'p', 'v', 'm', 'f')"
    " AND c.relpersistence <> 't' AND n.nspname NOT IN ('pg_catalog', 'information_schema') ORDER BY 2"
)
#: Each key or reference with its columns in order; a reference with the columns of the other table as well.
KEYS = (
    "SELECT k.conname, k.contype::text, k.conrelid, k.confrelid,"
    " ARRAY(SELECT a.attname::text FROM unnest(k.conkey) WITH ORDINALITY u(n, o)"
    "  JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.n ORDER BY u.o),"
    " ARRAY(SELECT a.attname::text FROM unnest(k.confkey) WITH ORDINALITY u(n, o)"
    "  JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = u.n ORDER BY u.o)"
    " FROM pg_constraint k WHERE k.contype IN ('p', 'f', 'u')"
)
UNIQUE_INDEXES = (
    "SELECT i.indexrelid::regclass::text, i.indrelid, a.attname::text FROM pg_index i"
    " JOIN pg_attribute a ON a.attrelid = i.indexrelid AND a.attnum = 1 WHERE i.indisunique"
)
POLICIES = (
    "SELECT c.oid, p.polname, p.polcmd::text, p.polpermissive, array_agg(r.rolname::text),"
    " pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid)"
    " FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid LEFT JOIN pg_roles r ON r.oid = ANY (p.polroles)"
    " GROUP BY 1, 2, 3, 4, 6, 7 ORDER BY 1, 2"
)


def test_the_tables_with_a_tenant_are_those_of_its_models(database: None) -> None:
    known = {model._meta.db_table for model in tenant_models()}
    assert {name for _, name, _, _ in fetch_raw(WITH_TENANT)} == known
    assert len(known) >= 19


def test_every_table_with_a_tenant_forces_row_security(database: None) -> None:
    # A view would run as its owner, whom row-level security does not bind.
    assert [row for row in fetch_raw(WITH_TENANT) if row[2] not in "rp" or not row[3]] == []


def test_every_table_has_the_known_policies_and_no_other(database: None) -> None:
    scoped = "(NULLIF(current_setting('arbor.tenant_id'::text, true), ''::text))::uuid"
    policies: dict[int, set[str]] = {}
    for table, name, command, permissive, roles, using, check in fetch_raw(POLICIES):
        policies.setdefault(table, set()).add(name)
        assert permissive == (name != "deleted_by_age")
        if command != "a":
            assert check is None, "without a check of its own, what may be read is what may be written"
        if name == "tenant_isolation":
            assert (roles, command) == (["arbor_app"], "*")
            assert scoped in using
        elif name == "operations":
            assert (roles, using) == (["arbor_ops"], "true")
        elif name == "deleted_by_age":
            assert (roles, command) == (["arbor_ops"], "d")
            assert using.startswith("(at < (now() - ")
        elif name == "accounts":
            assert roles == ["arbor_accounts"]
            assert (command, using or check) in (("*", "true"), ("a", "true"))
        elif name == "members":
            assert (roles, command) == (["arbor_app"], "*")
            assert "tenants_membership" in using
        else:
            assert (name, command, roles) == ("own_memberships", "r", ["arbor_app"])
    for table, name, _, _ in fetch_raw(WITH_TENANT):
        own = {"own_memberships"} if name == "tenants_membership" else set()
        aged = ("audit_auditevent", "audit_sealedblock", "calls_ledgerentry", "signals_signalbatch")
        own |= {"deleted_by_age"} if name in aged else set()
        assert policies[table] == {"tenant_isolation", "operations"} | own


def test_every_key_and_reference_begins_with_the_tenant(database: None) -> None:
    tables = {oid: name for oid, name, _, _ in fetch_raw(WITH_TENANT)}
    primary = set()
    for name, kind, table, target, columns, target_columns in fetch_raw(KEYS):
        if table not in tables:
            continue
        if kind == "f" and target not in tables:
            # Only the tenant itself and the user of a membership are outside.
            assert columns in (["tenant_id"], ["user_id"]), name
            continue
        assert columns[0] == "tenant_id", name
        if kind == "f":
            assert target_columns[0] == "tenant_id", name
        if kind == "p":
            primary.add(table)
    assert primary == set(tables)


def test_every_row_has_a_tenant_that_exists(database: None) -> None:
    """Check that a table refers to the tenant, or to a table that does."""
    tables = {oid for oid, *_ in fetch_raw(WITH_TENANT)}
    needed = set(fetch_raw("SELECT attrelid, attname FROM pg_attribute WHERE attnotnull"))
    direct: set[int] = set()
    implied: dict[int, set[int]] = {}
    for _, kind, table, target, columns, _ in fetch_raw(KEYS):
        if kind != "f" or table not in tables:
            continue
        if target not in tables and columns == ["tenant_id"]:
            direct.add(table)
        elif len(columns) == 2 and columns[0] == "tenant_id" and (table, columns[1]) in needed:
            implied.setdefault(table, set()).add(target)
    assert not direct & implied.keys(), "what is implied is not checked twice"
    checked = direct
    while more := {table for table, targets in implied.items() if targets & checked} - checked:
        checked |= more
    # A check of signals would lock the tenant's row for all that its agents write (decision 21).
    unchecked = {oid for oid, name, *_ in fetch_raw(WITH_TENANT) if name == "signals_signalbatch"}
    assert checked == tables - unchecked


def test_a_row_of_a_tenant_that_does_not_exist_is_refused(database: None, postgres: EmbeddedPostgres) -> None:
    insert = "INSERT INTO calls_dailyusage (tenant_id, id, agent_id, day) VALUES (%s, %s, %s, now())"
    with (
        psycopg.connect(postgres.superuser_url) as session,
        pytest.raises(psycopg.errors.ForeignKeyViolation),
    ):
        session.execute(insert, [uuid4(), uuid4(), uuid4()])


def test_every_unique_index_begins_with_the_tenant(database: None) -> None:
    tables = {oid for oid, *_ in fetch_raw(WITH_TENANT)}
    assert [
        name for name, table, first in fetch_raw(UNIQUE_INDEXES) if table in tables and first != "tenant_id"
    ] == []


def test_every_reference_of_a_model_is_in_the_database(database: None) -> None:
    present = {name for name, kind, *_ in fetch_raw(KEYS) if kind == "f"}
    for model in tenant_models():
        for field in model._meta.concrete_fields:
            if isinstance(field, TenantForeignKey):
                assert f"{model._meta.db_table}_{field.column}_in_tenant"[:63] in present


def test_the_installation_passes_its_own_checks(database: None) -> None:
    assert find_table_faults() == []
    call_command("check", databases=["default"], verbosity=0)


# --- A future model ----------------------------------------------------------------------------------


@pytest.fixture
def unprotected_model(database: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[TenantModel]]:
    """Return a new model with a table that is not yet protected."""
    with isolate_apps("apps.tenants") as registry:

        class Diary(TenantModel):
            id = models.UUIDField(primary_key=True)
            agent = TenantForeignKey(Agent, related_name="+")
            text = models.TextField()

            class Meta(TenantModel.Meta):
                app_label = "tenants"

        known = [*tenant_models(), Diary]
        monkeypatch.setattr(checks, "apps", registry)
        monkeypatch.setattr(registry, "get_models", lambda **_: known)
        with connections[OWNER].schema_editor() as editor:
            editor.create_model(Diary)
        try:
            yield Diary
        finally:
            connection.close()
            with connections[OWNER].schema_editor() as editor:
                editor.delete_model(Diary)


def test_a_new_model_is_named_until_it_is_protected(unprotected_model: type[TenantModel]) -> None:
    faults = find_table_faults()
    assert len(faults) == 3
    assert all(fault.startswith("tenants_diary has ") for fault in faults)
    with pytest.raises(ProgrammingError, match="permission denied"):
        fetch_raw("SELECT * FROM tenants_diary")

    assert protect() == ["tenants_diary"]

    assert find_table_faults() == []
    assert fetch_raw("SELECT * FROM tenants_diary") == []
    test_every_key_and_reference_begins_with_the_tenant(None)
    test_every_row_has_a_tenant_that_exists(None)
    test_every_table_has_the_known_policies_and_no_other(None)


def test_the_checks_fail_for_an_unprotected_model(unprotected_model: type[TenantModel]) -> None:
    for check in (
        test_every_table_with_a_tenant_forces_row_security,
        test_every_key_and_reference_begins_with_the_tenant,
    ):
        with pytest.raises(AssertionError):
            check(None)
    with pytest.raises(KeyError):
        test_every_table_has_the_known_policies_and_no_other(None)


def test_a_table_that_no_model_knows_is_named(database: None) -> None:
    with connections[OWNER].cursor() as cursor:
        cursor.execute("CREATE TABLE forgotten (tenant_id uuid NOT NULL, text text)")
        try:
            assert [fault for fault in find_table_faults() if fault.startswith("forgotten ")]
            with pytest.raises(AssertionError):
                test_the_tables_with_a_tenant_are_those_of_its_models(None)
        finally:
            cursor.execute("DROP TABLE forgotten")


@isolate_apps("apps.tenants")
def test_a_model_whose_keys_leave_out_the_tenant_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Letter(TenantModel):
        agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="+")
        number = models.IntegerField(unique=True)
        title = models.TextField()

        class Meta(TenantModel.Meta):
            app_label = "tenants"
            constraints: ClassVar[list[models.BaseConstraint]] = [
                models.UniqueConstraint(fields=["title"], name="letter_title")
            ]

    known = [*tenant_models(), Letter]
    monkeypatch.setattr(checks, "tenant_models", lambda: iter(known))
    assert sorted((str(fault.id), fault.obj) for fault in check_models()) == [
        ("tenants.E1", Letter),
        ("tenants.E2", Letter),
        ("tenants.E3", Letter),
    ]


# --- Migrating again ---------------------------------------------------------------------------------

CATALOG = (
    "SELECT 'table', c.relname, c.relrowsecurity, c.relforcerowsecurity::text, c.relacl::text, c.reloptions::text"
    " FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace"
    " UNION ALL SELECT 'column', attrelid::regclass::text, attnotnull, attname, format_type(atttypid, atttypmod), ''"
    " FROM pg_attribute WHERE attnum > 0 AND attrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace)"
    " UNION ALL SELECT 'constraint', conrelid::regclass::text, condeferrable, conname, pg_get_constraintdef(oid), ''"
    " FROM pg_constraint WHERE connamespace = 'public'::regnamespace"
    " UNION ALL SELECT 'policy', tablename, permissive = 'PERMISSIVE', policyname, roles::text || cmd, qual || coalesce(with_check, '')"
    " FROM pg_policies WHERE schemaname = 'public'"
    " UNION ALL SELECT 'role', rolname, rolsuper, rolbypassrls::text, rolcanlogin::text, rolconfig::text FROM pg_roles"
    " ORDER BY 1, 2, 3, 4, 5, 6"
)


@pytest.mark.parametrize(("deadlocks", "passes"), [(4, True), (5, False)])
def test_tables_are_protected_after_deadlocks(
    database: None, monkeypatch: pytest.MonkeyPatch, deadlocks: int, passes: bool
) -> None:
    left, run = [None] * deadlocks, StatementBatch.run

    def deadlock_first(batch: StatementBatch, cursor: Any) -> None:
        if left:
            left.pop()
            cursor.execute("DO $$ BEGIN RAISE EXCEPTION 'deadlock detected' USING ERRCODE = '40P01'; END $$")
        run(batch, cursor)

    monkeypatch.setattr(StatementBatch, "run", deadlock_first)
    with nullcontext() if passes else pytest.raises(OperationalError, match="deadlock"):
        assert protect() == []
    connections[OWNER].close()


def test_protecting_again_locks_no_table_against_writers(database: None) -> None:
    protect()
    with transaction.atomic(using=OWNER):
        protect()
        assert _locked_tables() == set()
    connections[OWNER].close()


@pytest.mark.parametrize(
    "change",
    [
        "ALTER POLICY tenant_isolation ON memories_memory USING (true)",
        "ALTER POLICY tenant_isolation ON memories_memory TO arbor_ops",
        "DROP POLICY operations ON memories_memory",
        "ALTER TABLE memories_memory NO FORCE ROW LEVEL SECURITY",
    ],
)
def test_a_protection_that_somebody_changed_is_restored_alone(database: None, change: str) -> None:
    before = fetch_raw(CATALOG)
    with connections[OWNER].cursor() as cursor:
        cursor.execute(change)
    assert fetch_raw(CATALOG) != before
    with transaction.atomic(using=OWNER):
        protect()
        assert _locked_tables() == {"memories_memory"}
    connections[OWNER].close()
    assert fetch_raw(CATALOG) == before


def test_a_policy_of_another_setting_is_replaced(database: None, settings: Any) -> None:
    def read_policies() -> dict[Any, Any]:
        return {table: using for table, name, *_, using, _ in fetch_raw(POLICIES) if name == "deleted_by_age"}

    before = read_policies()
    ages = settings.ARBOR_HISTORY_AGES
    settings.ARBOR_HISTORY_AGES = {record: timedelta(days=1234) for record in ages}
    protect()
    assert all("1234 days" in using or "29616:00:00" in using for using in read_policies().values())
    settings.ARBOR_HISTORY_AGES = ages
    protect()
    connections[OWNER].close()
    assert read_policies() == before


def _locked_tables() -> set[str]:
    """Return the tables that the owner's open transaction has locked against other transactions' reads or writes."""
    with connections[OWNER].cursor() as cursor:
        cursor.execute(
            "SELECT c.relname FROM pg_locks l JOIN pg_class c ON c.oid = l.relation AND c.relkind = 'r'"
            " WHERE l.pid = pg_backend_pid() AND c.relnamespace = 'public'::regnamespace"
            " AND l.mode NOT IN ('AccessShareLock', 'RowShareLock', 'RowExclusiveLock')"
        )
        return {name for (name,) in cursor.fetchall()}


def test_migrating_again_changes_nothing(database: None) -> None:
    before = fetch_raw(CATALOG)
    assert len(before) > 300
    call_command("migrate", verbosity=0)
    assert protect() == []
    connections[OWNER].close()
    assert fetch_raw(CATALOG) == before
