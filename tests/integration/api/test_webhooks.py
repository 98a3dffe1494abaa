"""Webhooks and channels over the API: managed by operators, visible to their tenant only."""

from __future__ import annotations

from typing import Any

from apps.contacts.models import Channel, SignalWebhook
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from tests.factories.contacts import HookDeliveryFactory
from tests.support.api import Caller

URL = "https://example.org/s3cret"


def test_an_operator_manages_webhooks(operator: Caller, viewer: Caller, vega: dict[str, Any]) -> None:
    payload = {"name": "ops", "url": URL, "signals": ["memory.goal_*"], "agent_id": vega["id"]}
    assert viewer.post("/webhooks", payload).status_code == 403
    response = operator.post("/webhooks", payload)
    assert response.status_code == 201, response.content
    made = response.json()
    assert made["secret"].startswith("whsec_")
    webhook = made["webhook"]
    assert (webhook["url"], webhook["agent_id"]) == ("https://example.org/…", vega["id"])
    assert viewer.get("/webhooks").json()["items"] == [webhook]
    address = f"/webhooks/{webhook['id']}"
    assert viewer.get(address).json() == webhook
    assert viewer.post(f"{address}/pause").status_code == 403
    assert not operator.post(f"{address}/pause").json()["active"]
    assert operator.post(f"{address}/resume").json()["active"]
    assert operator.post("/webhooks", payload).status_code == 409
    assert operator.delete(address).json()["id"] == webhook["id"]
    assert operator.get(address).status_code == 404


def test_an_invalid_webhook_is_refused(operator: Caller) -> None:
    for invalid in (
        {"url": "ftp://x"},
        {"signals": ["memory.nothing"]},
        {"agent_id": "0" * 32},
        {"other": 1},
    ):
        response = operator.post("/webhooks", {"name": "ops", "url": URL, **invalid})
        assert response.status_code in (404, 422), response.content
    assert operator.get("/webhooks").json()["items"] == []


def test_a_webhook_of_another_tenant_is_not_found(operator: Caller, outsider: Caller) -> None:
    webhook = operator.post("/webhooks", {"name": "ops", "url": URL}).json()["webhook"]
    address = f"/webhooks/{webhook['id']}"
    assert outsider.get(address).status_code == 404
    assert outsider.delete(address).status_code == 404
    assert outsider.post(f"{address}/pause").status_code == 404
    assert outsider.get("/webhooks").json()["items"] == []


def test_a_secret_is_rotated_and_deliveries_are_listed(
    operator: Caller, viewer: Caller, outsider: Caller, tenant: Tenant
) -> None:
    made = operator.post("/webhooks", {"name": "ops", "url": URL}).json()
    webhook_id = made["webhook"]["id"]
    assert viewer.post(f"/webhooks/{webhook_id}/secret").status_code == 403
    rotated = operator.post(f"/webhooks/{webhook_id}/secret").json()
    assert rotated["secret"].startswith("whsec_")
    assert rotated["secret"] != made["secret"]
    with tenant_transaction(tenant.id):
        webhook = SignalWebhook.objects.get(id=webhook_id)
        delivery = HookDeliveryFactory(tenant_id=tenant.id, hook=None, webhook=webhook, status="confirmed")
    (listed,) = viewer.get("/deliveries", webhook_id=webhook_id, direction="out").json()["items"]
    assert (listed["id"], listed["status"]) == (str(delivery.id), "confirmed")
    assert viewer.get("/deliveries", direction="in").json()["items"] == []
    assert viewer.get("/deliveries", status="failed").json()["items"] == []
    assert outsider.get("/deliveries").json()["items"] == []
    resend = f"/deliveries/{delivery.id}/resend"
    assert (viewer.post(resend).status_code, outsider.post(resend).status_code) == (403, 404)
    assert operator.post(resend).json()["status"] == "resending"
    assert operator.post(resend).status_code == 409


def test_the_test_of_a_channel_says_that_its_secret_does_not_open(operator: Caller, tenant: Tenant) -> None:
    payload = {"name": "desk", "kind": "webhook", "audience": "user", "target": "https://example.org/in"}
    channel = operator.post("/channels", payload).json()["channel"]["id"]
    with tenant_transaction(tenant.id):
        row = Channel.objects.get(id=channel)
        row.sealed_secret["k"] = "other"
        row.save()
    refused = operator.post(f"/channels/{channel}/test-message")
    assert (refused.status_code, "master key other" in refused.json()["detail"]) == (502, True)


def test_an_operator_manages_channels(operator: Caller, viewer: Caller, outsider: Caller) -> None:
    payload = {"name": "desk", "kind": "inbox", "audience": "user"}
    assert viewer.post("/channels", payload).status_code == 403
    response = operator.post("/channels", payload)
    assert response.status_code == 201, response.content
    address = f"/channels/{response.json()['channel']['id']}"
    assert not operator.post(f"{address}/disable").json()["enabled"]
    assert operator.post(f"{address}/test-message").status_code == 200
    assert (viewer.delete(address).status_code, outsider.delete(address).status_code) == (403, 404)
    assert operator.delete(address).json()["name"] == "desk"
    assert viewer.get("/channels").json()["items"] == []
