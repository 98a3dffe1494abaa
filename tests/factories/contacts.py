"""Conversations, channels, messages, hooks and webhooks for tests."""

from __future__ import annotations

from typing import Any

import factory

from apps.contacts.models import (
    Channel,
    ChatMessage,
    ChatSession,
    Hook,
    HookDelivery,
    OutboxMessage,
    SignalWebhook,
)
from arbor.contacts.values import Speaker
from arbor.ids import uuid7
from tests.factories.agents import AgentRowFactory
from tests.factories.rows import TenantRowFactory, minutes_ago


def _sealed_secret() -> dict[str, Any]:
    return {"v": 1, "ct": "Y2lwaGVydGV4dA==", "iv": "aXY=", "tag": "dGFn"}


class ChatSessionFactory(AgentRowFactory[ChatSession]):
    class Meta:
        model = ChatSession

    person = "user:ann"
    started_at = factory.LazyFunction(lambda: minutes_ago(20))
    last_at = factory.LazyFunction(lambda: minutes_ago(15))
    ended_at = factory.LazyFunction(lambda: minutes_ago(10))
    significance = 0.4


class ChatMessageFactory(TenantRowFactory[ChatMessage]):
    class Meta:
        model = ChatMessage

    session = factory.SubFactory(ChatSessionFactory)
    speaker = Speaker.USER
    content = "Is the river frozen?"
    at = factory.LazyFunction(lambda: minutes_ago(15))


class ChannelFactory(TenantRowFactory[Channel]):
    class Meta:
        model = Channel

    name = factory.Sequence(lambda n: f"channel-{n}")
    kind = "webhook"
    audience = "user"
    target = "https://example.org/hook"
    sealed_secret = factory.LazyFunction(_sealed_secret)


class SignalWebhookFactory(TenantRowFactory[SignalWebhook]):
    class Meta:
        model = SignalWebhook

    name = factory.Sequence(lambda n: f"webhook-{n}")
    url = "https://example.org/signals"
    signals = factory.LazyFunction(lambda: ["memory.goal_*"])
    sealed_secret = factory.LazyFunction(_sealed_secret)
    position = f"{0:032x}.0"


class HookFactory(AgentRowFactory[Hook]):
    class Meta:
        model = Hook

    name = factory.Sequence(lambda n: f"hook-{n}")
    kind = "json"
    sealed_secret = factory.LazyFunction(_sealed_secret)


class HookDeliveryFactory(TenantRowFactory[HookDelivery]):
    class Meta:
        model = HookDelivery

    hook = factory.SubFactory(HookFactory)
    once_key = factory.Sequence(lambda n: f"id:{n}")
    delivery_id = factory.Sequence(lambda n: f"msg_{n}")
    event = "invoice.paid"
    status = "perceived"
    body = '{"type": "invoice.paid"}'


class OutboxMessageFactory(AgentRowFactory[OutboxMessage]):
    class Meta:
        model = OutboxMessage

    kind = "inbox"
    audience = "user"
    subject = factory.Sequence(lambda n: f"The river, day {n}")
    content = "It froze over night."
    idempotency_key = factory.LazyFunction(lambda: str(uuid7()))
    status = "sent"
    due_at = factory.LazyFunction(lambda: minutes_ago(10))
    sent_at = factory.LazyFunction(lambda: minutes_ago(10))
