"""From the outbox to the receiver: by each channel, through failures, killed workers and doubled hints."""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
import structlog
from django.db import connection
from django.utils import timezone

from apps.agents.models import Agent
from apps.audit.models import AuditEvent
from apps.contacts.models import OutboxMessage
from apps.contacts.services import delivery
from apps.contacts.services.channels import remove_channel, switch_channel
from apps.contacts.services.delivery import deliver
from apps.contacts.services.outbox import cancel_message, retry_message
from apps.contacts.services.outbox_sweep import sweep_outbox
from apps.heartbeats.models import HeartbeatSchedule, Percept, PerceptKind, Trigger
from apps.queues import Message, Task
from apps.tenants.models import Tenant, TenantStatus
from apps.tenants.scope import OPS, tenant_transaction
from arbor.contacts.delivery import MAX_TRIES, WAITS
from arbor.contacts.ports import FakeCarrier, Outgoing
from arbor.contacts.values import Audience, ChannelKind, DeliveryStatus
from arbor.errors import DeliveryFailed, NotFound, TransitionIllegal
from arbor.ids import uuid7
from tests.integration.contacts.conftest import (
    as_it_stands,
    let_time_pass,
    make_agent,
    open_channel,
    say,
    waits_for,
    work,
)
from tests.integration.contacts.receivers import MailReceiver, WebReceiver


@pytest.fixture
def carrier(monkeypatch: pytest.MonkeyPatch) -> FakeCarrier:
    """Put a carrier that keeps everything in the place of all."""
    made = FakeCarrier(before=lambda _: None)
    monkeypatch.setattr(delivery, "carrier_of", lambda _kind: made)
    return made


def failing(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(_: Outgoing) -> None:
        raise error

    monkeypatch.setattr(delivery, "carrier_of", lambda _kind: FakeCarrier(before=fail))


def test_without_a_channel_a_message_is_in_the_inbox_and_thereby_delivered(
    agent: Agent, messages: list[Message]
) -> None:
    (message,) = say(agent)
    assert (message.kind, message.status) == (ChannelKind.INBOX, DeliveryStatus.SENT)
    assert as_it_stands(message).sent_at is not None
    assert messages == []


def test_an_agents_own_channels_go_before_its_tenants(agent: Agent, tenant: Tenant) -> None:
    open_channel(agent, ChannelKind.EMAIL, "all@example.org")
    other = make_agent(tenant, "Vega")
    open_channel(agent, ChannelKind.EMAIL, "ada@example.org", agent_id=agent.id)
    open_channel(agent, ChannelKind.INBOX, "", agent_id=agent.id, name="inbox, too")
    assert {(each.kind, each.target) for each in say(agent)} == {("email", "ada@example.org"), ("inbox", "")}
    assert [each.target for each in say(other)] == ["all@example.org"]
    assert [each.kind for each in say(agent, audience=Audience.PUBLIC)] == ["inbox"]


def test_a_platform_is_the_name_of_a_channel(agent: Agent) -> None:
    for name in ("Blog", "Forum"):
        open_channel(agent, ChannelKind.EMAIL, f"{name}@example.org", audience=Audience.PUBLIC, name=name)
    (message,) = say(agent, audience=Audience.PUBLIC, platform="blog")
    assert message.target == "Blog@example.org"
    with pytest.raises(NotFound, match="there is no channel 'Twitter' for this; there is: Blog, Forum"):
        say(agent, audience=Audience.PUBLIC, platform="Twitter")


def test_a_webhook_gets_the_message_signed_and_with_its_key(
    agent: Agent, messages: list[Message], web: WebReceiver
) -> None:
    _, secret = open_channel(agent, ChannelKind.WEBHOOK, f"{web.url}/hook?token=t")
    beat = uuid7()
    (message,) = say(agent, "Ice on the river ☃", subject="Ice", heartbeat_id=beat)
    assert work(messages) == [True]
    (request,) = web.requests
    assert json.loads(request.body) == {
        "id": str(message.id),
        "agent": "Ada",
        "audience": "user",
        "subject": "Ice",
        "content": "Ice on the river ☃",
        "heartbeat": str(beat),
        "at": as_it_stands(message).created_at.isoformat(),
    }
    assert request.path == "/hook?token=t"
    assert request.headers["Idempotency-Key"] == message.idempotency_key
    at, mac = (part.partition("=")[2] for part in request.headers["Arbor-Signature"].split(","))
    wanted = hmac.new(secret.encode(), f"{at}.".encode() + request.body, hashlib.sha256).hexdigest()
    assert hmac.compare_digest(mac, wanted)
    stands = as_it_stands(message)
    assert (stands.status, stands.attempts, stands.last_error) == (DeliveryStatus.SENT, 1, "")
    assert stands.sent_at is not None
    assert stands.lease_until is None


@pytest.mark.parametrize("status", [301, 400, 404, 429, 500, 503])
def test_any_answer_but_2xx_is_not_sent_and_tried_again(
    status: int, agent: Agent, messages: list[Message], web: WebReceiver
) -> None:
    open_channel(agent, ChannelKind.WEBHOOK, web.url)
    web.statuses = [status]
    (message,) = say(agent)
    work(messages)
    stands = as_it_stands(message)
    assert (stands.status, stands.attempts) == (DeliveryStatus.PENDING, 1)
    assert f"answered {status}; 2xx says that it has the message" in stands.last_error
    assert stands.sent_at is None
    assert timedelta(seconds=50) < waits_for(message) <= WAITS[0]
    let_time_pass(message)
    assert sweep_outbox().told == 1
    work(messages)
    assert as_it_stands(message).status == DeliveryStatus.SENT
    assert len({each.headers["Idempotency-Key"] for each in web.requests}) == 1
    # A redirect is not followed: it would carry the message to whom nobody chose.
    assert {each.path for each in web.requests} == {"/"}


def test_a_receiver_that_is_gone_is_not_tried_again(
    agent: Agent, messages: list[Message], web: WebReceiver
) -> None:
    open_channel(agent, ChannelKind.WEBHOOK, web.url)
    web.statuses = [410]
    (message,) = say(agent)
    work(messages)
    assert as_it_stands(message).status == DeliveryStatus.FAILED


def test_a_webhook_reaches_no_private_address_unless_that_is_allowed(
    agent: Agent, messages: list[Message], web: WebReceiver, settings: Any
) -> None:
    open_channel(agent, ChannelKind.WEBHOOK, web.url.replace("127.0.0.1", "localhost"))
    settings.ARBOR_WEBHOOK_ALLOW_PRIVATE = False
    (message,) = say(agent)
    work(messages)
    stands = as_it_stands(message)
    assert stands.status == DeliveryStatus.FAILED
    assert "which is not permitted; ARBOR_WEBHOOK_ALLOW_PRIVATE=true" in stands.last_error
    settings.ARBOR_WEBHOOK_ALLOW_HTTP = False
    with tenant_transaction(agent.tenant_id):
        retry_message(message_id=message.id, actor="test")
    work(messages)
    assert "begins with https://" in as_it_stands(message).last_error
    assert web.requests == []


def test_what_is_secret_in_a_webhooks_url_stands_in_no_error_percept_or_audit(
    agent: Agent, messages: list[Message], web: WebReceiver, settings: Any
) -> None:
    channel, _ = open_channel(
        agent, ChannelKind.WEBHOOK, f"{web.url}/s3cret-path?token=s3cret-token", name="hook"
    )
    settings.ARBOR_WEBHOOK_ALLOW_HTTP = False
    (message,) = say(agent)
    work(messages)
    with tenant_transaction(agent.tenant_id):
        switch_channel(channel_id=channel.id, enabled=False, actor="test")
        remove_channel(channel_id=channel.id, actor="test")
        (percept,) = Percept.objects.filter(agent_id=agent.id)
        acts = list(AuditEvent.objects.filter(detail__channel="hook"))
    assert web.url in (error := as_it_stands(message).last_error)
    assert [each.detail["target"] for each in acts] == [f"{web.url}/…"] * 3
    assert "s3cret" not in " ".join(
        [error, percept.content, *(str(each.detail) + each.message for each in acts)]
    )


def test_a_mail_leaves_with_the_same_message_id_at_every_try(
    agent: Agent, messages: list[Message], mail: MailReceiver
) -> None:
    open_channel(agent, ChannelKind.EMAIL, "ann@example.org")
    mail.refuses = b"451 try later"
    (message,) = say(agent, "It froze.\nWalk with care.", subject="The river\nfroze")
    work(messages)
    stands = as_it_stands(message)
    assert (stands.status, mail.mails) == (DeliveryStatus.PENDING, [])
    assert "refused the address with 451" in stands.last_error
    mail.refuses = b""
    let_time_pass(message)
    sweep_outbox()
    work(messages)
    (got,) = mail.mails
    assert as_it_stands(message).status == DeliveryStatus.SENT
    assert (got["To"], got["Subject"]) == ("ann@example.org", "The river froze")
    assert got["From"] == '"Ada (Arbor)" <arbor@example.org>'
    assert got["Message-ID"] == f"<{message.idempotency_key.replace(':', '.')}@example.org>"
    assert got["Idempotency-Key"] == message.idempotency_key
    assert got.get_content().split() == ["It", "froze.", "Walk", "with", "care."]


def test_an_address_that_does_not_exist_has_failed_at_once(
    agent: Agent, messages: list[Message], mail: MailReceiver
) -> None:
    open_channel(agent, ChannelKind.EMAIL, "nobody@example.org")
    mail.refuses = b"550 no such user"
    (message,) = say(agent)
    work(messages)
    assert as_it_stands(message).status == DeliveryStatus.FAILED


def test_without_a_mail_server_a_mail_fails_and_says_what_is_missing(
    agent: Agent, messages: list[Message], settings: Any
) -> None:
    settings.MAILERS = {}
    open_channel(agent, ChannelKind.EMAIL, "ann@example.org")
    (message,) = say(agent)
    work(messages)
    stands = as_it_stands(message)
    assert stands.status == DeliveryStatus.FAILED
    assert "set ARBOR_EMAIL_HOST and ARBOR_EMAIL_FROM" in stands.last_error


def test_a_doubled_hint_delivers_once(agent: Agent, messages: list[Message], carrier: FakeCarrier) -> None:
    open_channel(agent, ChannelKind.EMAIL, "ann@example.org")
    say(agent)
    messages *= 3
    assert work(messages) == [True, False, False]
    assert len(carrier.carried) == 1


def test_no_transaction_is_open_while_a_message_is_carried(
    agent: Agent, messages: list[Message], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[bool, str]] = []

    def look(outgoing: Outgoing) -> None:
        with tenant_transaction(agent.tenant_id):
            status = OutboxMessage.objects.get(id=outgoing.id).status
        seen.append((connection.in_atomic_block, status))

    monkeypatch.setattr(delivery, "carrier_of", lambda _kind: FakeCarrier(before=look))
    open_channel(agent, ChannelKind.EMAIL, "ann@example.org")
    say(agent)
    work(messages)
    assert seen == [(False, DeliveryStatus.SENDING)]


def test_a_worker_killed_between_send_and_note_sends_again_with_the_same_key(
    agent: Agent, messages: list[Message], carrier: FakeCarrier, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_channel(agent, ChannelKind.EMAIL, "ann@example.org")
    (message,) = say(agent)

    def die(*_: Any, **__: Any) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(delivery, "change", die)
        with pytest.raises(KeyboardInterrupt):
            work(messages)
    assert as_it_stands(message).status == DeliveryStatus.SENDING
    assert sweep_outbox().lost == 0
    let_time_pass(message)
    assert sweep_outbox().lost == 1
    stands = as_it_stands(message)
    assert (stands.status, stands.attempts) == (DeliveryStatus.PENDING, 1)
    assert "whether the message arrived is not known" in stands.last_error
    assert timedelta(seconds=50) < waits_for(message) <= WAITS[0]
    let_time_pass(message)
    sweep_outbox()
    work(messages)
    assert [each.key for each in carrier.carried] == [message.idempotency_key] * 2
    assert as_it_stands(message).status == DeliveryStatus.SENT


def test_a_receivers_word_counts_though_its_worker_was_given_up(
    agent: Agent, messages: list[Message], monkeypatch: pytest.MonkeyPatch
) -> None:
    open_channel(agent, ChannelKind.EMAIL, "ann@example.org")
    (message,) = say(agent)

    def be_slow(_: Outgoing) -> None:
        let_time_pass(message)
        sweep_outbox()

    monkeypatch.setattr(delivery, "carrier_of", lambda _kind: FakeCarrier(before=be_slow))
    work(messages)
    assert as_it_stands(message).status == DeliveryStatus.SENT


def test_a_lost_hint_is_repeated_and_an_untold_one_is_not_twice(
    agent: Agent, messages: list[Message], carrier: FakeCarrier
) -> None:
    open_channel(agent, ChannelKind.EMAIL, "ann@example.org")
    (message,) = say(agent)
    messages.clear()
    assert sweep_outbox().told == 0
    let_time_pass(message)
    assert sweep_outbox().told == 1
    assert sweep_outbox().told == 0
    assert work(messages) == [True]


def test_a_channel_that_fails_is_tried_eight_times_and_then_a_person_decides(
    agent: Agent, messages: list[Message], monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, DeliveryFailed("the line is dead\0"))
    open_channel(agent, ChannelKind.EMAIL, "ann@example.org")
    (message,) = say(agent, "Ice.", subject="Ice")
    waits = []
    for _ in range(MAX_TRIES):
        work(messages)
        waits.append(waits_for(message))
        let_time_pass(message)
        sweep_outbox()
    stands = as_it_stands(message)
    assert (stands.status, stands.attempts) == (DeliveryStatus.FAILED, MAX_TRIES)
    assert "the line is dead" in stands.last_error
    for wait, wanted in zip(waits, WAITS, strict=False):
        assert wanted - timedelta(seconds=20) < wait <= wanted
    with tenant_transaction(agent.tenant_id):
        percept = Percept.objects.get(agent=agent)
        assert percept.kind == PerceptKind.ERROR
        assert "Your message 'Ice' was not delivered by email: the line is dead" in percept.content
        retry_message(message_id=message.id, actor="test")
    again = as_it_stands(message)
    assert (again.status, again.attempts, again.tries) == (DeliveryStatus.PENDING, MAX_TRIES, 0)
    work(messages)
    again = as_it_stands(message)
    assert (again.status, again.attempts, again.tries) == (DeliveryStatus.PENDING, MAX_TRIES + 1, 1)
    assert WAITS[0] - timedelta(seconds=20) < waits_for(message) <= WAITS[0]
    let_time_pass(message)
    sweep_outbox()
    monkeypatch.setattr(delivery, "carrier_of", lambda _kind: FakeCarrier())
    work(messages)
    assert as_it_stands(message).status == DeliveryStatus.SENT


def test_the_writer_hears_that_the_worker_of_the_last_try_was_lost(
    agent: Agent, messages: list[Message], monkeypatch: pytest.MonkeyPatch
) -> None:
    open_channel(agent, ChannelKind.EMAIL, "ann@example.org")
    (message,) = say(agent, "Ice.", subject="Ice")
    with tenant_transaction(agent.tenant_id):
        OutboxMessage.objects.filter(id=message.id).update(attempts=MAX_TRIES - 1)
    failing(monkeypatch, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        work(messages)
    let_time_pass(message)
    assert [sweep_outbox().lost, sweep_outbox().lost] == [1, 0]
    stands = as_it_stands(message)
    assert (stands.status, stands.attempts) == (DeliveryStatus.FAILED, MAX_TRIES)
    with tenant_transaction(agent.tenant_id):
        percept = Percept.objects.get(agent=agent)
    assert percept.content.startswith("Your message 'Ice' was not delivered by email: the worker of try 8")
    assert "whether the message arrived is not known" in percept.content
    assert percept.detail == {"message": str(message.id)}


def test_a_message_that_is_being_sent_cannot_be_tried_again(
    agent: Agent, messages: list[Message], monkeypatch: pytest.MonkeyPatch
) -> None:
    def press_retry(_: Outgoing) -> None:
        with (
            tenant_transaction(agent.tenant_id),
            pytest.raises(TransitionIllegal, match="only one that is failed"),
        ):
            retry_message(message_id=message.id, actor="test")

    monkeypatch.setattr(delivery, "carrier_of", lambda _kind: FakeCarrier(before=press_retry))
    open_channel(agent, ChannelKind.EMAIL, "ann@example.org")
    (message,) = say(agent)
    assert work(messages) == [True]
    assert as_it_stands(message).status == DeliveryStatus.SENT


def test_a_worker_that_comes_back_late_does_not_end_the_try_of_another(
    agent: Agent, messages: list[Message], monkeypatch: pytest.MonkeyPatch
) -> None:
    open_channel(agent, ChannelKind.EMAIL, "ann@example.org")
    (message,) = say(agent)
    seen: list[tuple[str, int, str]] = []

    def while_the_second_sends(_: Outgoing) -> None:
        # Now the first comes back, and says that it failed.
        assert not delivery._not_sent(stale, "the first worker's line is dead", final=True)
        stands = as_it_stands(message)
        seen.append((stands.status, stands.attempts, stands.last_error))

    stale = delivery._take(message.id, agent.tenant_id)
    assert stale is not None
    with tenant_transaction(agent.tenant_id):
        OutboxMessage.objects.filter(id=message.id).update(status=DeliveryStatus.FAILED)
        retry_message(message_id=message.id, actor="test")
    monkeypatch.setattr(delivery, "carrier_of", lambda _kind: FakeCarrier(before=while_the_second_sends))
    deliver(message_id=message.id, tenant_id=agent.tenant_id)
    assert seen == [(DeliveryStatus.SENDING, 2, "")]
    assert as_it_stands(message).status == DeliveryStatus.SENT


def test_a_fault_in_a_carrier_is_a_try_that_failed_and_what_it_says_is_shown_to_nobody(
    agent: Agent,
    messages: list[Message],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    failing(monkeypatch, ValueError("in the URL https://example.org/s3cret"))
    open_channel(agent, ChannelKind.EMAIL, "ann@example.org")
    (message,) = say(agent)
    work(messages)
    stands = as_it_stands(message)
    assert (stands.status, stands.last_error) == (DeliveryStatus.PENDING, "a fault of ours: ValueError")
    (logged,) = (each.msg for each in caplog.records if each.levelname == "ERROR")
    assert logged["event"] == "carrier_fault"
    written = structlog.processors.format_exc_info(None, "", logged)["exception"]
    assert "raise error" in written, "where it came from is shown"
    assert "RuntimeError: ValueError" in written
    assert "s3cret" not in written


@pytest.mark.parametrize("gone", [False, True])
def test_a_message_whose_channel_is_removed_or_disabled_fails(
    gone: bool, agent: Agent, messages: list[Message], carrier: FakeCarrier
) -> None:
    channel, _ = open_channel(agent, ChannelKind.EMAIL, "ann@example.org")
    (message,) = say(agent)
    with tenant_transaction(agent.tenant_id):
        if gone:
            remove_channel(channel_id=channel.id, actor="test")
        else:
            switch_channel(channel_id=channel.id, enabled=False, actor="test")
    work(messages)
    stands = as_it_stands(message)
    assert stands.status == DeliveryStatus.FAILED
    assert f"its channel was {'removed' if gone else 'disabled'}" in stands.last_error
    assert carrier.carried == []


def test_a_message_is_withdrawn_before_it_is_sent_and_not_after(
    agent: Agent, messages: list[Message], carrier: FakeCarrier
) -> None:
    open_channel(agent, ChannelKind.EMAIL, "ann@example.org")
    (message,) = say(agent)
    with tenant_transaction(agent.tenant_id):
        cancel_message(message_id=message.id, actor="test")
    assert work(messages) == [False]
    (sent,) = say(agent)
    work(messages)
    with tenant_transaction(agent.tenant_id):
        for act in (cancel_message, retry_message):
            with pytest.raises(TransitionIllegal, match="is sent and cannot become"):
                act(message_id=sent.id, actor="test")
        with pytest.raises(TransitionIllegal, match="is cancelled and cannot become"):
            retry_message(message_id=message.id, actor="test")
    assert len(carrier.carried) == 1


def test_nothing_is_sent_of_a_transaction_that_rolls_back(agent: Agent, messages: list[Message]) -> None:
    open_channel(agent, ChannelKind.EMAIL, "ann@example.org")

    def fail_after_posting() -> None:
        with tenant_transaction(agent.tenant_id):
            say(agent)
            raise RuntimeError("the beat fails")

    with pytest.raises(RuntimeError, match="the beat fails"):
        fail_after_posting()
    assert messages == []
    with tenant_transaction(agent.tenant_id):
        assert not OutboxMessage.objects.exists()


def test_the_same_decision_carried_out_twice_is_one_message(
    agent: Agent, messages: list[Message], carrier: FakeCarrier
) -> None:
    open_channel(agent, ChannelKind.EMAIL, "ann@example.org")
    beat = uuid7()
    for _ in range(2):
        say(agent, heartbeat_id=beat)
    say(agent, heartbeat_id=beat, index=1)
    work(messages)
    assert len(carrier.carried) == 2
    assert len({each.key for each in carrier.carried}) == 2


def test_another_tenants_hint_finds_nothing(
    agent: Agent, other_tenant: Tenant, messages: list[Message], carrier: FakeCarrier
) -> None:
    open_channel(agent, ChannelKind.EMAIL, "ann@example.org")
    (message,) = say(agent)
    assert not deliver(message_id=message.id, tenant_id=other_tenant.id)
    with tenant_transaction(other_tenant.id):
        for act in (cancel_message, retry_message):
            with pytest.raises(NotFound):
                act(message_id=message.id, actor="test")
        assert say(make_agent(other_tenant, "Rigel"))[0].kind == ChannelKind.INBOX
    assert carrier.carried == []
    assert as_it_stands(message).status == DeliveryStatus.PENDING


def test_a_suspended_tenants_messages_rest(
    agent: Agent, tenant: Tenant, messages: list[Message], carrier: FakeCarrier
) -> None:
    open_channel(agent, ChannelKind.EMAIL, "ann@example.org")
    (message,) = say(agent)
    Tenant.objects.using(OPS).filter(id=tenant.id).update(status=TenantStatus.SUSPENDED)
    assert work(messages) == [False], "nor is it sent by a hint that was on its way"
    assert (as_it_stands(message).status, as_it_stands(message).attempts) == (DeliveryStatus.PENDING, 0)
    let_time_pass(message)
    assert sweep_outbox().told == 0
    Tenant.objects.using(OPS).filter(id=tenant.id).update(status=TenantStatus.ACTIVE)
    assert sweep_outbox().told == 1


def test_agents_that_are_named_in_public_hear_it_once_and_beat_soon(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, messages: list[Message]
) -> None:
    peer, stranger = make_agent(tenant, "Old Tom"), make_agent(other_tenant, "Vega")
    rows = say(agent, "@old tom, @Ada and @Vega: the river froze.", audience=Audience.PUBLIC)
    assert [(each.kind, each.target) for each in rows] == [("inbox", ""), ("peer", str(peer.id))]
    messages *= 2
    assert work(messages) == [True, False]
    with tenant_transaction(tenant.id):
        percept = Percept.objects.get(agent=peer)
        assert (percept.kind, percept.peer_id, percept.urgent) == (PerceptKind.PEER_MESSAGE, agent.id, True)
        assert percept.content == "Ada wrote in public: @old tom, @Ada and @Vega: the river froze."
        schedule = HeartbeatSchedule.objects.get(agent=peer)
        assert schedule.next_trigger == Trigger.EVENT
        assert schedule.next_due_at <= timezone.now()
        assert not Percept.objects.filter(agent=agent).exists()
    with tenant_transaction(other_tenant.id):
        assert not Percept.objects.filter(agent=stranger).exists()


def test_a_private_message_is_nobody_elses(agent: Agent, tenant: Tenant, messages: list[Message]) -> None:
    make_agent(tenant, "Vega")
    assert [each.kind for each in say(agent, "@Vega is unwell, I think.")] == [ChannelKind.INBOX]


def test_a_hint_carries_an_id_and_nothing_else(agent: Agent, messages: list[Message]) -> None:
    open_channel(agent, ChannelKind.EMAIL, "ann@example.org")
    (message,) = say(agent, "secret words")
    (hint,) = messages
    assert hint.task is Task.DELIVER
    assert hint.arguments == {"message_id": str(message.id)}
    assert UUID(hint.arguments["message_id"])
    assert "secret" not in hint.shown
    assert "ann@" not in hint.shown
