"""Agents over HTTP: creation, pages, changes of status, destruction."""

from __future__ import annotations

from typing import Any

import pytest

from apps.audit.models import AuditEvent
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from tests.support.api import Caller


def test_an_agent_is_created_paused_and_destroyed(
    tenant: Tenant, owner: Caller, vega: dict[str, Any]
) -> None:
    path = f"/agents/{vega['id']}"
    assert (vega["status"], vega["template"], vega["due_at"] is not None) == ("active", "Scout", True)
    assert owner.get(path).json()["name"] == "Vega"
    assert owner.post(f"{path}/pause").json()["status"] == "paused"
    refused = owner.post(f"{path}/wake")
    assert (refused.status_code, "possible now" in refused.json()["detail"]) == (409, True)
    assert owner.delete(path, confirm="Lyra").status_code == 422
    assert owner.delete(path, confirm="Vega").json()["deleted"]
    assert owner.get(path).status_code == 404
    with tenant_transaction(tenant.id):
        actors = set(AuditEvent.objects.filter(agent_id=vega["id"]).values_list("actor", flat=True))
    assert len(actors) == 1
    assert actors.pop().startswith("token:owner")


def test_a_name_in_use_is_a_conflict(owner: Caller, vega: dict[str, Any]) -> None:
    response = owner.post("/agents", {"name": "vega", "template": "Scout"})
    assert (response.status_code, response.json()["type"]) == (409, "urn:arbor:problem:already-exists")


def test_a_page_continues_where_the_one_before_ended(owner: Caller, vega: dict[str, Any]) -> None:
    for name in ("Altair", "Deneb", "Lyra"):
        owner.post("/agents", {"name": name, "template": "Scout"})
    first = owner.get("/agents", limit=3).json()
    assert [agent["name"] for agent in first["items"]] == ["Altair", "Deneb", "Lyra"]
    rest = owner.get("/agents", limit=3, cursor=first["next_cursor"]).json()
    assert ([agent["name"] for agent in rest["items"]], rest["next_cursor"]) == (["Vega"], None)


def test_an_invalid_request_names_each_field(owner: Caller) -> None:
    response = owner.post("/agents", {"name": "", "interval_s": "often", "color": "blue"})
    assert response.status_code == 422
    fields = {fault["field"].split(".")[-1] for fault in response.json()["errors"]}
    assert fields == {"name", "template", "interval_s", "color"}


def test_an_invalid_cursor_or_limit_is_refused(owner: Caller) -> None:
    assert owner.get("/agents", cursor="bm9uc2Vuc2U").status_code == 422
    assert owner.get("/agents", limit=201).status_code == 422


def test_an_unknown_path_is_a_problem(owner: Caller) -> None:
    response = owner.get("/nothing")
    assert (response.status_code, response["Content-Type"]) == (404, "application/problem+json")
    assert owner.send("put", "/agents").status_code == 405


@pytest.mark.parametrize("body", [b'{"title": "\\ud86d"}', b'{"title": NaN}', b'{"title": ', b"\xff"])
def test_a_body_that_is_not_json_is_refused(body: bytes, owner: Caller, vega: dict[str, Any]) -> None:
    response = owner.client.generic(
        "POST",
        f"/api/v1/agents/{vega['id']}/goals",
        body,
        content_type="application/json",
        headers={"Authorization": f"Bearer {owner.token}"},
    )
    assert (response.status_code, response["Content-Type"]) == (400, "application/problem+json")
    assert response.json()["detail"].startswith("the body must be JSON: ")
