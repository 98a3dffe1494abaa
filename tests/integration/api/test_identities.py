"""Identities over HTTP: shown, suspended, reinstated, rotated, revoked."""

from __future__ import annotations

from typing import Any

from apps.tenants.models import Role, Tenant
from tests.support.api import Caller, caller_of


def test_an_identity_is_suspended_reinstated_and_revoked(
    tenant: Tenant, owner: Caller, vega: dict[str, Any]
) -> None:
    path = f"/agents/{vega['id']}/identity"
    shown = owner.get(path).json()
    assert (shown["agent_id"], shown["endorsement"]["status"], shown["refusal"]) == (
        vega["public_id"],
        "active",
        "",
    )
    assert [len(shown[part]) for part in ("keys", "keychain")] == [1, 1]
    assert owner.post(f"{path}/suspend", {"reason": " "}).status_code == 422
    assert owner.post(f"{path}/suspend", {"reason": "leaked"}).json()["endorsement"]["status"] == "suspended"
    refused = owner.post(f"/agents/{vega['id']}/heartbeats")
    assert (refused.status_code, "suspended: leaked" in refused.json()["detail"]) == (409, True)
    assert owner.post(f"/agents/{vega['id']}/pause").status_code == 200
    assert owner.post(f"/agents/{vega['id']}/resume").status_code == 403
    operator = caller_of(tenant, Role.OPERATOR)
    assert operator.post(f"{path}/reinstate").json()["refusal"] == ""
    rotated = operator.post(f"{path}/rotate").json()
    assert (rotated["agent_id"], len(rotated["keys"])) == (vega["public_id"], 2)
    assert operator.post(f"{path}/revoke", {"reason": "stolen"}).status_code == 403
    assert owner.post(f"{path}/revoke", {"reason": "stolen"}).json()["endorsement"]["serial"] == 5
    assert owner.post(f"{path}/reinstate").status_code == 409


def test_a_profile_has_no_private_half(owner: Caller, vega: dict[str, Any]) -> None:
    response = owner.get(f"/agents/{vega['id']}/profile")
    profile = response.json()
    assert profile["identity"]["agent_id"] == vega["public_id"]
    assert profile["requested_capabilities"]
    assert profile["character"]["name"] == "Scout"
    assert "private" not in response.content.decode()
