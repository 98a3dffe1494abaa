"""Pages and forms of hooks and webhooks, and of their deliveries."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.console import forms
from apps.contacts.models import Hook, HookDelivery, SignalWebhook
from apps.contacts.services.hooks import HookWithSecret, NewHook, create_hook
from apps.contacts.services.signal_webhooks import create_webhook
from apps.tenants.scope import tenant_transaction
from arbor.contacts.hooks import HookKind
from tests.factories.contacts import HookDeliveryFactory
from tests.support.api import API_SETTINGS
from tests.support.console import World, page_of
from tests.support.hook_requests import standard_request

LIST = "admin:contacts_hook_changelist"
ADD = "admin:contacts_hook_add"
DELIVERIES = "admin:contacts_hookdelivery_changelist"
MAPPING = {"event": "{type}", "title": "{data.title}", "text": "", "sender": "", "importance": ""}
SAMPLE = '{"type": "alarm", "data": {"title": "<b>Flood</b>"}}'


def text_of(response: Any) -> str:
    """Return the text of a page; assert that it opens."""
    assert response.status_code == 200
    return str(response.content.decode())


def new_hook(world: World, **fields: Any) -> HookWithSecret:
    """Create a hook of the world's agent."""
    with tenant_transaction(world.tenant.id):
        payload = NewHook(**{"name": "ops", "agent_id": world.agent.id, **fields})
        return create_hook(payload, actor="test")


def deliver(made: HookWithSecret, body: Any, **options: Any) -> None:
    """Post a delivery to the hook, at the API's process."""
    with override_settings(**API_SETTINGS):
        standard_request(made.secret, body, **options).post(made.hook.key)


def test_a_hook_is_tried_added_and_used(operator: Client, world: World) -> None:
    payload = {"name": "alarms", "agent": str(world.agent.id), "kind": "json", **MAPPING, "sample": SAMPLE}
    tried = text_of(operator.post(reverse(ADD), {**payload, "act": "try"}))
    assert "&lt;b&gt;Flood&lt;/b&gt;" in tried
    assert 'id="trial"' in tried
    with tenant_transaction(world.tenant.id):
        assert not Hook.objects.filter(name="alarms").exists()
    added = text_of(operator.post(reverse(ADD), payload))
    (secret,) = re.findall(r'id="secret">(whsec_[^<]+)<', added)
    with tenant_transaction(world.tenant.id):
        hook = Hook.objects.get(name="alarms")
    assert f"/hooks/{hook.key}" in added
    assert hook.mapping["title"] == "{data.title}"
    deliver(HookWithSecret(hook=hook, secret=secret), {"type": "alarm", "data": {"title": "Flood"}})
    page = text_of(operator.get(page_of(hook)))
    assert "alarm" in page
    assert "perceived" in page
    assert secret not in page
    listed = text_of(operator.get(reverse(LIST)))
    assert "alarms" in listed
    assert "perceived" in listed


def test_an_agent_beyond_the_suggested_ones_is_given_by_name(
    operator: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forms, "_AGENTS_OFFERED", 0)
    payload = {"name": "alarms", "agent": world.agent.name, "kind": "json", **MAPPING}
    text_of(operator.post(reverse(ADD), payload))
    unknown = text_of(operator.post(reverse(ADD), {**payload, "name": "more", "agent": "Nobody"}))
    assert 'value="Nobody"' in unknown
    with tenant_transaction(world.tenant.id):
        assert [hook.agent for hook in Hook.objects.filter(name__in=["alarms", "more"])] == [world.agent]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"title": "{a"}, "a single &#x27;{&#x27;"),
        ({"name": ""}, "required"),
        ({"agent": "x"}, "there is no agent"),
        ({"secret": "short"}, "16 to 200"),
        ({"kind": "github", "signature_header": "X-Sig"}, "only a hook of the kind json"),
        ({"kind": "github"}, "only the kind json has a mapping"),
        ({"urgent_from": "2"}, "less than or equal to 1"),
        ({"act": "try", "sample": "{"}, "not JSON"),
        ({"act": "try", "sample": "{}"}, "neither a title nor a text"),
    ],
)
def test_an_invalid_hook_is_refused_with_the_reason(
    operator: Client, world: World, changes: dict[str, str], reason: str
) -> None:
    payload = {"name": "alarms", "agent": str(world.agent.id), "kind": "json", **MAPPING, **changes}
    assert reason in text_of(operator.post(reverse(ADD), payload))
    with tenant_transaction(world.tenant.id):
        assert not Hook.objects.filter(name="alarms").exists()


def test_a_hook_is_changed_switched_rotated_and_deleted(
    operator: Client, viewer: Client, world: World
) -> None:
    made = new_hook(world, mapping=MAPPING)
    deliver(made, {"type": "alarm", "data": {"title": "Flood"}})
    edit, act, rotate = (
        reverse(f"admin:hook-{name}", args=[made.hook.id]) for name in ("edit", "act", "rotate")
    )
    for response in (viewer.get(edit), viewer.post(act, {"act": "delete"}), viewer.post(rotate)):
        assert response.status_code == 403
    # The body of the latest delivery is the sample.
    assert "&quot;Flood&quot;" in text_of(operator.get(edit))
    change = {**MAPPING, "title": "Alarm: {data.title}", "events": "alarm, test", "urgent_from": "0.7"}
    tried = operator.post(edit, {**change, "sample": SAMPLE, "act": "try"})
    assert "Alarm: &lt;b&gt;Flood" in text_of(tried)
    assert operator.post(edit, change).status_code == 302
    with tenant_transaction(world.tenant.id):
        hook = Hook.objects.get(id=made.hook.id)
    assert (hook.events, hook.urgent_from, hook.mapping["title"]) == (
        ["alarm", "test"],
        0.7,
        "Alarm: {data.title}",
    )
    assert "ops is off" in text_of(operator.post(act, {"act": "off"}, follow=True))
    deliver(made, {"type": "alarm"}, message_id="msg_2")
    assert "the hook is disabled" in text_of(operator.get(page_of(hook)))
    assert "ops is on" in text_of(operator.post(act, {"act": "on"}, follow=True))
    shown = text_of(operator.post(rotate))
    assert "whsec_" in shown
    assert made.secret not in shown
    assert "The one before is valid for a day more" in shown
    with tenant_transaction(world.tenant.id):
        # As another master key leaves it.
        Hook.objects.filter(id=made.hook.id).update(sealed_secret={})
    shown = text_of(operator.post(rotate))
    assert "whsec_" in shown
    assert "The one before" not in shown
    assert "ops is deleted" in text_of(operator.post(act, {"act": "delete"}, follow=True))
    with tenant_transaction(world.tenant.id):
        assert not HookDelivery.objects.filter(hook_id=hook.id).exists()


def test_the_editor_of_a_github_hook_has_no_mapping(operator: Client, world: World) -> None:
    made = new_hook(world, kind=HookKind.GITHUB)
    edit = reverse("admin:hook-edit", args=[made.hook.id])
    page = text_of(operator.get(edit))
    assert 'name="events"' in page
    assert 'name="title"' not in page
    assert operator.post(edit, {"events": "push"}).status_code == 302
    with tenant_transaction(world.tenant.id):
        assert Hook.objects.get(id=made.hook.id).events == ["push"]


def test_deliveries_show_their_results(viewer: Client, world: World) -> None:
    made = new_hook(world, mapping=MAPPING)
    deliver(made, {"type": "alarm", "data": {"title": "Flood"}})
    deliver(made, b"{", message_id="msg_2")
    with tenant_transaction(world.tenant.id):
        broken, perceived = HookDelivery.objects.filter(hook=made.hook).order_by("-at")
    listed = text_of(viewer.get(reverse(DELIVERIES), {"hook__id__exact": str(made.hook.id)}))
    assert "the body is not JSON" in listed
    page = text_of(viewer.get(page_of(perceived)))
    assert reverse("admin:agents_percept_change", args=[perceived.percept_id]) in page
    assert "msg_1" in page
    assert "Send again" not in page
    assert "the body is not JSON" in text_of(viewer.get(page_of(broken)))


def test_no_page_reads_a_secret(viewer: Client, world: World) -> None:
    made = new_hook(world)
    deliver(made, {"a": 1})
    with tenant_transaction(world.tenant.id):
        delivery = HookDelivery.objects.get(hook=made.hook)
    with CaptureQueriesContext(connection) as queries:
        for address in (reverse(LIST), page_of(made.hook), reverse(DELIVERIES), page_of(delivery)):
            text_of(viewer.get(address))
    assert not [query for query in queries.captured_queries if "sealed_secret" in query["sql"]]


def test_a_webhook_is_added_and_its_deliveries_are_sent_again(
    operator: Client, viewer: Client, world: World
) -> None:
    add = reverse("admin:contacts_signalwebhook_add")
    payload = {"name": "goals", "url": "https://example.org/in", "signals": "memory.goal_*, agent.paused"}
    assert viewer.post(add, payload).status_code == 403
    assert "whsec_" in text_of(operator.post(add, payload))
    assert "there is a webhook" in text_of(operator.post(add, payload))
    assert "https://" in text_of(operator.post(add, {**payload, "name": "b", "url": "ftp://x"}))
    with tenant_transaction(world.tenant.id):
        webhook = SignalWebhook.objects.get(name="goals")
        assert webhook.signals == ["memory.goal_*", "agent.paused"]
        delivery = HookDeliveryFactory(
            tenant_id=world.tenant.id, hook=None, webhook=webhook, status="failed", error="answered 500"
        )
    assert "answered 500" in text_of(operator.get(page_of(webhook)))
    assert "Send again" in text_of(operator.get(page_of(delivery)))
    act = reverse("admin:delivery-act", args=[delivery.id])
    assert viewer.post(act, {"act": "resend"}).status_code == 403
    assert "sent again within seconds" in text_of(operator.post(act, {"act": "resend"}, follow=True))
    assert "Nothing was done" in text_of(operator.post(act, {"act": "resend"}, follow=True))
    rotated = text_of(operator.post(reverse("admin:webhook-rotate", args=[webhook.id])))
    assert "whsec_" in rotated


def test_rows_of_another_tenant_are_not_found(operator: Client, world: World, other_tenant: Any) -> None:
    with tenant_transaction(other_tenant.id):
        webhook = create_webhook(name="theirs", url="https://example.org", actor="test").webhook
        delivery = HookDeliveryFactory(tenant_id=other_tenant.id, hook=None, webhook=webhook, status="failed")
    for name, row in (("delivery-act", delivery), ("webhook-rotate", webhook)):
        response = operator.post(reverse(f"admin:{name}", args=[row.id]), {"act": "resend"})
        assert response.status_code == 404
    assert "theirs" not in text_of(operator.get(reverse(DELIVERIES)))
