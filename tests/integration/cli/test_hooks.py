"""`arbor contact hook`, and the deliveries of webhooks."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from django.test import Client, override_settings

from apps.contacts.models import Hook, SignalWebhook
from apps.contacts.services.hooks import change_hook
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.contacts.hooks import HOOKS_PATH
from config.cli.contacts import hooks
from tests.factories.contacts import HookDeliveryFactory
from tests.integration.cli.conftest import Arbor
from tests.support.api import API_SETTINGS
from tests.support.hook_requests import hex_signature, standard_request
from tests.support.threads import await_blocked_session, in_own_connection


def test_a_hook_is_created_changed_and_deleted(arbor: Arbor, vega: str) -> None:
    assert "No hooks" in arbor("contact", "hook", "list").out
    mapping = ("--map", "title={data.title}", "--event", "alarm", "--urgent-from", "0.8")
    made = arbor("contact", "hook", "create", "ops", "--agent", vega, *mapping, "--json").json
    assert made["secret"].startswith("whsec_")
    (listed,) = arbor("contact", "hook", "list", "--json").json["hooks"]
    assert listed == {name: value for name, value in made.items() if name != "secret"}
    assert (listed["agent"], listed["kind"], listed["urgent_from"]) == (vega, "json", 0.8)
    with override_settings(**API_SETTINGS):
        sent = standard_request(made["secret"], {"type": "alarm", "data": {"title": "Flood"}})
        assert sent.post(made["path"].removeprefix(HOOKS_PATH)).status_code == 202
    (delivery,) = arbor("contact", "hook", "deliveries", "ops", "--json").json["deliveries"]
    assert (delivery["of"], delivery["event"], delivery["status"]) == ("ops", "alarm", "perceived")
    assert "No deliveries" in arbor("contact", "hook", "deliveries", "--status", "failed", "--limit", "5").out
    changed = arbor("contact", "hook", "change", "ops", "--map", "text={x}", "--all-events", "--json").json
    assert (changed["events"], changed["urgent_from"]) == ([], 0.8)
    assert (changed["mapping"]["title"], changed["mapping"]["text"]) == ("{data.title}", "{x}")
    assert arbor("contact", "hook", "change", "ops", "--never-urgent", "--json").json["urgent_from"] is None
    changed = arbor(
        "contact", "hook", "change", "ops", "--urgent-from", "0.9", "--event", "push", "--json"
    ).json
    assert (changed["events"], changed["urgent_from"]) == (["push"], 0.9)
    assert not arbor("contact", "hook", "disable", "ops", "--json").json["active"]
    assert "off" in arbor("contact", "hook", "list").out
    assert arbor("contact", "hook", "enable", "ops", "--json").json["active"]
    rotated = arbor("contact", "hook", "rotate", "ops")
    assert "whsec_" in rotated.out
    assert made["secret"] not in rotated.out
    assert arbor("contact", "hook", "delete", "ops", "--json").json["deleted"]["name"] == "ops"
    missing = arbor("contact", "hook", "disable", "ops")
    assert (missing.code, "'ops'" in missing.err) == (1, True)


def test_two_changes_of_a_hook_at_once_are_both_made(
    arbor: Arbor, vega: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    arbor("contact", "hook", "create", "ops", "--agent", vega, "--event", "alarm")
    tenant_id = Tenant.objects.using("ops").get().id

    def change_urgency() -> None:
        with tenant_transaction(tenant_id):
            change_hook(hook_id=Hook.objects.get().id, actor="cli:ada", urgent_from=0.5)

    others: list[Thread] = []

    def change_later(**named: Any) -> Hook:
        others.append(in_own_connection(change_urgency))
        # The other change waits until this one is committed.
        await_blocked_session()
        return change_hook(**named)

    monkeypatch.setattr(hooks, "change_hook", change_later)
    assert arbor("contact", "hook", "change", "ops", "--map", "title={a}").code == 0
    others[0].join(20)
    (hook,) = arbor("contact", "hook", "list", "--json").json["hooks"]
    assert (hook["urgent_from"], hook["mapping"]["title"]) == (0.5, "{a}")


def test_a_change_of_a_hook_does_not_contradict_itself(arbor: Arbor, vega: str) -> None:
    arbor("contact", "hook", "create", "ops", "--agent", vega)
    for options in (("--event", "push", "--all-events"), ("--urgent-from", "0.9", "--never-urgent")):
        assert arbor("contact", "hook", "change", "ops", *options).code == 2, options


def test_a_sender_may_bring_its_secret(arbor: Arbor, vega: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("a secret of the sender\n")
    options = ("--header", "X-Signature", "--secret-file", str(file))
    made = arbor(
        "contact", "hook", "create", "ops", "--kind", "json", "--agent", vega, *options, "--json"
    ).json
    assert made["secret"] == "a secret of the sender"
    body = json.dumps({"a": 1})
    with override_settings(**API_SETTINGS):
        response = Client().post(
            made["path"],
            data=body,
            content_type="application/json",
            headers={"X-Signature": hex_signature("a secret of the sender", body.encode())},
        )
    assert response.status_code == 202
    file.write_text("the next secret of the sender")
    rotated = arbor("contact", "hook", "rotate", "ops", "--secret-file", str(file), "--json").json
    assert rotated["secret"] == "the next secret of the sender"


def test_a_mapping_is_tried_on_a_file(arbor: Arbor, vega: str, tmp_path: Path) -> None:
    sample = tmp_path / "body.json"
    sample.write_text('{"type": "alarm", "data": {"title": "Flood", "level": "loud"}}')
    mapping = ("--map", "title={data.title}", "--map", "importance={data.level}", "--map", "text={data.x}")
    tried = arbor("contact", "hook", "try", str(sample), *mapping, "--json").json
    assert (tried["content"], tried["event"], tried["importance"]) == ("Flood", "alarm", 0.5)
    assert len(tried["warnings"]) == 2
    arbor("contact", "hook", "create", "ops", "--agent", vega, "--map", "title=Alarm: {data.title}")
    assert "Alarm: Flood" in arbor("contact", "hook", "try", str(sample), "--hook", "ops").out
    for invalid, reason in (
        ("title={a", "a single '{'"),
        ("colour=x", "'colour'"),
        ("title", "NAME=TEMPLATE"),
    ):
        ran = arbor("contact", "hook", "try", str(sample), "--map", invalid)
        assert ran.code != 0
        assert reason in ran.err


def test_deliveries_of_a_webhook_are_listed_and_sent_again(arbor: Arbor, one_tenant: str) -> None:
    arbor("contact", "webhook", "create", "ops", "--url", "https://example.org")
    with tenant_transaction(Tenant.objects.using("ops").get(slug=one_tenant).id):
        webhook = SignalWebhook.objects.get()
        HookDeliveryFactory(
            tenant_id=webhook.tenant_id, hook=None, webhook=webhook, status="failed", event="agent.paused"
        )
    failed = ("--status", "failed", "--limit", "5")
    (delivery,) = arbor("contact", "webhook", "deliveries", *failed, "--json").json["deliveries"]
    assert (delivery["direction"], delivery["of"], delivery["status"]) == ("out", "ops", "failed")
    assert arbor("contact", "hook", "deliveries", "--json").json["deliveries"] == []
    resent = arbor("contact", "webhook", "resend", delivery["id"], "--json").json
    assert resent["status"] == "resending"
    repeated = arbor("contact", "webhook", "resend", delivery["id"])
    assert (repeated.code, "again by itself" in repeated.err) == (1, True)
    rotated = arbor("contact", "webhook", "rotate", "ops", "--json").json
    assert rotated["secret"].startswith("whsec_")
