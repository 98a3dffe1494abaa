"""The list and the pages of webhooks."""

from __future__ import annotations

import json

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.contacts.models import SignalWebhook
from apps.tenants.scope import tenant_transaction
from tests.factories.contacts import SignalWebhookFactory
from tests.support.console import World, page_of, page_text

LIST = "admin:contacts_signalwebhook_changelist"


def store_webhook(world: World, **values: object) -> SignalWebhook:
    with tenant_transaction(world.tenant.id):
        webhook: SignalWebhook = SignalWebhookFactory.create(
            tenant_id=world.tenant.id, name="ops", url="https://example.org/s3cret?token=s3cret", **values
        )
    return webhook


def test_pages_show_delivery_and_no_secret(viewer: Client, world: World) -> None:
    webhook = store_webhook(world, failures=3, last_error="example.org answered 503")
    with CaptureQueriesContext(connection) as queries:
        for address in (reverse(LIST), page_of(webhook)):
            shown = page_text(viewer, address)
            assert "https://example.org/…" in shown
            assert "example.org answered 503" in shown
            assert "s3cret" not in shown
    assert not [query for query in queries.captured_queries if "sealed_secret" in query["sql"]]
    exported = b"".join(
        viewer.get(reverse("admin:contacts_signalwebhook_export", args=["json"])).streaming_content  # type: ignore[attr-defined]
    )
    assert "s3cret" not in json.dumps(json.loads(exported))


def test_an_operator_pauses_resumes_and_deletes_a_webhook(
    operator: Client, viewer: Client, world: World
) -> None:
    webhook = store_webhook(world)
    address = reverse("admin:webhook-act", args=[webhook.id])
    assert viewer.post(address, {"act": "delete"}).status_code == 403
    assert operator.post(address, {"act": "sing"}).status_code == 404
    for act, active in (("pause", False), ("resume", True)):
        operator.post(address, {"act": act})
        with tenant_transaction(world.tenant.id):
            assert SignalWebhook.objects.get(id=webhook.id).active is active
    assert "ops is deleted" in operator.post(address, {"act": "delete"}, follow=True).content.decode()
    with tenant_transaction(world.tenant.id):
        assert not SignalWebhook.objects.filter(id=webhook.id).exists()
