"""The log of the deliveries of a webhook, and deliveries that are sent again."""

from __future__ import annotations

import pytest
from django.db.models import F

from apps.agents.models import Agent
from apps.audit.models import AuditEvent
from apps.contacts.models import HookDelivery, SignalWebhook
from apps.contacts.services.signal_webhooks import switch_webhook
from apps.queues import TaskMessage
from apps.tenants.scope import tenant_transaction
from arbor.errors import TransitionIllegal
from tests.integration.contacts.receivers import WebReceiver
from tests.integration.contacts.webhook_posts import (
    deliveries_of,
    emit_goals,
    make_due,
    post_first,
    resend,
    run_posts,
    titles_of,
)
from tests.support.rows import reload
from tests.support.threads import start_blocked


def test_a_resend_locks_the_webhook_before_the_delivery(
    agent: Agent, messages: list[TaskMessage], web: WebReceiver
) -> None:
    webhook = post_first(agent, messages, web)
    (delivery,) = deliveries_of(webhook)
    with tenant_transaction(agent.tenant_id):
        # Like a deletion, which locks the deliveries after their webhook.
        SignalWebhook.objects.select_for_update().get(id=webhook.id)
        start_blocked(lambda: resend(delivery))
        HookDelivery.objects.select_for_update(nowait=True).get(id=delivery.id)
    assert deliveries_of(webhook)[0].status == "resending"


def test_each_request_has_one_row_in_the_log(
    agent: Agent, messages: list[TaskMessage], web: WebReceiver
) -> None:
    webhook = post_first(agent, messages, web, 503)
    (delivery,) = deliveries_of(webhook)
    assert (delivery.status, delivery.attempts) == ("retrying", 1)
    assert "answered 503" in delivery.error
    assert delivery.event == "memory.goal_achieved"
    make_due(webhook)
    emit_goals(agent, "second")
    run_posts(messages)
    repeated, following = deliveries_of(webhook)
    assert (repeated.id, repeated.status, repeated.attempts, repeated.error) == (
        delivery.id,
        "confirmed",
        2,
        "",
    )
    assert (following.status, following.attempts) == ("confirmed", 1)
    assert repeated.delivery_id == web.requests[0].headers["webhook-id"]


def test_a_confirmed_delivery_is_sent_again_alone(
    agent: Agent, messages: list[TaskMessage], web: WebReceiver
) -> None:
    webhook = post_first(agent, messages, web)
    emit_goals(agent, "second")
    run_posts(messages)
    position = reload(webhook).position
    first, _ = deliveries_of(webhook)
    resend(first)
    with pytest.raises(TransitionIllegal, match="again by itself"):
        resend(first)
    assert run_posts(messages) == [1]
    assert [titles_of(request) for request in web.requests] == [["first"], ["second"], ["first"]]
    assert web.requests[2].headers["webhook-id"] == web.requests[0].headers["webhook-id"]
    assert reload(webhook).position >= position
    assert [(row.status, row.attempts) for row in deliveries_of(webhook)] == [
        ("confirmed", 2),
        ("confirmed", 1),
    ]
    # A failure is shown, and neither repeated nor counted against the webhook.
    web.statuses = [500]
    resend(first)
    run_posts(messages)
    assert deliveries_of(webhook)[0].status == "failed"
    assert (reload(webhook).failures, reload(webhook).active) == (0, True)
    assert run_posts(messages) in ([], [0])
    with tenant_transaction(agent.tenant_id):
        assert AuditEvent.objects.filter(message__startswith="resent a delivery", actor="test").count() == 2


def test_a_delivery_without_its_signals_fails(
    agent: Agent, messages: list[TaskMessage], web: WebReceiver
) -> None:
    webhook = post_first(agent, messages, web)
    with tenant_transaction(agent.tenant_id):
        HookDelivery.objects.update(begin=f"{0:032x}.0", end=f"{1:032x}.0")
    resend(deliveries_of(webhook)[0])
    run_posts(messages)
    assert "deleted by age" in deliveries_of(webhook)[0].error
    assert len(web.requests) == 1


def test_a_failed_request_without_its_signals_is_not_retried(
    agent: Agent, messages: list[TaskMessage], web: WebReceiver
) -> None:
    webhook = post_first(agent, messages, web, 503)
    with tenant_transaction(agent.tenant_id):
        # As if the signals were deleted: they are not read again.
        SignalWebhook.objects.update(position=F("failed_end"))
    emit_goals(agent, "second")
    make_due(webhook)
    assert run_posts(messages) == [1]
    failed, following = deliveries_of(webhook)
    assert (failed.status, following.status) == ("failed", "confirmed")
    assert "deleted by age" in failed.error


def test_a_paused_webhook_sends_nothing_again(
    agent: Agent, messages: list[TaskMessage], web: WebReceiver
) -> None:
    webhook = post_first(agent, messages, web)
    with tenant_transaction(agent.tenant_id):
        switch_webhook(webhook_id=webhook.id, active=False, actor="test")
    with pytest.raises(TransitionIllegal, match="resume it first"):
        resend(deliveries_of(webhook)[0])
