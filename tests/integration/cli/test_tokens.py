"""`arbor token`: tokens shown once, listed without their secret, and revoked."""

from __future__ import annotations

import pytest

from apps.access.models import ApiToken
from apps.access.services import authenticate
from apps.audit.models import AuditEvent
from apps.tenants.models import Role, Tenant
from apps.tenants.scope import OPS, tenant_transaction
from arbor.errors import PermissionDenied, TokenRefused
from tests.integration.cli.conftest import Arbor


def test_a_token_is_shown_once_and_opens_its_tenant(arbor: Arbor, two_tenants: tuple[str, str]) -> None:
    ran = arbor("token", "create", "dashboard", "--tenant", "acme", "--role", "operator", "--json")
    assert ran.code == 0, ran.err
    access = authenticate(ran.json["token"])
    assert (access.tenant_slug, access.role, access.actor) == ("acme", Role.OPERATOR, "token:dashboard")
    listed = arbor("token", "list", "--tenant", "acme", "--json")
    assert ran.json["token"] not in listed.out
    assert [token["prefix"] for token in listed.json["tokens"]] == [ran.json["prefix"]]
    assert arbor("token", "list", "--tenant", "globex", "--json").json["tokens"] == []


def test_brackets_in_a_name_are_shown_as_they_are_written(arbor: Arbor, one_tenant: str) -> None:
    assert "ci [/old]" in arbor("token", "create", "ci [/old]").out
    assert "ci [/old]" in arbor("token", "revoke", "ci [/old]").out


def test_a_token_for_tasks_opens_nothing_else(arbor: Arbor, one_tenant: str) -> None:
    made = arbor("token", "create", "partner", "--tasks-only", "--json").json
    with pytest.raises(PermissionDenied, match="gives tasks"):
        authenticate(made["token"])
    assert authenticate(made["token"], for_task=True).tasks_only
    assert [token["tasks_only"] for token in arbor("token", "list", "--json").json["tokens"]] == [True]


def test_a_token_of_an_agent_is_of_its_tenant(arbor: Arbor, vega: str, two_tenants: tuple[str, str]) -> None:
    made = arbor("token", "create", "partner", "--tasks-only", "--agent", vega, "--json").json
    assert (made["tenant"], made["agent"]) == ("acme", vega)


def test_a_revoked_token_is_refused(arbor: Arbor, one_tenant: str) -> None:
    text = arbor("token", "create", "ci", "--json").json["token"]
    assert arbor("token", "revoke", "ci").code == 0
    with pytest.raises(TokenRefused, match="revoked"):
        authenticate(text)
    assert arbor("token", "list", "--json").json["tokens"] == []
    assert "yet" not in arbor("token", "list").out
    assert len(arbor("token", "list", "--all", "--json").json["tokens"]) == 1
    assert "there is: none" in arbor("token", "revoke", "ci").err


def test_a_name_is_free_again_after_its_revocation(arbor: Arbor, one_tenant: str) -> None:
    assert arbor("token", "create", "ci").code == 0
    assert "choose another name" in arbor("token", "create", "ci").err
    arbor("token", "revoke", "ci")
    assert arbor("token", "create", "ci").code == 0


def test_the_token_of_a_destroyed_agent_is_refused(arbor: Arbor, vega: str) -> None:
    made = arbor("token", "create", "own", "--agent", vega, "--expires", "none", "--json").json
    assert (made["agent"], made["expires_at"]) == (vega, None)
    assert arbor("agent", "destroy", vega, "--confirm", vega).code == 0
    with pytest.raises(TokenRefused):
        authenticate(made["token"])


def test_the_token_itself_is_neither_stored_nor_audited(arbor: Arbor, one_tenant: str) -> None:
    text = arbor("token", "create", "ci", "--json").json["token"]
    tenant = Tenant.objects.using(OPS).get()
    with tenant_transaction(tenant.id):
        row = ApiToken.objects.get()
        acts = list(AuditEvent.objects.values_list("action", "message", "detail"))
    assert len(bytes(row.token_hash)) == 32
    assert "token.created" in [action for action, *_ in acts]
    assert text not in str((vars(row), acts))
