"""Webhooks, their signals, and the tasks that post them, for tests."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from django.db import connections

from apps.agents.models import Agent
from apps.contacts.models import HookDelivery, SignalWebhook
from apps.contacts.services.signal_delivery import post_signals, sweep_webhooks
from apps.contacts.services.signal_webhooks import WebhookWithSecret, create_webhook
from apps.contacts.services.webhook_deliveries import resend_delivery
from apps.queues import Task, TaskMessage
from apps.signals.services.emission import emit
from apps.tenants.scope import OPS, tenant_transaction
from arbor.signals import Signal, SignalName
from tests.integration.contacts.receivers import Request, WebReceiver


def make_webhook(agent: Agent, url: str, **options: Any) -> WebhookWithSecret:
    """Create a webhook of the agent's tenant."""
    with tenant_transaction(agent.tenant_id):
        return create_webhook(**{"name": "ops", "url": url, "actor": "test", **options})


def emit_goals(agent: Agent, *titles: str) -> None:
    """Commit signals about goals of an agent, each in a transaction of its own."""
    for title in titles:
        with tenant_transaction(agent.tenant_id):
            data = {"goal": str(agent.id), "title": title, "state": "done", "fraction": 1.0}
            emit(Signal(name=SignalName.GOAL_ACHIEVED, agent_id=agent.id, data=data))


def run_posts(messages: list[TaskMessage]) -> list[int]:
    """Sweep, and execute the published messages, as workers do; return the number of signals that each one posted."""
    messages.clear()
    sweep_webhooks()
    posted = []
    while messages:
        message = messages.pop(0)
        assert message.task is Task.POST_SIGNALS
        arguments = message.arguments
        posted.append(
            post_signals(
                webhook_id=UUID(arguments["webhook_id"]),
                lease=arguments["lease"],
                tenant_id=message.tenant_id,
            )
        )
    return posted


def post_first(agent: Agent, messages: list[TaskMessage], web: WebReceiver, *statuses: int) -> SignalWebhook:
    """Create a webhook, post a signal, "first", to it, and return it; the receiver answers with the statuses, then with 204."""
    webhook = make_webhook(agent, web.url).webhook
    web.statuses = [*statuses]
    emit_goals(agent, "first")
    run_posts(messages)
    return webhook


def make_due(webhook: SignalWebhook) -> None:
    """Make the next request due."""
    with connections[OPS].cursor() as cursor:
        cursor.execute(
            "UPDATE contacts_signalwebhook SET due_at = now() - interval '1 second' WHERE id = %s",
            [webhook.id],
        )


def titles_of(request: Request) -> list[str]:
    """Return the titles of the goals in a request."""
    return [signal["data"]["title"] for signal in json.loads(request.body)["data"]["signals"]]


def deliveries_of(webhook: SignalWebhook) -> list[HookDelivery]:
    """Return the deliveries of the webhook, oldest first."""
    with tenant_transaction(webhook.tenant_id):
        return list(HookDelivery.objects.filter(webhook=webhook).order_by("at"))


def resend(delivery: HookDelivery) -> None:
    """Request that the delivery is sent again."""
    with tenant_transaction(delivery.tenant_id):
        resend_delivery(delivery_id=delivery.id, actor="test")
