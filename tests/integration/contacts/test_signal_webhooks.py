"""Signals by webhook: signed, in order, repeated until they are confirmed, and paused after a day of failures."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

import pytest
from django.db import connections

from apps.agents.models import Agent
from apps.audit.models import AuditEvent
from apps.contacts.services.signal_delivery import post_signals, sweep_webhooks
from apps.contacts.services.signal_webhooks import (
    MAX_WEBHOOKS,
    delete_webhook,
    rotate_webhook_secret,
    switch_webhook,
)
from apps.queues import TaskMessage
from apps.signals.services.emission import emit
from apps.tenants.models import Tenant, TenantStatus
from apps.tenants.scope import OPS, tenant_transaction
from apps.tenants.services import create_tenant
from arbor.adapters.webhook import Webhook
from arbor.contacts.standard_webhooks import signed_headers
from arbor.errors import AlreadyExists, Invalid, LimitReached, TransitionIllegal
from arbor.signals import Signal, SignalName
from tests.factories.contacts import SignalWebhookFactory
from tests.integration.contacts.conftest import make_agent
from tests.integration.contacts.receivers import WebReceiver
from tests.integration.contacts.webhook_posts import (
    deliveries_of,
    emit_goals,
    make_due,
    make_webhook,
    post_first,
    resend,
    run_posts,
    titles_of,
)
from tests.support.rows import reload


def test_a_webhook_gets_signals_signed_and_in_order(
    agent: Agent, messages: list[TaskMessage], web: WebReceiver
) -> None:
    emit_goals(agent, "before")
    made = make_webhook(agent, f"{web.url}/hook?token=t")
    emit_goals(agent, "first", "second ☃")
    assert run_posts(messages) == [2]
    (request,) = web.requests
    body = json.loads(request.body)
    assert titles_of(request) == ["first", "second ☃"]
    signal = body["data"]["signals"][0]
    assert (signal["name"], signal["agent_id"]) == ("memory.goal_achieved", str(agent.id))
    assert body["type"] == "signals"
    assert request.path == "/hook?token=t"
    message_id, at = request.headers["webhook-id"], request.headers["webhook-timestamp"]
    mac = hmac.new(
        base64.b64decode(made.secret.removeprefix("whsec_")),
        f"{message_id}.{at}.".encode() + request.body,
        hashlib.sha256,
    ).digest()
    assert request.headers["webhook-signature"] == f"v1,{base64.b64encode(mac).decode()}"
    assert reload(made.webhook).delivered_at is not None
    # No signal is posted twice, and without new signals the webhook is not leased.
    assert run_posts(messages) in ([], [0])
    assert run_posts(messages) == []
    emit_goals(agent, "third")
    assert run_posts(messages) == [1]
    assert titles_of(web.requests[-1]) == ["third"]


def test_a_failed_request_is_repeated_unchanged(
    agent: Agent, messages: list[TaskMessage], web: WebReceiver
) -> None:
    webhook = make_webhook(agent, f"{web.url}/s3cret").webhook
    web.statuses = [503]
    emit_goals(agent, "first")
    assert run_posts(messages) == [0]
    current = reload(webhook)
    assert (current.failures, current.active) == (1, True)
    assert "answered 503" in current.last_error
    assert "s3cret" not in current.last_error
    emit_goals(agent, "second")
    # The webhook waits before it tries again.
    assert run_posts(messages) == []
    make_due(webhook)
    assert run_posts(messages) == [2]
    failed, repeated, following = web.requests
    assert repeated.body == failed.body
    assert repeated.headers["webhook-id"] == failed.headers["webhook-id"]
    assert titles_of(following) == ["second"]
    current = reload(webhook)
    assert (current.failures, current.failing_since, current.last_error) == (0, None, "")


def test_only_the_wanted_signals_are_posted(
    agent: Agent, messages: list[TaskMessage], web: WebReceiver, tenant: Tenant
) -> None:
    other = make_agent(tenant, "Bee")
    make_webhook(agent, web.url, signals=["memory.goal_*"], agent_id=agent.id)
    emit_goals(agent, "wanted")
    with tenant_transaction(agent.tenant_id):
        emit(Signal(name=SignalName.AGENT_PAUSED, agent_id=agent.id, data={"name": "Ada", "actor": "test"}))
    emit_goals(other, "another agent")
    assert run_posts(messages) == [1]
    assert [titles_of(request) for request in web.requests] == [["wanted"]]


def test_a_webhook_gets_no_signals_of_other_tenants(
    agent: Agent, messages: list[TaskMessage], web: WebReceiver
) -> None:
    foreign = make_agent(create_tenant(slug="foreign", name="Foreign"), "Eve")
    make_webhook(agent, web.url)
    emit_goals(foreign, "secret")
    assert run_posts(messages) == []
    emit_goals(agent, "own")
    assert run_posts(messages) == [1]
    assert [titles_of(request) for request in web.requests] == [["own"]]


def test_a_day_of_failures_pauses_a_webhook(
    agent: Agent, messages: list[TaskMessage], web: WebReceiver
) -> None:
    webhook = post_first(agent, messages, web, 500, 500)
    with tenant_transaction(agent.tenant_id), connections["default"].cursor() as cursor:
        cursor.execute("UPDATE contacts_signalwebhook SET failing_since = now() - interval '25 hours'")
    make_due(webhook)
    run_posts(messages)
    assert not reload(webhook).active
    make_due(webhook)
    assert run_posts(messages) == []
    with tenant_transaction(agent.tenant_id):
        event = AuditEvent.objects.get(message__startswith="paused the webhook ops after 2 failed requests")
        assert event.actor == "system:outbox"
        switch_webhook(webhook_id=webhook.id, active=True, actor="test")
    # The signals of the pause are not lost.
    assert run_posts(messages) == [1]
    assert titles_of(web.requests[-1]) == ["first"]


def test_a_receiver_that_is_gone_pauses_its_webhook(
    agent: Agent, messages: list[TaskMessage], web: WebReceiver
) -> None:
    webhook = post_first(agent, messages, web, 410)
    assert not reload(webhook).active
    with tenant_transaction(agent.tenant_id):
        assert AuditEvent.objects.filter(
            message__startswith="paused the webhook ops after 1 failed request: "
        )
    with pytest.raises(TransitionIllegal, match="resume it first"):
        resend(deliveries_of(webhook)[0])


def test_a_worker_without_the_lease_posts_nothing(
    agent: Agent, messages: list[TaskMessage], web: WebReceiver
) -> None:
    webhook = make_webhook(agent, web.url).webhook
    emit_goals(agent, "first")
    messages.clear()
    assert sweep_webhooks() == 1
    # While the lease lasts, no other sweep leases the webhook.
    assert sweep_webhooks() == 0
    make_due(webhook)
    assert sweep_webhooks() == 1
    first, second = (message.arguments["lease"] for message in messages)
    assert post_signals(webhook_id=webhook.id, lease=first, tenant_id=agent.tenant_id) == 0
    assert post_signals(webhook_id=webhook.id, lease=second, tenant_id=agent.tenant_id) == 1


def test_a_suspended_tenant_gets_nothing(agent: Agent, messages: list[TaskMessage], web: WebReceiver) -> None:
    make_webhook(agent, web.url)
    emit_goals(agent, "first")
    Tenant.objects.using(OPS).filter(id=agent.tenant_id).update(status=TenantStatus.SUSPENDED)
    assert run_posts(messages) == []


def test_an_unreadable_secret_is_a_failure(
    agent: Agent, messages: list[TaskMessage], web: WebReceiver
) -> None:
    with tenant_transaction(agent.tenant_id):
        webhook = SignalWebhookFactory.create(tenant_id=agent.tenant_id, url=web.url, signals=[])
    emit_goals(agent, "first")
    assert run_posts(messages) == [0]
    assert "sealed" in reload(webhook).last_error
    assert web.requests == []
    with tenant_transaction(agent.tenant_id):
        rotate_webhook_secret(webhook_id=webhook.id, actor="test")
    assert reload(webhook).previous_until is None
    make_due(webhook)
    assert run_posts(messages) == [1]


def test_an_unexpected_error_counts_as_a_failure(
    agent: Agent, messages: list[TaskMessage], web: WebReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("s3cret")

    webhook = make_webhook(agent, web.url).webhook
    monkeypatch.setattr(Webhook, "post", fail)
    emit_goals(agent, "first")
    assert run_posts(messages) == [0]
    current = reload(webhook)
    assert (current.failures, current.last_error) == (1, "an internal error of Arbor: RuntimeError")


def test_webhooks_are_checked_before_they_are_stored(agent: Agent, web: WebReceiver) -> None:
    make_webhook(agent, web.url)
    with pytest.raises(AlreadyExists, match="'ops'"):
        make_webhook(agent, web.url)
    invalid_options: list[dict[str, Any]] = [
        {"name": " "},
        {"url": "ftp://example.org"},
        {"signals": ["memory.nothing"]},
    ]
    for invalid in invalid_options:
        with pytest.raises(Invalid):
            make_webhook(agent, **{"url": web.url, "name": "other", **invalid})
    for url, fault in (
        (f"{web.url}/\x00", "printable characters only"),
        (f"{web.url}/{'x' * 2_000}", r"characters, got 2,\d+$"),
    ):
        with pytest.raises(Invalid, match=fault):
            make_webhook(agent, url=url, name="other")
    with tenant_transaction(agent.tenant_id):
        for _ in range(MAX_WEBHOOKS - 1):
            SignalWebhookFactory.create(tenant_id=agent.tenant_id)
    with pytest.raises(LimitReached, match="at most 20"):
        make_webhook(agent, web.url, name="more")


def test_acts_on_a_webhook_are_audited(agent: Agent, web: WebReceiver) -> None:
    webhook = make_webhook(agent, f"{web.url}/s3cret").webhook
    with tenant_transaction(agent.tenant_id):
        switch_webhook(webhook_id=webhook.id, active=False, actor="test")
        delete_webhook(webhook_id=webhook.id, actor="test")
        events = AuditEvent.objects.filter(detail__webhook="ops").order_by("id")
        assert [event.message.split(" ")[0] for event in events] == ["created", "paused", "deleted"]
        assert "s3cret" not in str([(event.message, event.detail) for event in events])


def test_a_rotated_secret_signs_beside_the_one_before(
    agent: Agent, messages: list[TaskMessage], web: WebReceiver
) -> None:
    made = make_webhook(agent, web.url)
    with tenant_transaction(agent.tenant_id):
        rotated = rotate_webhook_secret(webhook_id=made.webhook.id, actor="test")
    emit_goals(agent, "first")
    run_posts(messages)
    (request,) = web.requests
    signatures = request.headers["webhook-signature"].split()
    for secret, signature in zip((rotated.secret, made.secret), signatures, strict=True):
        expected = signed_headers(
            secret,
            message_id=request.headers["webhook-id"],
            at=int(request.headers["webhook-timestamp"]),
            body=request.body,
        )
        assert expected["webhook-signature"] == signature
