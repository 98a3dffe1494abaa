"""Delivery from the outbox, with failures, killed workers and doubled messages."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import structlog
from django.db import connection

from apps.agents.models import Agent, Percept, PerceptKind
from apps.contacts.models import Channel, OutboxMessage
from apps.contacts.services import delivery
from apps.contacts.services.channels import remove_channel, switch_channel
from apps.contacts.services.delivery import deliver
from apps.contacts.services.outbox import cancel_message, retry_message
from apps.contacts.services.outbox_sweep import sweep_outbox
from apps.fleet.identities import suspend_identity
from apps.queues import Task, TaskMessage
from apps.tenants.models import Tenant, TenantStatus
from apps.tenants.scope import OPS, tenant_transaction
from arbor.contacts.delivery import MAX_TRIES, WAITS
from arbor.contacts.ports import DeliverableMessage, FakeCarrier
from arbor.contacts.values import ChannelKind, DeliveryStatus
from arbor.errors import DeliveryFailed, NotFound, TransitionIllegal
from arbor.ids import uuid7
from tests.integration.contacts.conftest import (
    make_agent,
    make_due,
    open_channel,
    run_workers,
    time_until_due,
    write_message,
)
from tests.support.rows import reload


@pytest.fixture(autouse=True)
def channel(agent: Agent) -> Channel:
    """Open an email channel of the agent's tenant."""
    channel, _ = open_channel(agent, ChannelKind.EMAIL, "ann@example.org")
    return channel


@pytest.fixture
def carrier(monkeypatch: pytest.MonkeyPatch) -> FakeCarrier:
    """Replace all carriers by one that records messages."""
    fake = FakeCarrier(before=lambda _: None)
    monkeypatch.setattr(delivery, "carrier_of", lambda _kind: fake)
    return fake


def carry_after(monkeypatch: pytest.MonkeyPatch, act: Callable[[DeliverableMessage], None]) -> None:
    """Replace all carriers by one that calls `act` before it carries a message."""
    monkeypatch.setattr(delivery, "carrier_of", lambda _kind: FakeCarrier(before=act))


def fail_deliveries(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Replace all carriers by one that raises an error."""

    def fail(_: DeliverableMessage) -> None:
        raise error

    carry_after(monkeypatch, fail)


def test_a_doubled_hint_delivers_once(
    agent: Agent, messages: list[TaskMessage], carrier: FakeCarrier
) -> None:
    write_message(agent)
    messages *= 3
    assert run_workers(messages) == [True, False, False]
    assert len(carrier.carried) == 1


def test_no_transaction_is_open_while_a_message_is_carried(
    agent: Agent, messages: list[TaskMessage], monkeypatch: pytest.MonkeyPatch
) -> None:
    observed: list[tuple[bool, str]] = []

    def observe(outgoing: DeliverableMessage) -> None:
        with tenant_transaction(agent.tenant_id):
            status = OutboxMessage.objects.get(id=outgoing.id).status
        observed.append((connection.in_atomic_block, status))

    carry_after(monkeypatch, observe)
    write_message(agent)
    run_workers(messages)
    assert observed == [(False, DeliveryStatus.SENDING)]


def test_a_killed_delivery_is_repeated_with_the_same_key(
    agent: Agent, messages: list[TaskMessage], carrier: FakeCarrier, monkeypatch: pytest.MonkeyPatch
) -> None:
    (message,) = write_message(agent)

    def die(*_: Any, **__: Any) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(delivery, "_mark_sent", die)
        with pytest.raises(KeyboardInterrupt):
            run_workers(messages)
    assert reload(message).status == DeliveryStatus.SENDING
    assert sweep_outbox().lost == 0
    make_due(message)
    assert sweep_outbox().lost == 1
    current = reload(message)
    assert (current.status, current.attempts) == (DeliveryStatus.PENDING, 1)
    assert "whether the message arrived is not known" in current.last_error
    assert timedelta(seconds=20) < time_until_due(message) <= WAITS[0]
    make_due(message)
    sweep_outbox()
    run_workers(messages)
    assert [carried.key for carried in carrier.carried] == [message.idempotency_key] * 2
    assert reload(message).status == DeliveryStatus.SENT


def test_a_confirmation_counts_after_the_lease_expired(
    agent: Agent, messages: list[TaskMessage], monkeypatch: pytest.MonkeyPatch
) -> None:
    (message,) = write_message(agent)

    def outlast_the_lease(_: DeliverableMessage) -> None:
        make_due(message)
        sweep_outbox()

    carry_after(monkeypatch, outlast_the_lease)
    run_workers(messages)
    assert reload(message).status == DeliveryStatus.SENT


def test_a_lost_hint_is_repeated_once(
    agent: Agent, messages: list[TaskMessage], carrier: FakeCarrier
) -> None:
    (message,) = write_message(agent)
    messages.clear()
    assert sweep_outbox().enqueued == 0
    make_due(message)
    assert sweep_outbox().enqueued == 1
    assert sweep_outbox().enqueued == 0
    assert run_workers(messages) == [True]


def test_a_delivery_fails_after_eight_tries_and_can_be_retried(
    agent: Agent, messages: list[TaskMessage], monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_deliveries(monkeypatch, DeliveryFailed("the line is dead\0"))
    (message,) = write_message(agent, "Ice.", subject="Ice")
    waits = []
    for _ in range(MAX_TRIES):
        run_workers(messages)
        waits.append(time_until_due(message))
        make_due(message)
        sweep_outbox()
    current = reload(message)
    assert (current.status, current.attempts) == (DeliveryStatus.FAILED, MAX_TRIES)
    assert "the line is dead" in current.last_error
    for wait, expected in zip(waits, WAITS, strict=False):
        assert expected - timedelta(seconds=20) < wait <= expected
    with tenant_transaction(agent.tenant_id):
        percept = Percept.objects.get(agent=agent)
        assert percept.kind == PerceptKind.ERROR
        assert "Your message 'Ice' was not delivered by email: the line is dead" in percept.content
        retry_message(message_id=message.id, actor="test")
    current = reload(message)
    assert (current.status, current.attempts, current.tries) == (DeliveryStatus.PENDING, MAX_TRIES, 0)
    run_workers(messages)
    current = reload(message)
    assert (current.status, current.attempts, current.tries) == (DeliveryStatus.PENDING, MAX_TRIES + 1, 1)
    assert WAITS[0] - timedelta(seconds=20) < time_until_due(message) <= WAITS[0]
    make_due(message)
    sweep_outbox()
    monkeypatch.setattr(delivery, "carrier_of", lambda _kind: FakeCarrier())
    run_workers(messages)
    assert reload(message).status == DeliveryStatus.SENT


def test_a_worker_lost_in_the_last_try_is_reported_to_the_agent(
    agent: Agent, messages: list[TaskMessage], monkeypatch: pytest.MonkeyPatch
) -> None:
    (message,) = write_message(agent, "Ice.", subject="Ice")
    with tenant_transaction(agent.tenant_id):
        OutboxMessage.objects.filter(id=message.id).update(attempts=MAX_TRIES - 1)
    fail_deliveries(monkeypatch, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        run_workers(messages)
    make_due(message)
    assert [sweep_outbox().lost, sweep_outbox().lost] == [1, 0]
    current = reload(message)
    assert (current.status, current.attempts) == (DeliveryStatus.FAILED, MAX_TRIES)
    with tenant_transaction(agent.tenant_id):
        percept = Percept.objects.get(agent=agent)
    assert percept.content.startswith("Your message 'Ice' was not delivered by email: the worker of try 8")
    assert "whether the message arrived is not known" in percept.content
    assert percept.detail == {"message": str(message.id)}


def test_a_message_that_is_being_sent_cannot_be_tried_again(
    agent: Agent, messages: list[TaskMessage], monkeypatch: pytest.MonkeyPatch
) -> None:
    def retry_meanwhile(_: DeliverableMessage) -> None:
        with (
            tenant_transaction(agent.tenant_id),
            pytest.raises(TransitionIllegal, match="only one that is failed"),
        ):
            retry_message(message_id=message.id, actor="test")

    carry_after(monkeypatch, retry_meanwhile)
    (message,) = write_message(agent)
    assert run_workers(messages) == [True]
    assert reload(message).status == DeliveryStatus.SENT


def test_a_late_worker_does_not_end_the_try_of_another(
    agent: Agent, messages: list[TaskMessage], monkeypatch: pytest.MonkeyPatch
) -> None:
    (message,) = write_message(agent)
    observed: list[tuple[str, int, str]] = []

    stale = delivery._claim(message.id, agent.tenant_id)
    assert stale is not None

    def report_the_first_failure(_: DeliverableMessage) -> None:
        # The first worker returns only now, and reports its failure.
        assert not delivery._record_failure(stale, "the first worker's line is dead", final=True)
        current = reload(message)
        observed.append((current.status, current.attempts, current.last_error))

    with tenant_transaction(agent.tenant_id):
        OutboxMessage.objects.filter(id=message.id).update(status=DeliveryStatus.FAILED)
        retry_message(message_id=message.id, actor="test")
    carry_after(monkeypatch, report_the_first_failure)
    deliver(message_id=message.id, tenant_id=agent.tenant_id)
    assert observed == [(DeliveryStatus.SENDING, 2, "")]
    assert reload(message).status == DeliveryStatus.SENT


def test_a_carrier_fault_fails_the_try_and_hides_its_message(
    agent: Agent,
    messages: list[TaskMessage],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    fail_deliveries(monkeypatch, ValueError("in the URL https://example.org/s3cret"))
    (message,) = write_message(agent)
    run_workers(messages)
    current = reload(message)
    assert (current.status, current.last_error) == (
        DeliveryStatus.PENDING,
        "an internal error of Arbor: ValueError",
    )
    (record,) = (record for record in caplog.records if record.levelname == "ERROR")
    logged: Any = record.msg
    assert logged["event"] == "carrier_failed"
    written = structlog.processors.format_exc_info(None, "", logged)["exception"]
    assert "raise error" in written, "the place of the error is logged"
    assert "RuntimeError: ValueError" in written
    assert "s3cret" not in written


@pytest.mark.parametrize("removed", [False, True])
def test_a_message_whose_channel_is_removed_or_disabled_fails(
    removed: bool, channel: Channel, agent: Agent, messages: list[TaskMessage], carrier: FakeCarrier
) -> None:
    (message,) = write_message(agent)
    with tenant_transaction(agent.tenant_id):
        if removed:
            remove_channel(channel_id=channel.id, actor="test")
        else:
            switch_channel(channel_id=channel.id, enabled=False, actor="test")
    run_workers(messages)
    current = reload(message)
    assert current.status == DeliveryStatus.FAILED
    assert f"its channel was {'removed' if removed else 'disabled'}" in current.last_error
    assert carrier.carried == []


def test_a_message_is_withdrawn_before_it_is_sent_and_not_after(
    agent: Agent, messages: list[TaskMessage], carrier: FakeCarrier
) -> None:
    (message,) = write_message(agent)
    with tenant_transaction(agent.tenant_id):
        cancel_message(message_id=message.id, actor="test")
    assert run_workers(messages) == [False]
    (sent,) = write_message(agent)
    run_workers(messages)
    with tenant_transaction(agent.tenant_id):
        for act in (cancel_message, retry_message):
            with pytest.raises(TransitionIllegal, match="is sent and cannot become"):
                act(message_id=sent.id, actor="test")
        with pytest.raises(TransitionIllegal, match="is cancelled and cannot become"):
            retry_message(message_id=message.id, actor="test")
    assert len(carrier.carried) == 1


def test_a_rolled_back_transaction_sends_no_message(agent: Agent, messages: list[TaskMessage]) -> None:

    def fail_after_writing() -> None:
        with tenant_transaction(agent.tenant_id):
            write_message(agent)
            raise RuntimeError("the heartbeat fails")

    with pytest.raises(RuntimeError, match="the heartbeat fails"):
        fail_after_writing()
    assert messages == []
    with tenant_transaction(agent.tenant_id):
        assert not OutboxMessage.objects.exists()


def test_an_action_executed_twice_writes_one_message(
    agent: Agent, messages: list[TaskMessage], carrier: FakeCarrier
) -> None:
    heartbeat = uuid7()
    for _ in range(2):
        write_message(agent, heartbeat_id=heartbeat)
    write_message(agent, heartbeat_id=heartbeat, index=1)
    run_workers(messages)
    assert len(carrier.carried) == 2
    assert len({request.key for request in carrier.carried}) == 2


def test_another_tenants_hint_finds_nothing(
    agent: Agent, other_tenant: Tenant, messages: list[TaskMessage], carrier: FakeCarrier
) -> None:
    (message,) = write_message(agent)
    assert not deliver(message_id=message.id, tenant_id=other_tenant.id)
    with tenant_transaction(other_tenant.id):
        for act in (cancel_message, retry_message):
            with pytest.raises(NotFound):
                act(message_id=message.id, actor="test")
        assert write_message(make_agent(other_tenant, "Rigel"))[0].kind == ChannelKind.INBOX
    assert carrier.carried == []
    assert reload(message).status == DeliveryStatus.PENDING


def test_messages_of_a_suspended_tenant_wait(
    agent: Agent, tenant: Tenant, messages: list[TaskMessage], carrier: FakeCarrier
) -> None:
    (message,) = write_message(agent)
    Tenant.objects.using(OPS).filter(id=tenant.id).update(status=TenantStatus.SUSPENDED)
    assert run_workers(messages) == [False], "a hint that was queued before sends no message"
    assert (reload(message).status, reload(message).attempts) == (DeliveryStatus.PENDING, 0)
    make_due(message)
    assert sweep_outbox().enqueued == 0
    Tenant.objects.using(OPS).filter(id=tenant.id).update(status=TenantStatus.ACTIVE)
    assert sweep_outbox().enqueued == 1


def test_a_message_of_a_suspended_agent_is_not_sent(
    agent: Agent, messages: list[TaskMessage], carrier: FakeCarrier
) -> None:
    (message,) = write_message(agent)
    with tenant_transaction(agent.tenant_id):
        suspend_identity(agent_id=agent.id, reason="it was talked into something", actor="test")
    run_workers(messages)

    assert carrier.carried == []
    message = reload(message)
    assert message.status == DeliveryStatus.FAILED
    assert "talked into something" in message.last_error


def test_a_hint_carries_an_id_and_nothing_else(agent: Agent, messages: list[TaskMessage]) -> None:
    (message,) = write_message(agent, "secret words")
    (hint,) = messages
    assert hint.task is Task.DELIVER
    assert hint.arguments == {"message_id": str(message.id)}
    assert "secret" not in hint.shown
    assert "ann@" not in hint.shown
