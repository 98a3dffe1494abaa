"""Requests for approval and trust over the API: decided by operators, visible to their tenant only."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from apps.agents.models import Agent
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.authority.precedents import DECISIONS_READ
from arbor.ids import uuid7
from tests.factories.approvals import PARAMS, ActionApprovalFactory
from tests.support.api import Caller

PUBLIC = "arbor://actions/execute/reach_out_public"


@pytest.fixture
def address(tenant: Tenant, vega: dict[str, Any]) -> str:
    """Store a request for approval of Vega, and return its path."""
    with tenant_transaction(tenant.id):
        row = ActionApprovalFactory(agent=Agent.objects.get(id=UUID(vega["id"])))
    return f"/approvals/{row.id}"


def test_operator_approves_a_request(
    owner: Caller, viewer: Caller, outsider: Caller, vega: dict[str, Any], address: str
) -> None:
    (listed,) = viewer.get("/approvals", status="pending").json()["items"]
    assert (listed["agent_id"], listed["params"], listed["status"]) == (vega["id"], PARAMS, "pending")
    shown = viewer.get(address).json()
    assert shown.pop("precedents") == []
    assert viewer.get(f"/agents/{vega['id']}/approvals").json()["items"] == [shown]
    assert outsider.get(address).status_code == 404
    assert outsider.get("/approvals").json()["items"] == []
    assert viewer.post(f"{address}/approve", {}).status_code == 403
    assert outsider.post(f"{address}/approve", {}).status_code == 404

    approved = owner.post(f"{address}/approve", {"reason": "fine", "always": True}).json()
    assert (approved["status"], approved["reason"]) == ("approved", "fine")
    assert approved["decided_by"].startswith("token:")
    assert owner.post(f"{address}/approve", {}).status_code == 409
    (rule,) = owner.get(f"/agents/{vega['id']}/trust").json()["rules"]
    assert rule == {"prefix": PUBLIC, "mode": "allow"}


def test_a_request_shows_its_precedents(
    owner: Caller, tenant: Tenant, vega: dict[str, Any], address: str
) -> None:
    assert owner.post(f"{address}/deny", {"reason": "not before Monday"}).status_code == 200
    with tenant_transaction(tenant.id):
        agent = Agent.objects.get(id=UUID(vega["id"]))
        later = ActionApprovalFactory(agent=agent, about="The reef is charted again.", body_hash="f" * 64)
        other = ActionApprovalFactory(agent=agent, action="rest", about="", body_hash="e" * 64)

    (precedent,) = owner.get(f"/approvals/{later.id}").json()["precedents"]
    assert (precedent["approved"], precedent["reason"]) == (False, "not before Monday")
    assert precedent["decided_by"].startswith("token:")
    assert owner.get(f"/approvals/{other.id}").json()["precedents"] == []


def test_actions_that_a_rule_allowed_hide_no_precedent(
    owner: Caller, tenant: Tenant, vega: dict[str, Any], address: str
) -> None:
    assert owner.post(f"{address}/deny", {"reason": "not before Monday"}).status_code == 200
    with tenant_transaction(tenant.id):
        agent = Agent.objects.get(id=UUID(vega["id"]))
        executed = {"status": "executed", "executed_by": uuid7(), "asked_at": timezone.now()}
        ActionApprovalFactory.create_batch(DECISIONS_READ, agent=agent, **executed)
        later = ActionApprovalFactory(agent=agent)

    (precedent,) = owner.get(f"/approvals/{later.id}").json()["precedents"]
    assert precedent["reason"] == "not before Monday"


def test_operator_denies_a_request(owner: Caller, viewer: Caller, address: str) -> None:
    assert viewer.post(f"{address}/deny", {}).status_code == 403
    assert owner.post(f"{address}/deny", {"reason": "x" * 2_001}).status_code == 422
    assert owner.post(f"{address}/deny", {"reason": "no"}).json()["status"] == "denied"
    assert owner.post(f"{address}/deny", {}).status_code == 409


def test_operator_sets_trust(owner: Caller, viewer: Caller, outsider: Caller, vega: dict[str, Any]) -> None:
    trust = f"/agents/{vega['id']}/trust"
    assert viewer.get(trust).json()["preset"] == "hands_off"
    assert viewer.send("put", trust, {"preset": "cautious"}).status_code == 403
    assert outsider.get(trust).status_code == 404
    assert owner.send("put", trust, {"preset": "cautious"}).json()["preset"] == "cautious"
    rule = {"prefix": PUBLIC, "mode": "block"}
    assert owner.send("put", f"{trust}/rules", rule).json()["rules"] == [rule]
    assert owner.send("put", "/trust/rules", rule).json()["rules"] == [rule]
    shown = owner.get(trust).json()
    assert shown["tenant_rules"] == [rule]
    assert (
        next(entry for entry in shown["actions"] if entry["action"] == "reach_out_public")["mode"] == "block"
    )
    assert owner.send("delete", f"{trust}/rules?prefix={PUBLIC}").json()["rules"] == []
    assert owner.send("delete", f"/trust/rules?prefix={PUBLIC}").json()["rules"] == []
    assert owner.send("delete", f"/trust/rules?prefix={PUBLIC}").status_code == 404
    for invalid in ({"prefix": "x", "mode": "ask"}, {"prefix": "arbor://shell/exec", "mode": "auto"}):
        assert owner.send("put", f"{trust}/rules", invalid).status_code == 422
