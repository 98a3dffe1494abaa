"""Pages of lists: their cursors, and cursors that no list has given."""

from __future__ import annotations

import base64
import json
from datetime import date
from typing import Any
from uuid import uuid4

import pytest

from apps.calls.models import DailyUsage
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from tests.support.api import Caller


def cursor_with(**parts: Any) -> str:
    written = json.dumps({"id": str(uuid4()), **parts}).encode()
    return base64.urlsafe_b64encode(written).decode().rstrip("=")


def test_daily_usage_is_listed_page_by_page(tenant: Tenant, owner: Caller, vega: dict[str, Any]) -> None:
    days = [date(2026, 1, number) for number in (3, 2, 1)]
    with tenant_transaction(tenant.id):
        for day in days:
            DailyUsage.objects.create(tenant_id=tenant.id, agent_id=vega["id"], day=day)
    found: list[str] = []
    cursor: str | None = ""
    for _ in days:
        page = owner.get(f"/agents/{vega['id']}/usage", limit=1, cursor=cursor).json()
        found += [usage["day"] for usage in page["items"]]
        cursor = page["next_cursor"]
    assert (found, cursor) == (["2026-01-03", "2026-01-02", "2026-01-01"], None)


def test_a_page_ends_at_a_long_name_of_any_script(owner: Caller, templates: None) -> None:
    names = ["ж" * 64, "я" * 64]
    for name in names:
        assert owner.post("/agents", {"name": name, "template": "Scout"}).status_code == 201
    first = owner.get("/agents", limit=1).json()
    rest = owner.get("/agents", limit=1, cursor=first["next_cursor"]).json()
    assert [agent["name"] for page in (first, rest) for agent in page["items"]] == names


def test_a_page_ends_at_a_long_resource(owner: Caller, vega: dict[str, Any]) -> None:
    path = f"/agents/{vega['id']}/capabilities"
    resources = [f"arbor://actions/execute/{letter * 470}" for letter in "yz"]
    for resource in resources:
        assert owner.post(path, {"resource": resource}).status_code == 201
    listed = [grant["resource"] for grant in owner.get(path).json()["items"]]
    before = owner.get(path, limit=len(listed) - 1).json()
    last = owner.get(path, cursor=before["next_cursor"]).json()["items"]
    assert [grant["resource"] for grant in last] == resources[1:]


@pytest.mark.parametrize(
    "parts",
    [
        {"o": "name", "v": "a", "id": "x"},
        {"o": "name", "v": None},
        {"o": "name", "v": "\ud800"},
        {"o": "importance", "v": "a"},
        {"o": "importance", "v": [1]},
        {"o": "importance", "t": "2026-01-01"},
    ],
)
def test_a_cursor_with_impossible_parts_is_refused(
    owner: Caller, vega: dict[str, Any], parts: dict[str, Any]
) -> None:
    cursor = cursor_with(**parts)
    for path in ("/agents", f"/agents/{vega['id']}/clusters"):
        refused = owner.get(path, cursor=cursor)
        assert (refused.status_code, "begin without a cursor" in refused.json()["detail"]) == (422, True)


def test_a_request_with_too_many_parameters_is_refused(owner: Caller) -> None:
    for path in ("/agents", "/documents"):
        response = owner.get(path, limit=["1"] * 1_100)
        assert (response.status_code, response.json()["title"]) == (400, "Bad Request")
