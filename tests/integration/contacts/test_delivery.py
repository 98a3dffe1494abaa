"""From the outbox on its way: through failures, killed workers and doubled hints."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
import structlog
from django.db import connection

from apps.agents.models import Agent, Percept, PerceptKind
from apps.contacts.models import OutboxMessage
from apps.contacts.services import delivery
from apps.contacts.services.channels import remove_channel, switch_channel
from apps.contacts.services.delivery import deliver
from apps.contacts.services.outbox import cancel_message, retry_message
from apps.contacts.services.outbox_sweep import sweep_outbox
from apps.queues import Task, TaskMessage
from apps.tenants.models import Tenant, TenantStatus
from apps.tenants.scope import OPS, tenant_transaction
from arbor.contacts.delivery import MAX_TRIES, WAITS
from arbor.contacts.ports import FakeCarrier, Outgoing
from arbor.contacts.values import ChannelKind, DeliveryStatus
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


@pytest.fixture
def carrier(monkeypatch: pytest.MonkeyPatch) -> FakeCarrier:
    """Put a carrier that keeps everything in the place of all."""
    made = FakeCarrier(before=lambda _: None)
    monkeypatch.setattr(delivery, "carrier_of", lambda _kind: made)
    return made


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(_: Outgoing) -> None:
        raise error

    monkeypatch.setattr(delivery, "carrier_of", lambda _kind: FakeCarrier(before=fail))


def test_a_doubled_hint_delivers_once(
    agent: Agent, messages: list[TaskMessage], carrier: FakeCarrier
) -> None:
    open_channel(agent, ChannelKind.EMAIL, "ann@example.org")
    say(agent)
    messages *= 3
    assert work(messages) == [True, False, False]
    assert len(carrier.carried) == 1


def test_no_transaction_is_open_while_a_message_is_carried(
    agent: Agent, messages: list[TaskMessage], monkeypatch: pytest.MonkeyPatch
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
    agent: Agent, messages: list[TaskMessage], carrier: FakeCarrier, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_channel(agent, ChannelKind.EMAIL, "ann@example.org")
    (message,) = say(agent)

    def die(*_: Any, **__: Any) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(delivery, "_mark_sent", die)
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
    assert [carried.key for carried in carrier.carried] == [message.idempotency_key] * 2
    assert as_it_stands(message).status == DeliveryStatus.SENT


def test_a_receivers_word_counts_though_its_worker_was_given_up(
    agent: Agent, messages: list[TaskMessage], monkeypatch: pytest.MonkeyPatch
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
    agent: Agent, messages: list[TaskMessage], carrier: FakeCarrier
) -> None:
    open_channel(agent, ChannelKind.EMAIL, "ann@example.org")
    (message,) = say(agent)
    messages.clear()
    assert sweep_outbox().enqueued == 0
    let_time_pass(message)
    assert sweep_outbox().enqueued == 1
    assert sweep_outbox().enqueued == 0
    assert work(messages) == [True]


def test_a_channel_that_fails_is_tried_eight_times_and_then_a_person_decides(
    agent: Agent, messages: list[TaskMessage], monkeypatch: pytest.MonkeyPatch
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
    agent: Agent, messages: list[TaskMessage], monkeypatch: pytest.MonkeyPatch
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
    agent: Agent, messages: list[TaskMessage], monkeypatch: pytest.MonkeyPatch
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
    agent: Agent, messages: list[TaskMessage], monkeypatch: pytest.MonkeyPatch
) -> None:
    open_channel(agent, ChannelKind.EMAIL, "ann@example.org")
    (message,) = say(agent)
    seen: list[tuple[str, int, str]] = []

    stale = delivery._claim(message.id, agent.tenant_id)
    assert stale is not None

    def while_the_second_sends(_: Outgoing) -> None:
        # Now the first comes back, and says that it failed.
        assert not delivery._not_sent(stale, "the first worker's line is dead", final=True)
        stands = as_it_stands(message)
        seen.append((stands.status, stands.attempts, stands.last_error))

    with tenant_transaction(agent.tenant_id):
        OutboxMessage.objects.filter(id=message.id).update(status=DeliveryStatus.FAILED)
        retry_message(message_id=message.id, actor="test")
    monkeypatch.setattr(delivery, "carrier_of", lambda _kind: FakeCarrier(before=while_the_second_sends))
    deliver(message_id=message.id, tenant_id=agent.tenant_id)
    assert seen == [(DeliveryStatus.SENDING, 2, "")]
    assert as_it_stands(message).status == DeliveryStatus.SENT


def test_a_fault_in_a_carrier_is_a_try_that_failed_and_what_it_says_is_shown_to_nobody(
    agent: Agent,
    messages: list[TaskMessage],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    failing(monkeypatch, ValueError("in the URL https://example.org/s3cret"))
    open_channel(agent, ChannelKind.EMAIL, "ann@example.org")
    (message,) = say(agent)
    work(messages)
    stands = as_it_stands(message)
    assert (stands.status, stands.last_error) == (DeliveryStatus.PENDING, "a fault of ours: ValueError")
    (record,) = (record for record in caplog.records if record.levelname == "ERROR")
    logged: Any = record.msg
    assert logged["event"] == "carrier_failed"
    written = structlog.processors.format_exc_info(None, "", logged)["exception"]
    assert "raise error" in written, "where it came from is shown"
    assert "RuntimeError: ValueError" in written
    assert "s3cret" not in written


@pytest.mark.parametrize("gone", [False, True])
def test_a_message_whose_channel_is_removed_or_disabled_fails(
    gone: bool, agent: Agent, messages: list[TaskMessage], carrier: FakeCarrier
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
    agent: Agent, messages: list[TaskMessage], carrier: FakeCarrier
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


def test_nothing_is_sent_of_a_transaction_that_rolls_back(agent: Agent, messages: list[TaskMessage]) -> None:
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
    agent: Agent, messages: list[TaskMessage], carrier: FakeCarrier
) -> None:
    open_channel(agent, ChannelKind.EMAIL, "ann@example.org")
    beat = uuid7()
    for _ in range(2):
        say(agent, heartbeat_id=beat)
    say(agent, heartbeat_id=beat, index=1)
    work(messages)
    assert len(carrier.carried) == 2
    assert len({request.key for request in carrier.carried}) == 2


def test_another_tenants_hint_finds_nothing(
    agent: Agent, other_tenant: Tenant, messages: list[TaskMessage], carrier: FakeCarrier
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
    agent: Agent, tenant: Tenant, messages: list[TaskMessage], carrier: FakeCarrier
) -> None:
    open_channel(agent, ChannelKind.EMAIL, "ann@example.org")
    (message,) = say(agent)
    Tenant.objects.using(OPS).filter(id=tenant.id).update(status=TenantStatus.SUSPENDED)
    assert work(messages) == [False], "nor is it sent by a hint that was on its way"
    assert (as_it_stands(message).status, as_it_stands(message).attempts) == (DeliveryStatus.PENDING, 0)
    let_time_pass(message)
    assert sweep_outbox().enqueued == 0
    Tenant.objects.using(OPS).filter(id=tenant.id).update(status=TenantStatus.ACTIVE)
    assert sweep_outbox().enqueued == 1


def test_a_hint_carries_an_id_and_nothing_else(agent: Agent, messages: list[TaskMessage]) -> None:
    open_channel(agent, ChannelKind.EMAIL, "ann@example.org")
    (message,) = say(agent, "secret words")
    (hint,) = messages
    assert hint.task is Task.DELIVER
    assert hint.arguments == {"message_id": str(message.id)}
    assert UUID(hint.arguments["message_id"])
    assert "secret" not in hint.shown
    assert "ann@" not in hint.shown
