"""The privileges of each serving role on each table, as a list; and the statements that it is refused."""

from __future__ import annotations

import psycopg
import pytest
from django.db import DatabaseError, connections

from apps.tenants.checks import tenant_models
from apps.tenants.models import ConsoleSession, Tenant, User
from apps.tenants.scope import ACCOUNTS, APP, OPS, tenant_transaction
from tests.factories.users import UserFactory
from tests.support.console import sign_in

ROLES = {APP: "arbor_app", OPS: "arbor_ops", ACCOUNTS: "arbor_accounts"}
ALL = "DELETE INSERT SELECT UPDATE"
#: The privileges on a table of tenants that is not listed below.
USUAL = {APP: ALL, OPS: "SELECT"}
#: The tables that differ, and all tables of the installation. A privilege on single columns names them.
LISTED: dict[str, dict[str, str]] = {
    "access_apitoken": {APP: "INSERT SELECT UPDATE(last_used_at) UPDATE(revoked_at)", OPS: "SELECT"},
    "access_idempotentrequest": {APP: ALL, OPS: "DELETE SELECT"},
    "agents_agentkey": {APP: "INSERT SELECT UPDATE(sealed_private_key)"},
    "agents_agentendorsement": {APP: "INSERT SELECT UPDATE", OPS: "SELECT"},
    "agents_authoritykey": {APP: "INSERT SELECT UPDATE(sealed_private_key)"},
    "authority_capabilitygrant": {
        APP: "INSERT SELECT UPDATE(ancestors) UPDATE(issuer) UPDATE(revoked_at) UPDATE(revoked_by)"
        " UPDATE(revoked_reason) UPDATE(signature)",
        OPS: "SELECT",
    },
    "authority_capabilityuse": {APP: "INSERT SELECT", OPS: "DELETE SELECT"},
    "agents_requestedcapability": {APP: "INSERT SELECT", OPS: "SELECT"},
    "agents_builtintemplate": {APP: "SELECT", OPS: ALL},
    "heartbeats_heartbeatschedule": {APP: ALL, OPS: "SELECT UPDATE"},
    "audit_auditevent": {APP: "INSERT SELECT", OPS: "DELETE INSERT SELECT"},
    "audit_platformevent": {OPS: "DELETE INSERT SELECT", ACCOUNTS: "INSERT"},
    "audit_auditseal": {APP: "SELECT", OPS: "INSERT SELECT"},
    "audit_sealedblock": {APP: "SELECT", OPS: "DELETE INSERT SELECT"},
    "audit_platformseal": {OPS: "INSERT SELECT"},
    "audit_platformblock": {OPS: "DELETE INSERT SELECT"},
    "auth_group": {ACCOUNTS: "SELECT"},
    "auth_group_permissions": {ACCOUNTS: "SELECT"},
    "auth_permission": {ACCOUNTS: "SELECT"},
    "calls_ledgerentry": {APP: "INSERT SELECT", OPS: "DELETE SELECT"},
    "calls_providerkey": {APP: ALL},
    "calls_tokenratio": {APP: "SELECT", OPS: "INSERT SELECT UPDATE"},
    "contacts_outboxmessage": {APP: ALL, OPS: "SELECT UPDATE"},
    "contacts_hookdelivery": {APP: ALL, OPS: "SELECT"},
    "contacts_signalwebhook": {APP: ALL, OPS: "SELECT UPDATE(due_at) UPDATE(lease)"},
    "django_content_type": {APP: "SELECT", OPS: "SELECT", ACCOUNTS: "SELECT"},
    "django_migrations": {APP: "SELECT", OPS: "SELECT", ACCOUNTS: "SELECT"},
    "fleet_savedseed": {APP: "DELETE INSERT SELECT", OPS: "SELECT"},
    "fleet_savedseedpart": {APP: "DELETE INSERT SELECT"},
    "goals_satisfaction": {APP: "INSERT SELECT", OPS: "SELECT"},
    "heartbeats_process": {APP: ALL, OPS: "DELETE SELECT"},
    "knowledge_agentskill": {APP: ALL, OPS: "SELECT UPDATE(retained_digest)"},
    "knowledge_globalskill": {APP: "SELECT", OPS: "INSERT SELECT UPDATE"},
    "knowledge_globalskillversion": {APP: "SELECT", OPS: "INSERT SELECT"},
    "knowledge_skillversion": {APP: "INSERT SELECT", OPS: "SELECT"},
    "memories_embedderfault": {APP: ALL, OPS: "SELECT"},
    "memories_jobrun": {APP: "INSERT SELECT UPDATE", OPS: "DELETE SELECT"},
    "authority_tierchange": {APP: "INSERT SELECT", OPS: "SELECT"},
    "selves_selfchange": {APP: "INSERT SELECT", OPS: "SELECT"},
    "signals_signalbatch": {APP: "INSERT SELECT", OPS: "DELETE INSERT SELECT"},
    "tenants_consolesession": {
        OPS: "DELETE SELECT(expire_date) SELECT(public_id)",
        ACCOUNTS: ALL,
    },
    "tenants_membership": {APP: "SELECT", OPS: ALL},
    "tenants_signinfailure": {ACCOUNTS: "DELETE INSERT SELECT"},
    "tenants_tenant": {APP: "SELECT", OPS: ALL},
    "tenants_user": {
        APP: "SELECT(id) SELECT(username)",
        OPS: "SELECT(id) SELECT(username)",
        ACCOUNTS: "INSERT SELECT UPDATE(is_active) UPDATE(last_login) UPDATE(password)",
    },
    "tenants_user_groups": {ACCOUNTS: "SELECT"},
    "tenants_user_user_permissions": {ACCOUNTS: "SELECT"},
}
GRANTS = (
    "SELECT c.relname, g.grantee::regrole::text, g.privilege_type FROM pg_class c, aclexplode(c.relacl) g"
    " WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relnamespace = 'public'::regnamespace"
    " UNION ALL SELECT c.relname, g.grantee::regrole::text, g.privilege_type || '(' || a.attname || ')'"
    " FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid, aclexplode(a.attacl) g"
    " WHERE c.relnamespace = 'public'::regnamespace ORDER BY 1, 2, 3"
)


def stored_privileges() -> dict[str, dict[str, str]]:
    """Return the privileges by table and connection, in alphabetical order."""
    aliases = {role: alias for alias, role in ROLES.items()}
    found: dict[str, dict[str, list[str]]] = {}
    with connections[APP].cursor() as cursor:
        cursor.execute(GRANTS)
        for table, role, privilege in cursor.fetchall():
            if role != "arbor_owner":
                found.setdefault(table, {}).setdefault(aliases[role], []).append(privilege)
    return {
        table: {alias: " ".join(names) for alias, names in roles.items()} for table, roles in found.items()
    }


def test_each_role_has_the_privileges_of_the_list(database: None) -> None:
    usual = {model._meta.db_table: USUAL for model in tenant_models()}
    assert stored_privileges() == usual | LISTED


PASSWORD = "SELECT password FROM tenants_user"
EMAIL = "SELECT email FROM tenants_user"
KEY = "SELECT session_key FROM tenants_consolesession"
#: Statements that the serving roles are refused, most of them on accounts and sessions.
REFUSED = {
    "a worker reads a password": (APP, PASSWORD),
    "a worker reads an email address": (APP, EMAIL),
    "a worker sets a password": (APP, "UPDATE tenants_user SET password = ''"),
    "a worker creates an account": (APP, "INSERT INTO tenants_user (username) VALUES ('me')"),
    "a worker reads a session": (APP, KEY),
    "a worker creates a session": (APP, "INSERT INTO tenants_consolesession (session_key) VALUES ('')"),
    "a worker prolongs a session": (APP, "UPDATE tenants_consolesession SET seen_at = now()"),
    "a worker ends a session": (APP, "DELETE FROM tenants_consolesession"),
    "a worker reads failed sign-ins": (APP, "SELECT 1 FROM tenants_signinfailure"),
    "operations read a password": (OPS, PASSWORD),
    "operations set a password": (OPS, "UPDATE tenants_user SET password = ''"),
    "operations read a session": (OPS, KEY),
    "operations read the data of a session": (OPS, "SELECT session_data FROM tenants_consolesession"),
    "operations forget failed sign-ins": (OPS, "DELETE FROM tenants_signinfailure"),
    "accounts name a superuser": (ACCOUNTS, "UPDATE tenants_user SET is_superuser = true"),
    "accounts rename": (ACCOUNTS, "UPDATE tenants_user SET username = 'mine'"),
    "accounts delete": (ACCOUNTS, "DELETE FROM tenants_user"),
    "accounts read memories": (ACCOUNTS, "SELECT 1 FROM memories_memory"),
    "accounts read agents' keys": (ACCOUNTS, "SELECT 1 FROM agents_agentkey"),
    "accounts add a member": (ACCOUNTS, "INSERT INTO tenants_membership (role) VALUES ('owner')"),
    "accounts read the audit": (ACCOUNTS, "SELECT 1 FROM audit_platformevent"),
    "accounts become operations": (ACCOUNTS, "SET ROLE arbor_ops"),
}


@pytest.mark.parametrize(("alias", "statement"), REFUSED.values(), ids=REFUSED.keys())
def test_a_role_is_refused(database: None, alias: str, statement: str) -> None:
    with pytest.raises(DatabaseError) as refusal, connections[alias].cursor() as cursor:
        cursor.execute(statement)
    assert isinstance(refusal.value.__cause__, psycopg.errors.InsufficientPrivilege)


def test_a_tenant_sees_the_names_of_its_own_members(tenant: Tenant, other_tenant: Tenant) -> None:
    ann, bob = UserFactory(username="ann"), UserFactory(username="bob")
    with connections[OPS].cursor() as cursor:
        for own, user in ((tenant, ann), (other_tenant, bob)):
            cursor.execute(
                "INSERT INTO tenants_membership (tenant_id, id, user_id, role, created_at)"
                " VALUES (%s, gen_random_uuid(), %s, 'viewer', now())",
                [own.id, user.pk],
            )
    with tenant_transaction(tenant.id), connections[APP].cursor() as cursor:
        cursor.execute("SELECT username FROM tenants_user")
        assert cursor.fetchall() == [("ann",)]


def test_accounts_and_sessions_go_through_their_own_role(database: None) -> None:
    user = UserFactory()
    sign_in(user)
    assert ConsoleSession.objects.get(user_id=user.pk)._state.db == ACCOUNTS
    assert User.objects.get()._state.db == ACCOUNTS
    user.set_password("correct horse battery")
    user.save()
    assert User.objects.get().check_password("correct horse battery")
