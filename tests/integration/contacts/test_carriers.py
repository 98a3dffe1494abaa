"""Delivery by webhook and by mail: the requests, and how the answers are interpreted."""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import timedelta
from typing import Any

import pytest

from apps.agents.models import Agent, Percept
from apps.audit.models import AuditEvent
from apps.contacts.services.channels import remove_channel, switch_channel
from apps.contacts.services.outbox import retry_message
from apps.contacts.services.outbox_sweep import sweep_outbox
from apps.queues import TaskMessage
from apps.tenants.scope import tenant_transaction
from arbor.contacts.delivery import WAITS
from arbor.contacts.values import ChannelKind, DeliveryStatus
from arbor.ids import uuid7
from tests.integration.contacts.conftest import (
    make_due,
    open_channel,
    run_workers,
    time_until_due,
    write_message,
)
from tests.integration.contacts.receivers import MailReceiver, WebReceiver
from tests.support.rows import reload


def test_a_webhook_gets_the_message_signed_and_with_its_key(
    agent: Agent, messages: list[TaskMessage], web: WebReceiver
) -> None:
    _, secret = open_channel(agent, ChannelKind.WEBHOOK, f"{web.url}/hook?token=t")
    heartbeat = uuid7()
    (message,) = write_message(agent, "Ice on the river ☃", subject="Ice", heartbeat_id=heartbeat)
    assert run_workers(messages) == [True]
    (request,) = web.requests
    assert json.loads(request.body) == {
        "id": str(message.id),
        "agent": "Ada",
        "audience": "user",
        "subject": "Ice",
        "content": "Ice on the river ☃",
        "heartbeat": str(heartbeat),
        "at": reload(message).created_at.isoformat(),
    }
    assert request.path == "/hook?token=t"
    assert request.headers["Idempotency-Key"] == message.idempotency_key
    at, mac = (part.partition("=")[2] for part in request.headers["Arbor-Signature"].split(","))
    signature = hmac.new(secret.encode(), f"{at}.".encode() + request.body, hashlib.sha256).hexdigest()
    assert hmac.compare_digest(mac, signature)
    current = reload(message)
    assert (current.status, current.attempts, current.last_error) == (DeliveryStatus.SENT, 1, "")
    assert current.sent_at is not None
    assert current.lease_until is None


@pytest.mark.parametrize("status", [301, 400, 404, 429, 500, 503])
def test_an_unconfirmed_message_is_repeated_with_its_key(
    status: int, agent: Agent, messages: list[TaskMessage], web: WebReceiver
) -> None:
    open_channel(agent, ChannelKind.WEBHOOK, web.url)
    web.statuses = [status]
    (message,) = write_message(agent)
    run_workers(messages)
    current = reload(message)
    assert (current.status, current.attempts) == (DeliveryStatus.PENDING, 1)
    assert f"answered {status}; a receiver confirms a message with 2xx" in current.last_error
    assert current.sent_at is None
    assert timedelta(seconds=20) < time_until_due(message) <= WAITS[0]
    make_due(message)
    assert sweep_outbox().enqueued == 1
    run_workers(messages)
    assert reload(message).status == DeliveryStatus.SENT
    assert len({request.headers["Idempotency-Key"] for request in web.requests}) == 1
    # A redirect is not followed: it would deliver the message to a receiver that nobody chose.
    assert {request.path for request in web.requests} == {"/"}


def test_a_receiver_that_is_gone_is_not_tried_again(
    agent: Agent, messages: list[TaskMessage], web: WebReceiver
) -> None:
    open_channel(agent, ChannelKind.WEBHOOK, web.url)
    web.statuses = [410]
    (message,) = write_message(agent)
    run_workers(messages)
    assert reload(message).status == DeliveryStatus.FAILED


def test_a_webhook_reaches_no_private_address_unless_that_is_allowed(
    agent: Agent, messages: list[TaskMessage], web: WebReceiver, settings: Any
) -> None:
    open_channel(agent, ChannelKind.WEBHOOK, web.url.replace("127.0.0.1", "localhost"))
    settings.ARBOR_WEBHOOK_ALLOW_PRIVATE = False
    (message,) = write_message(agent)
    run_workers(messages)
    current = reload(message)
    assert current.status == DeliveryStatus.FAILED
    assert "leads to an address that is not permitted; ARBOR_WEBHOOK_ALLOW_PRIVATE=true" in current.last_error
    settings.ARBOR_WEBHOOK_ALLOW_HTTP = False
    with tenant_transaction(agent.tenant_id):
        retry_message(message_id=message.id, actor="test")
    run_workers(messages)
    assert "begins with https://" in reload(message).last_error
    assert web.requests == []


def test_webhooks_of_a_process_share_no_cookies(
    agent: Agent, messages: list[TaskMessage], web: WebReceiver
) -> None:
    open_channel(agent, ChannelKind.WEBHOOK, web.url)
    for text in ("first", "second"):
        write_message(agent, text)
        run_workers(messages)
    assert len(web.requests) == 2
    assert ["Cookie" in request.headers for request in web.requests] == [False, False]


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("https://127.0.0.1:1", "the connection was refused"),
        ("https://no-host.invalid", "leads to no address"),
    ],
)
def test_an_error_of_delivery_quotes_no_system_error(
    host: str, reason: str, agent: Agent, messages: list[TaskMessage], web: WebReceiver
) -> None:
    open_channel(agent, ChannelKind.WEBHOOK, host)
    (message,) = write_message(agent)
    run_workers(messages)
    error = reload(message).last_error
    assert error.endswith(reason)
    assert "Errno" not in error


def test_a_receiver_without_tls_is_reported(
    agent: Agent, messages: list[TaskMessage], web: WebReceiver
) -> None:
    open_channel(agent, ChannelKind.WEBHOOK, web.url.replace("http://", "https://"))
    (message,) = write_message(agent)
    run_workers(messages)
    assert "no secure connection" in reload(message).last_error


def test_the_secret_part_of_a_webhook_url_is_never_recorded(
    agent: Agent, messages: list[TaskMessage], web: WebReceiver, settings: Any
) -> None:
    channel, _ = open_channel(
        agent, ChannelKind.WEBHOOK, f"{web.url}/s3cret-path?token=s3cret-token", name="hook"
    )
    settings.ARBOR_WEBHOOK_ALLOW_HTTP = False
    (message,) = write_message(agent)
    run_workers(messages)
    with tenant_transaction(agent.tenant_id):
        switch_channel(channel_id=channel.id, enabled=False, actor="test")
        remove_channel(channel_id=channel.id, actor="test")
        (percept,) = Percept.objects.filter(agent_id=agent.id)
        acts = list(AuditEvent.objects.filter(detail__channel="hook"))
    assert web.url in (error := reload(message).last_error)
    assert [act.detail["target"] for act in acts] == [f"{web.url}/…"] * 3
    assert "s3cret" not in " ".join(
        [error, percept.content, *(str(act.detail) + act.message for act in acts)]
    )


def test_a_mail_leaves_with_the_same_message_id_at_every_try(
    agent: Agent, messages: list[TaskMessage], mail: MailReceiver
) -> None:
    open_channel(agent, ChannelKind.EMAIL, "ann@example.org")
    mail.refuses = b"451 try later"
    (message,) = write_message(agent, "It froze.\nWalk with care.", subject="The river\nfroze")
    run_workers(messages)
    current = reload(message)
    assert (current.status, mail.mails) == (DeliveryStatus.PENDING, [])
    assert "refused the address with 451" in current.last_error
    mail.refuses = b""
    make_due(message)
    sweep_outbox()
    run_workers(messages)
    (received,) = mail.mails
    assert reload(message).status == DeliveryStatus.SENT
    assert (received["To"], received["Subject"]) == ("ann@example.org", "The river froze")
    assert received["From"] == '"Ada (Arbor)" <arbor@example.org>'
    assert received["Message-ID"] == f"<{message.idempotency_key.replace(':', '.')}@example.org>"
    assert received["Idempotency-Key"] == message.idempotency_key
    assert received.get_content().split() == ["It", "froze.", "Walk", "with", "care."]


def test_a_mail_to_an_unknown_address_fails_at_once(
    agent: Agent, messages: list[TaskMessage], mail: MailReceiver
) -> None:
    open_channel(agent, ChannelKind.EMAIL, "nobody@example.org")
    mail.refuses = b"550 no such user"
    (message,) = write_message(agent)
    run_workers(messages)
    assert reload(message).status == DeliveryStatus.FAILED


def test_a_mail_without_a_mail_server_names_the_settings(
    agent: Agent, messages: list[TaskMessage], settings: Any
) -> None:
    settings.MAILERS = {}
    open_channel(agent, ChannelKind.EMAIL, "ann@example.org")
    (message,) = write_message(agent)
    run_workers(messages)
    current = reload(message)
    assert current.status == DeliveryStatus.FAILED
    assert "set ARBOR_EMAIL_HOST and ARBOR_EMAIL_FROM" in current.last_error
