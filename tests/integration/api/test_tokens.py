"""The rights of a request, which are those of its token."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apps.access.models import ApiToken
from apps.access.services import authenticate, create_token, revoke_token
from apps.api.authentication import may_upload_documents, may_upload_seeds
from apps.api.rates import RequestRate
from apps.fleet.administration import suspend_tenant
from apps.tenants.models import Role, Tenant
from apps.tenants.scope import tenant_transaction
from arbor.access import generate_token
from arbor.clock import FrozenClock
from arbor.errors import RateLimited, TokenRefused
from tests.factories.users import UserFactory
from tests.support.api import Caller, caller_of


@pytest.mark.parametrize("token", ["", "nonsense", "arbor_" + "A" * 72, "arbor_\N{SNOWMAN}"])
def test_a_request_without_a_valid_token_is_refused(tenant: Tenant, token: str) -> None:
    response = Caller(token=token).get("/agents")
    assert response.status_code == 401
    assert response["Content-Type"] == "application/problem+json"
    assert response["WWW-Authenticate"].startswith("Bearer")


def test_a_made_up_token_of_a_tenant_is_refused(tenant: Tenant) -> None:
    assert Caller(token=generate_token(tenant.id).text).get("/agents").status_code == 401


def test_a_token_with_another_secret_is_refused(tenant: Tenant, owner: Caller) -> None:
    other = "A" if owner.token[-1] != "A" else "B"
    assert Caller(token=owner.token[:-1] + other).get("/agents").status_code == 401


def test_a_revoked_token_is_refused_at_once(tenant: Tenant, owner: Caller) -> None:
    assert owner.get("/agents").status_code == 200
    with tenant_transaction(tenant.id):
        revoke_token(token_id=ApiToken.objects.get().id, actor="test")
    response = owner.get("/agents")
    assert (response.status_code, "revoked" in response.json()["detail"]) == (401, True)


def test_a_token_expires_after_its_lifetime(tenant: Tenant) -> None:
    clock = FrozenClock(datetime.now(UTC))
    with tenant_transaction(tenant.id):
        new = create_token(
            name="short", role=Role.VIEWER, actor="test", lifetime=timedelta(hours=1), clock=clock
        )
    authenticate(new.text, clock=clock)
    clock.advance(timedelta(hours=1))
    with pytest.raises(TokenRefused, match="expired"):
        authenticate(new.text, clock=clock)


def test_the_last_use_is_stored_once_a_minute(tenant: Tenant) -> None:
    clock = FrozenClock(datetime.now(UTC))
    with tenant_transaction(tenant.id):
        new = create_token(name="used", role=Role.VIEWER, actor="test", clock=clock)
    stored: list[Any] = []
    for elapsed in (0, 30, 31):
        clock.advance(timedelta(seconds=elapsed))
        authenticate(new.text, clock=clock)
        with tenant_transaction(tenant.id):
            stored.append(ApiToken.objects.get().last_used_at)
    assert stored[0] == stored[1] < stored[2]


def test_a_role_limits_what_a_token_may_do(tenant: Tenant, vega: dict[str, Any]) -> None:
    path = f"/agents/{vega['id']}"
    callers = {role: caller_of(tenant, role) for role in (Role.VIEWER, Role.OPERATOR)}
    codes = {
        role: (caller.get(path).status_code, caller.post(f"{path}/pause").status_code)
        for role, caller in callers.items()
    }
    assert codes == {Role.VIEWER: (200, 403), Role.OPERATOR: (200, 200)}
    refused = callers[Role.OPERATOR].delete(path, confirm="Vega")
    assert refused.status_code == 403
    assert "owner" in refused.json()["detail"]


def test_a_token_of_one_agent_reaches_no_other(tenant: Tenant, owner: Caller, vega: dict[str, Any]) -> None:
    lyra = owner.post("/agents", {"name": "Lyra", "template": "Scout"}).json()
    own = caller_of(tenant, Role.OWNER, agent_id=vega["id"])
    assert own.get(f"/agents/{vega['id']}").status_code == 200
    assert own.get(f"/agents/{lyra['id']}").status_code == 404
    assert [agent["name"] for agent in own.get("/agents").json()["items"]] == ["Vega"]
    assert own.post("/agents", {"name": "Deneb", "template": "Scout"}).status_code == 403


def test_a_token_of_one_agent_makes_and_reads_no_other(
    tenant: Tenant, owner: Caller, vega: dict[str, Any]
) -> None:
    lyra = owner.post("/agents", {"name": "Lyra", "template": "Scout"}).json()
    seed = owner.post(f"/agents/{lyra['id']}/seeds").json()
    own = caller_of(tenant, Role.OWNER, agent_id=vega["id"])
    path = f"/agents/{vega['id']}"
    assert own.post(f"{path}/fork", {"name": "Deneb"}).status_code == 403
    assert own.post(f"{path}/merge", {"seed_id": seed["id"], "dry_run": True}).status_code == 403
    granted = own.post(f"{path}/capabilities", {"resource": "arbor://fs/read/notes/**"}).json()
    delegation = {"to_agent_id": lyra["id"]}
    assert own.post(f"{path}/capabilities/{granted['id']}/delegate", delegation).status_code == 403


def test_a_token_of_one_agent_sends_no_files(tenant: Tenant, owner: Caller, vega: dict[str, Any]) -> None:
    own = caller_of(tenant, Role.OWNER, agent_id=vega["id"])
    for may_upload in (may_upload_documents, may_upload_seeds):
        assert [asyncio.run(may_upload(caller.token)) for caller in (own, owner)] == [False, True]


def test_requests_of_a_suspended_tenant_are_refused(tenant: Tenant, owner: Caller) -> None:
    suspend_tenant(slug=tenant.slug, actor="test")
    response = owner.get("/agents")
    assert (response.status_code, "suspended" in response.json()["detail"]) == (403, True)


def test_a_member_is_shown_by_the_stored_name(tenant: Tenant, owner: Caller) -> None:
    UserFactory(username="ann")
    response = owner.send("put", "/members/\N{FULLWIDTH LATIN SMALL LETTER A}nn", {"role": "viewer"})
    assert (response.status_code, response.json()["username"]) == (200, "ann")


def test_a_member_needs_a_role_and_keeps_the_earlier_one(tenant: Tenant, owner: Caller) -> None:
    UserFactory(username="ann")
    owner.send("put", "/members/ann", {"role": "operator"})
    refused = owner.send("put", "/members/ann", {})
    assert (refused.status_code, "role" in refused.json()["detail"]) == (422, True)
    assert [member["role"] for member in owner.get("/members").json()["items"]] == ["operator"]


def test_a_limit_of_one_request_is_written_in_the_singular() -> None:
    with pytest.raises(RateLimited, match="a token may make 1 request a minute; try again in 9 s"):
        RequestRate(most=1, left=0, wait_s=9).require_allowed()
