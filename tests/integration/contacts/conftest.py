"""An agent, receivers of its messages, and functions that open channels and deliver as workers do."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connections
from django.utils import timezone

from apps.agents.models import Agent
from apps.contacts.models import Channel, OutboxMessage
from apps.contacts.services.channels import add_channel
from apps.contacts.services.delivery import deliver
from apps.contacts.services.outbox import OutgoingMessage, add_to_outbox
from apps.queues import Task, TaskMessage, captured
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.contacts.values import Audience, ChannelKind
from arbor.ids import uuid7
from tests.factories.agents import AgentFactory, AgentStateFactory
from tests.factories.heartbeats import ScheduleFactory
from tests.integration.contacts.receivers import (
    MailReceiver,
    WebReceiver,
    run_mail_receiver,
    run_web_receiver,
)
from tests.support.rows import reload


@pytest.fixture
def messages(database: None) -> Iterator[list[TaskMessage]]:
    """Return the list that captures published messages."""
    with captured() as published:
        yield published


@pytest.fixture
def agent(tenant: Tenant, messages: list[TaskMessage]) -> Agent:
    """Return an agent of the tenant."""
    return make_agent(tenant)


def make_agent(tenant: Tenant, name: str = "Ada") -> Agent:
    """Create an active agent with its state and schedule."""
    with tenant_transaction(tenant.id):
        agent: Agent = AgentFactory.create(
            name=name, allowed_actions=["reach_out_user", "reach_out_public", "rest"]
        )
        AgentStateFactory.create(agent=agent, energy=10.0)
        ScheduleFactory.create(agent=agent)
    return agent


@pytest.fixture
def web(settings: Any) -> Iterator[WebReceiver]:
    """Return a receiver of webhooks on this machine, which the settings permit."""
    settings.ARBOR_WEBHOOK_ALLOW_HTTP = settings.ARBOR_WEBHOOK_ALLOW_PRIVATE = True
    with run_web_receiver() as receiver:
        yield receiver


@pytest.fixture
def mail(settings: Any) -> Iterator[MailReceiver]:
    """Return the mail server that the settings name."""
    with run_mail_receiver() as receiver:
        settings.ARBOR_EMAIL_FROM = "arbor@example.org"
        settings.MAILERS = {
            "default": {"OPTIONS": {"host": "127.0.0.1", "port": receiver.port, "timeout": 5}}
        }
        yield receiver


def open_channel(
    agent: Agent, kind: ChannelKind, target: str, *, audience: Audience = Audience.USER, **options: Any
) -> tuple[Channel, str]:
    """Create a channel of the agent's tenant; return it and its secret."""
    with tenant_transaction(agent.tenant_id):
        name = options.pop("name", f"{kind} {target}"[-60:])
        channel = add_channel(name=name, kind=kind, audience=audience, target=target, actor="test", **options)
    return channel.channel, channel.secret


def write_message(agent: Agent, content: str = "The river is frozen.", **options: Any) -> list[OutboxMessage]:
    """Write a message of the agent, as a heartbeat does."""
    values: dict[str, Any] = {
        "agent_id": agent.id,
        "heartbeat_id": uuid7(),
        "index": 0,
        "audience": Audience.USER,
        "subject": "",
        "content": content,
        "at": timezone.now(),
    }
    with tenant_transaction(agent.tenant_id):
        return add_to_outbox(OutgoingMessage(**{**values, **options}))


def run_workers(messages: list[TaskMessage]) -> list[bool]:
    """Execute all published messages, as workers do."""
    results = []
    while messages:
        message = messages.pop(0)
        assert message.task is Task.DELIVER
        results.append(deliver(message_id=UUID(message.arguments["message_id"]), tenant_id=message.tenant_id))
    return results


def make_due(message: OutboxMessage) -> None:
    """Make the next try due, and let the lease expire."""
    with connections["ops"].cursor() as cursor:
        cursor.execute(
            "UPDATE contacts_outboxmessage SET due_at = now() - interval '1 second',"
            " lease_until = CASE WHEN lease_until IS NULL THEN NULL ELSE now() - interval '1 second' END WHERE id = %s",
            [message.id],
        )


def time_until_due(message: OutboxMessage) -> timedelta:
    """Return the time until the next try is due."""
    wait: timedelta = reload(message).due_at - timezone.now()
    return wait
