"""Row-level security, which limits the application's role, whatever SQL it sends."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from django.db import DatabaseError, IntegrityError, ProgrammingError, connection, connections, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.agents.models import Agent
from apps.memories.models import Memory
from apps.tenants.checks import find_role_faults, tenant_models
from apps.tenants.models import Tenant
from apps.tenants.protection import protect
from apps.tenants.scope import APP, OPS, OWNER, TENANT_SETTING, tenant_transaction
from tests.factories.agents import AgentFactory
from tests.factories.goals import GoalFactory
from tests.factories.memories import MemoryFactory
from tests.integration.tenancy.conftest import TenantRows, fetch_raw
from tests.support.console_rows import make_world

TABLES = [*sorted(model._meta.db_table for model in tenant_models()), "tenants_tenant"]


def test_without_a_tenant_every_table_is_empty(tenant: Tenant, superuser: psycopg.Connection[Any]) -> None:
    make_world(tenant)
    filled = [table for table in TABLES if superuser.execute(f"SELECT FROM {table} LIMIT 1").rowcount]
    assert len(filled) > 60
    visible = [table for table in TABLES if fetch_raw(f"SELECT count(*) FROM {table}") != [(0,)]]
    assert visible == []


def test_inside_a_tenant_a_table_has_rows(ours: TenantRows) -> None:
    with tenant_transaction(ours.id):
        assert fetch_raw("SELECT tenant_id FROM memories_memory") == [(ours.id,)]


def test_raw_sql_sees_one_tenant(ours: TenantRows, theirs: TenantRows) -> None:
    with tenant_transaction(ours.id):
        assert fetch_raw("SELECT content FROM memories_memory WHERE tenant_id = %s", theirs.id) == []
        assert fetch_raw("SELECT slug FROM tenants_tenant") == [("acme",)]
        assert fetch_raw("SELECT content FROM memories_memory OFFSET 0") == [("the secret of acme",)]


def test_raw_updates_and_deletes_stay_in_the_tenant(ours: TenantRows, theirs: TenantRows) -> None:
    with tenant_transaction(ours.id), connection.cursor() as cursor:
        cursor.execute("UPDATE memories_memory SET content = 'changed'")
        assert cursor.rowcount == 1
        cursor.execute("DELETE FROM memories_memory")
        assert cursor.rowcount == 1
    with tenant_transaction(theirs.id):
        assert Memory.objects.get().content == "the secret of globex"


def test_without_a_tenant_nothing_can_be_inserted(ours: TenantRows) -> None:
    with pytest.raises(ProgrammingError, match="row-level security"), connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO memories_memoryaccess (tenant_id, memory_id, count, last_at) VALUES (%s, %s, 1, now())",
            [ours.id, ours.memory.id],
        )


def test_a_row_of_another_tenant_cannot_be_inserted(ours: TenantRows, theirs: TenantRows) -> None:
    with pytest.raises(ProgrammingError, match="row-level security"), tenant_transaction(ours.id):
        MemoryFactory(tenant_id=theirs.id, agent=theirs.agent)


def test_rows_of_another_tenant_cannot_be_inserted_in_bulk(ours: TenantRows, theirs: TenantRows) -> None:
    memories = [
        Memory(
            tenant_id=rows.id,
            agent_id=rows.agent.id,
            content="new",
            content_hash=b"new",
            occurred_at=timezone.now(),
        )
        for rows in (ours, theirs)
    ]
    with pytest.raises(ProgrammingError, match="row-level security"), tenant_transaction(ours.id):
        Memory.objects.bulk_create(memories)
    with tenant_transaction(ours.id):
        assert Memory.objects.count() == 1


def test_a_row_cannot_be_moved_to_another_tenant(ours: TenantRows, theirs: TenantRows) -> None:
    with pytest.raises(ProgrammingError, match="row-level security"), tenant_transaction(ours.id):
        Memory.objects.update(tenant_id=theirs.id)


def test_a_reference_to_another_tenants_row_is_refused(ours: TenantRows, theirs: TenantRows) -> None:
    with (
        pytest.raises(IntegrityError, match="memories_memory_agent_id_in_tenant"),
        tenant_transaction(ours.id),
    ):
        MemoryFactory(agent_id=theirs.agent.id, agent=None)
    with pytest.raises(IntegrityError, match="goals_goal_parent_id_in_tenant"), tenant_transaction(ours.id):
        GoalFactory(agent=ours.agent, parent_id=theirs.goal.id)
    with pytest.raises(IntegrityError, match="goals_goal_parent_id_in_tenant"), tenant_transaction(ours.id):
        type(ours.goal).objects.update(parent_id=theirs.goal.id)


def test_an_id_of_another_tenant_is_free_in_this_one(ours: TenantRows, theirs: TenantRows) -> None:
    # A key or a unique constraint without the tenant would report a duplicate.
    with tenant_transaction(ours.id):
        same_id = AgentFactory(id=theirs.agent.id, name=theirs.agent.name, public_id=theirs.agent.public_id)
        assert Agent.objects.get(id=theirs.agent.id) == same_id
    with tenant_transaction(theirs.id):
        assert Agent.objects.get().status == theirs.agent.status


def test_deleting_a_target_empties_the_reference_only(ours: TenantRows) -> None:
    with tenant_transaction(ours.id):
        child = GoalFactory(agent=ours.agent, parent=ours.goal)
        type(ours.goal).objects.filter(id=ours.goal.id).delete()
        child.refresh_from_db()
        assert (child.parent_id, child.tenant_id) == (None, ours.id)


def test_the_tenant_setting_has_no_effect_outside_a_transaction(ours: TenantRows) -> None:
    fetch_raw("SELECT set_config(%s, %s, true)", TENANT_SETTING, str(ours.id))
    assert fetch_raw("SELECT count(*) FROM memories_memory") == [(0,)]


@pytest.mark.parametrize("tenant_id", [uuid4(), UUID(int=0)])
def test_a_tenant_that_does_not_exist_has_no_rows(ours: TenantRows, tenant_id: UUID) -> None:
    with tenant_transaction(tenant_id):
        assert fetch_raw("SELECT count(*) FROM memories_memory") == [(0,)]
        assert fetch_raw("SELECT count(*) FROM tenants_tenant") == [(0,)]


FORBIDDEN = {
    "disable the policies": "ALTER TABLE memories_memory DISABLE ROW LEVEL SECURITY",
    "drop the policy": "DROP POLICY tenant_isolation ON memories_memory",
    "add a policy": "CREATE POLICY mine ON memories_memory USING (true)",
    "become the owner": "SET ROLE arbor_owner",
    "become the operations role": "SET ROLE arbor_ops",
    "bypass the policies": "ALTER ROLE arbor_app BYPASSRLS",
    "make a table": "CREATE TABLE public.mine (id int)",
    "make a function": "CREATE FUNCTION public.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "empty a table": "TRUNCATE memories_memory",
    "read with row security off": "SET LOCAL row_security = off; SELECT * FROM memories_memory",
    "read the passwords of roles": "SELECT * FROM pg_authid",
    "read the server's files": "SELECT pg_read_file('/etc/passwd')",
    "run a program": "COPY (SELECT 1) TO PROGRAM 'true'",
    "write a user": "INSERT INTO tenants_user SELECT * FROM tenants_user",
    "make a user run the installation": "UPDATE tenants_user SET is_superuser = true",
    "rename a user": "UPDATE tenants_user SET username = 'mine'",
    "become a member": "INSERT INTO tenants_membership SELECT * FROM tenants_membership",
    "raise a member": "UPDATE tenants_membership SET role = 'owner'",
    "dismiss a member": "DELETE FROM tenants_membership",
    "change an agent's key": "UPDATE agents_agentkey SET public_key = ''",
    "delete an agent's key": "DELETE FROM agents_agentkey",
    "write a tenant": "INSERT INTO tenants_tenant SELECT * FROM tenants_tenant",
    "rename a tenant": "UPDATE tenants_tenant SET name = 'mine'",
    "change a built-in template": "UPDATE agents_builtintemplate SET spec = '{}'",
    "read acts on the installation": "SELECT * FROM audit_platformevent",
}


@pytest.mark.parametrize("statement", FORBIDDEN.values(), ids=FORBIDDEN.keys())
def test_the_application_role_is_refused(ours: TenantRows, statement: str) -> None:
    with pytest.raises(DatabaseError) as error, tenant_transaction(ours.id), connection.cursor() as cursor:
        cursor.execute(statement)
    assert isinstance(error.value.__cause__, psycopg.errors.InsufficientPrivilege)


def test_the_serving_role_is_bound_by_the_policies(database: None) -> None:
    assert find_role_faults() == []
    row = fetch_raw(
        "SELECT rolname, rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication,"
        " EXISTS (SELECT FROM pg_auth_members m WHERE m.member = r.oid),"
        " EXISTS (SELECT FROM pg_class c WHERE c.relowner = r.oid)"
        " FROM pg_roles r WHERE rolname = current_user"
    )
    assert row == [("arbor_app", False, False, False, False, False, False, False)]


def test_no_statement_names_a_roles_password(database: None) -> None:
    with CaptureQueriesContext(connections[OWNER]) as queries:
        protect()
    statements = [query["sql"] for query in queries.captured_queries]
    assert [statement for statement in statements if "PASSWORD 'SCRAM-SHA-256$" in statement]
    for alias in (APP, OPS):
        assert not [
            statement for statement in statements if connections[alias].settings_dict["PASSWORD"] in statement
        ]
        connections[alias].close()
        with connections[alias].cursor() as cursor:
            cursor.execute("SELECT 1")


def test_a_failed_statement_leaves_the_tenant_in_place(ours: TenantRows, theirs: TenantRows) -> None:
    with tenant_transaction(ours.id):
        with pytest.raises(IntegrityError), transaction.atomic():
            MemoryFactory(agent_id=theirs.agent.id, agent=None)
        assert fetch_raw("SELECT tenant_id FROM memories_memory") == [(ours.id,)]
