"""Hooks over the API: managed by operators, visible to their tenant only, their mappings tried."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from apps.contacts.services.hooks import change_hook
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.contacts.hooks import HOOKS_PATH
from tests.support.api import Caller
from tests.support.hook_requests import standard_request
from tests.support.threads import start_blocked


def test_an_operator_manages_hooks(operator: Caller, viewer: Caller, vega: dict[str, Any]) -> None:
    payload = {
        "name": "alarms",
        "agent_id": vega["id"],
        "mapping": {"title": "{data.title}"},
        "events": ["alarm"],
        "urgent_from": 0.8,
    }
    assert viewer.post("/hooks", payload).status_code == 403
    response = operator.post("/hooks", payload)
    assert response.status_code == 201, response.content
    made = response.json()
    hook = made["hook"]
    assert (hook["kind"], hook["events"], hook["active"]) == ("json", ["alarm"], True)
    assert hook["mapping"]["text"] == "{}"
    sent = standard_request(made["secret"], {"type": "alarm", "data": {"title": "Flood"}})
    assert sent.post(hook["path"].removeprefix(HOOKS_PATH)).status_code == 202
    (delivery,) = viewer.get("/deliveries", hook_id=hook["id"]).json()["items"]
    assert (delivery["status"], delivery["event"]) == ("perceived", "alarm")
    assert operator.post(f"/deliveries/{delivery['id']}/resend").status_code == 409
    assert viewer.get("/hooks").json()["items"] == [hook]
    address = f"/hooks/{hook['id']}"
    changed = operator.send("patch", address, {"mapping": {"text": "{data}"}}).json()
    assert changed["mapping"]["title"] == "{data.title}"
    assert (changed["mapping"]["text"], changed["urgent_from"], changed["events"]) == (
        "{data}",
        0.8,
        ["alarm"],
    )
    assert operator.send("patch", address, {"urgent_from": None}).json()["urgent_from"] is None
    assert not operator.post(f"{address}/disable").json()["active"]
    assert operator.post(f"{address}/enable").json()["active"]
    rotated = operator.post(f"{address}/secret", {"overlap_s": 0}).json()
    assert rotated["secret"] != made["secret"]
    assert rotated["hook"]["previous_until"] is None
    assert operator.post("/hooks", payload).status_code == 409
    assert operator.delete(address).json()["id"] == hook["id"]
    assert operator.get(address).status_code == 404


def test_two_changes_of_a_mapping_at_once_both_stay(
    tenant: Tenant, owner: Caller, vega: dict[str, Any]
) -> None:
    hook = owner.post("/hooks", {"name": "alarms", "agent_id": vega["id"]}).json()["hook"]
    address = f"/hooks/{hook['id']}"
    with tenant_transaction(tenant.id):
        change_hook(
            hook_id=UUID(hook["id"]),
            actor="test",
            mapping={**hook["mapping"], "title": "{a}"},
            urgent_from=None,
        )
        start_blocked(lambda: owner.send("patch", address, {"mapping": {"text": "{b}"}}))
    mapping = owner.get(address).json()["mapping"]
    assert (mapping["title"], mapping["text"]) == ("{a}", "{b}")


def test_a_mapping_is_tried(viewer: Caller, operator: Caller) -> None:
    trial = {"mapping": {"title": "{a.b}", "importance": "{c}"}, "sample": '{"a": {"b": "x"}, "c": "loud"}'}
    tried = operator.post("/try-hook-mapping", trial).json()
    assert (tried["content"], tried["importance"]) == ('x\n{"a": {"b": "x"}, "c": "loud"}', 0.5)
    assert "low, normal, high, critical" in tried["warnings"][0]
    for invalid in ({"sample": "{"}, {"mapping": {"title": "{a"}}, {"mapping": {"color": "x"}}):
        assert operator.post("/try-hook-mapping", {**trial, **invalid}).status_code == 422
    assert viewer.post("/try-hook-mapping", trial).status_code == 403


def test_an_invalid_hook_is_refused(operator: Caller, vega: dict[str, Any]) -> None:
    valid = {"name": "ops", "agent_id": vega["id"]}
    for invalid in (
        {"agent_id": "0" * 32},
        {"kind": "svn"},
        {"kind": "github", "mapping": {}},
        {"signature_header": "a b"},
        {"secret": "short"},
        {"secret": "no base64 of Standard Webhooks"},
        {"urgent_from": 2},
        {"events": [""]},
        {"other": 1},
    ):
        response = operator.post("/hooks", {**valid, **invalid})
        assert response.status_code in (404, 422), (invalid, response.content)
    assert operator.get("/hooks").json()["items"] == []


def test_a_hook_of_another_tenant_is_not_found(
    operator: Caller, outsider: Caller, vega: dict[str, Any]
) -> None:
    hook = operator.post("/hooks", {"name": "ops", "agent_id": vega["id"]}).json()["hook"]
    address = f"/hooks/{hook['id']}"
    answers = [
        outsider.get(address),
        outsider.delete(address),
        outsider.post(f"{address}/disable"),
        outsider.post(f"{address}/secret", {}),
        outsider.send("patch", address, {"events": []}),
        outsider.post("/hooks", {"name": "ops", "agent_id": vega["id"]}),
    ]
    assert [answer.status_code for answer in answers] == [404] * len(answers)
    assert outsider.get("/hooks").json()["items"] == []
