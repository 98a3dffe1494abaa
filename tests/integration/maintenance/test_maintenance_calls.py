"""Maintenance calls: executed once or not at all, with each failure recorded."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import IntegrityError, connections
from structlog.testing import capture_logs

from apps.agents.models import Agent, AgentPolicy
from apps.audit.models import AuditAction, AuditEvent
from apps.calls.models import CallStatus, DailyUsage, ExternalCall
from apps.calls.services.usage import budget_status_of
from apps.heartbeats.services.calls.call_leases import lease_calls
from apps.maintenance.services import purposes
from apps.maintenance.services.consolidation import SHORT_EPISODE, SUMMARY_BATCH, maintain_episodes
from apps.maintenance.services.recovery import (
    failed_maintenance_calls,
    recover_maintenance_calls,
    retry_failed_maintenance_calls,
)
from apps.maintenance.services.settlement import RETRY_DELAYS, record_failed_try
from apps.memories.services.jobs.job_runs import JobRunResult
from apps.memories.services.jobs.summaries import MAX_FAILURES, store_summaries
from apps.queues import Task, captured
from apps.tenants.scope import APP, tenant_transaction
from arbor.errors import ModelRefused, ModelUnavailable
from arbor.heartbeat.usage import BudgetLevel
from arbor.memory.maintenance.replies import read_summary
from arbor.models.handles import REFLEX_HANDLE
from arbor.models.ports import ModelReply, ModelRequest, TextSink
from arbor.models.usage import Usage
from tests.factories.agents import AgentPolicyFactory
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script
from tests.integration.maintenance.maintenance_setup import (
    SUMMARY,
    TALK,
    calls_of,
    close_and_settle,
    episodes_of,
    ledger_of,
    move_into_past,
    only_call,
    remember_talk,
    run_all_tries,
)
from tests.integration.memories.conftest import at_once


@pytest.mark.parametrize(
    ("limit", "level"), [(95, BudgetLevel.HALT), (100, BudgetLevel.END_TIMES)], ids=["none left", "some left"]
)
def test_no_maintenance_call_starts_without_daily_budget(
    limit: int, level: BudgetLevel, agent: Agent, fleet: Fleet, scripted: Script
) -> None:
    scripted(SUMMARY)
    with tenant_transaction(agent.tenant_id):
        policy = AgentPolicyFactory(agent=agent, daily_tokens=limit)
        today = datetime.now(UTC).date()
        DailyUsage.objects.create(tenant_id=agent.tenant_id, agent=agent, day=today, tokens=95)
        assert budget_status_of(agent.id).level is level
    maintain_episodes()
    assert (calls_of(agent), fleet.messages) == ([], [])
    with tenant_transaction(agent.tenant_id):
        AgentPolicy.objects.filter(agent_id=agent.id).update(daily_tokens=None)
    maintain_episodes()
    fleet.messages.clear()
    move_into_past(agent, timedelta(hours=1))
    with tenant_transaction(agent.tenant_id):
        AgentPolicy.objects.filter(agent_id=policy.agent_id).update(daily_tokens=limit)
    assert recover_maintenance_calls() == JobRunResult(steps=1, done=0, failed=0)
    assert fleet.messages == [], "nor is a waiting one enqueued again"
    with tenant_transaction(agent.tenant_id):
        AgentPolicy.objects.filter(agent_id=agent.id).update(daily_tokens=None)
    recover_maintenance_calls()
    fleet.run()
    assert only_call(agent).status == CallStatus.COMPLETE


def test_long_episodes_without_daily_budget_delay_no_short_one(agent: Agent, fleet: Fleet) -> None:
    with tenant_transaction(agent.tenant_id):
        AgentPolicyFactory(agent=agent, daily_tokens=0)
    for number in range(SUMMARY_BATCH):
        remember_talk(agent, session=f"talk {number}")
    remember_talk(agent, *TALK[:SHORT_EPISODE], session="short")
    close_and_settle(agent)
    maintain_episodes()
    assert fleet.messages == []
    assert [episode.session for episode in episodes_of(agent) if episode.summary] == ["short"]


def test_a_call_by_rules_is_enqueued_without_daily_budget(agent: Agent, fleet: Fleet, settings: Any) -> None:
    settings.ARBOR_MAINTENANCE_MODEL = str(REFLEX_HANDLE)
    with tenant_transaction(agent.tenant_id):
        AgentPolicyFactory(agent=agent, daily_tokens=0)
        assert budget_status_of(agent.id).level is BudgetLevel.HALT
    maintain_episodes()
    (lost,) = fleet.messages
    fleet.messages.clear()
    move_into_past(agent, timedelta(hours=1))
    recover_maintenance_calls()
    assert [message.arguments for message in fleet.messages] == [lost.arguments]


def test_a_call_runs_once_outside_transactions_and_is_charged(
    agent: Agent, fleet: Fleet, scripted: Script
) -> None:
    open_transactions: list[bool] = []

    def answer(_: ModelRequest) -> str:
        open_transactions.append(connections[APP].in_atomic_block)
        return SUMMARY

    scripted(answer)
    maintain_episodes()
    message = fleet.pop_message()
    assert (message.task, fleet.messages) == (Task.EXECUTE_CALL, [])
    assert fleet.deliver(message)
    assert open_transactions == [False]
    assert not fleet.deliver(message), "a doubled message finds nothing to do"
    call = only_call(agent)
    assert (call.status, call.heartbeat_id, call.purpose) == (CallStatus.COMPLETE, None, "summarize")
    (paid,) = ledger_of(agent)
    assert (paid.call_id, paid.purpose, paid.provider) == (call.id, "summarize", "scripted")
    assert episodes_of(agent)[0].summarized_by == "scripted/model"


def test_one_subject_has_one_open_call(agent: Agent, fleet: Fleet) -> None:
    def enqueue(_: int) -> int:
        with captured() as messages:
            maintain_episodes()
        return len(messages)

    assert sum(at_once(enqueue, writers=3)) == 1
    assert len(calls_of(agent)) == 1
    maintain_episodes()
    assert len(calls_of(agent)) == 1


def test_a_lost_message_is_sent_again_at_growing_intervals(
    agent: Agent, fleet: Fleet, scripted: Script
) -> None:
    scripted(SUMMARY)
    maintain_episodes()
    fleet.messages.clear()
    recover_maintenance_calls()
    assert fleet.messages == [], "its lease still holds"
    move_into_past(agent, timedelta(minutes=10))
    recover_maintenance_calls()
    assert len(fleet.messages) == 1
    fleet.messages.clear()
    move_into_past(agent, timedelta(minutes=5))
    recover_maintenance_calls()
    assert fleet.messages == [], "the second message has more time"
    move_into_past(agent, timedelta(minutes=6))
    recover_maintenance_calls()
    fleet.run()
    call = only_call(agent)
    assert (call.status, call.failures) == (CallStatus.COMPLETE, 0)
    assert episodes_of(agent)[0].summary == read_summary(SUMMARY)


def test_a_worker_that_does_not_come_back_costs_one_try(agent: Agent, fleet: Fleet, scripted: Script) -> None:
    model = scripted(SUMMARY)
    maintain_episodes()
    message = fleet.pop_message()
    assert lease_calls([UUID(message.arguments["call_id"])], tenant_id=agent.tenant_id)
    recover_maintenance_calls()
    assert only_call(agent).status == CallStatus.RUNNING, "it may still come back"
    move_into_past(agent, timedelta(minutes=10))
    recover_maintenance_calls()
    call = only_call(agent)
    assert (call.status, call.failures, call.error_kind) == (CallStatus.PENDING, 1, "WorkerLost")
    assert not fleet.deliver(message), "not before its wait is over"
    move_into_past(agent, RETRY_DELAYS[0] + timedelta(seconds=1))
    recover_maintenance_calls()
    fleet.run()
    assert (only_call(agent).status, len(model.requests)) == (CallStatus.COMPLETE, 1)
    assert episodes_of(agent)[0].failures == 1
    assert episodes_of(agent)[0].failure == ""


def test_a_reply_after_the_lease_is_charged_and_not_stored(
    agent: Agent, fleet: Fleet, scripted: Script
) -> None:
    def answer_late(_: ModelRequest) -> str:
        move_into_past(agent, timedelta(minutes=10))
        recover_maintenance_calls()
        return SUMMARY

    scripted(answer_late)
    maintain_episodes()
    assert not fleet.deliver(fleet.pop_message())
    assert (only_call(agent).status, len(ledger_of(agent))) == (CallStatus.PENDING, 1)
    assert episodes_of(agent)[0].summary == ""


def test_a_failure_after_the_lease_is_not_reported(agent: Agent, fleet: Fleet) -> None:
    maintain_episodes()
    (call,) = lease_calls([UUID(fleet.pop_message().arguments["call_id"])], tenant_id=agent.tenant_id)
    late = replace(call, attempt=call.attempt - 1, failures=len(RETRY_DELAYS))
    with capture_logs() as logs, tenant_transaction(agent.tenant_id):
        assert not record_failed_try(late, error=ModelUnavailable("gone"))
    assert logs == []
    assert only_call(agent).status == CallStatus.RUNNING


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        ((ModelUnavailable("the provider is away"),), "ModelUnavailable"),
        ((ModelRefused("I will not read that", usage=Usage(input_tokens=7)),), "ModelRefused"),
        (("I would rather sing.",), "ReplyInvalid"),
        (('{"summary": ""}',), "ReplyInvalid"),
        (('{"summary": "it breaks off', "{}"), "ReplyInvalid"),
    ],
)
def test_failures_back_off_and_end_with_their_reason(
    agent: Agent, fleet: Fleet, scripted: Script, lines: tuple[Any, ...], kind: str
) -> None:
    model = scripted(*lines, repeat=True)
    maintain_episodes()
    for tries, wait in enumerate(RETRY_DELAYS, start=1):
        fleet.run()
        call = only_call(agent)
        assert (call.status, call.failures, call.error_kind) == (CallStatus.PENDING, tries, kind)
        assert call.due_at is not None
        assert call.started_at is not None
        assert call.due_at - call.started_at >= wait
        move_into_past(agent, wait - timedelta(seconds=30))
        recover_maintenance_calls()
        assert fleet.messages == []
        move_into_past(agent, timedelta(seconds=31))
        recover_maintenance_calls()
    fleet.run()
    call = only_call(agent)
    assert (call.status, call.failures, call.error_kind) == (CallStatus.FAILED, MAX_FAILURES, kind)
    assert (call.error != "", call.ended_at is not None) == (True, True)
    assert len(model.requests) == len(ledger_of(agent)) == MAX_FAILURES == len(RETRY_DELAYS) + 1
    (episode,) = episodes_of(agent)
    assert (episode.summary, episode.summarized_at, episode.failures) == ("", None, MAX_FAILURES)
    assert episode.failure.startswith(f"{kind}: ")
    move_into_past(agent, timedelta(days=1))
    recover_maintenance_calls()
    maintain_episodes()
    assert (fleet.messages, len(calls_of(agent))) == ([], 1), "it is left, for a person to see"


def test_a_retry_names_the_fault_of_the_last_reply(agent: Agent, fleet: Fleet, scripted: Script) -> None:
    model = scripted("I would rather sing.", "No.", SUMMARY)
    maintain_episodes()
    run_all_tries(agent, fleet)
    assert only_call(agent).status == CallStatus.COMPLETE
    first, second, third = (request.messages for request in model.requests)
    assert len(first) == 1
    assert [message.content for message in second[:2]] == [first[0].content, "I would rather sing."]
    assert 'expected a JSON object with the key "summary"' in second[2].content
    assert third[1].content == "No."
    assert len(third) == 3


def test_a_fault_in_applying_a_reply_is_retried(
    agent: Agent, fleet: Fleet, scripted: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(SUMMARY, SUMMARY)

    def faulty(*arguments: Any, **options: Any) -> int:
        store_summaries(*arguments, **options)
        raise ZeroDivisionError("on purpose")

    maintain_episodes()
    with monkeypatch.context() as patch:
        patch.setattr(purposes, "store_summaries", faulty)
        assert fleet.deliver(fleet.pop_message())
    call = only_call(agent)
    assert (call.status, call.error_kind, call.failures) == (CallStatus.PENDING, "ZeroDivisionError", 1)
    assert (episodes_of(agent)[0].summary, len(ledger_of(agent))) == ("", 1)
    move_into_past(agent, RETRY_DELAYS[0] + timedelta(seconds=1))
    recover_maintenance_calls()
    fleet.run()
    assert episodes_of(agent)[0].summary == read_summary(SUMMARY)


def test_a_truncated_reply_is_audited(
    agent: Agent, fleet: Fleet, scripted: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = scripted('{"summary": "The Heron wa', SUMMARY)
    complete = model.complete

    def cut_short(request: ModelRequest, *, deadline_s: float, on_text: TextSink | None = None) -> ModelReply:
        return replace(complete(request, deadline_s=deadline_s, on_text=on_text), finish_reason="length")

    monkeypatch.setattr(model, "complete", cut_short)
    maintain_episodes()
    fleet.run()
    with tenant_transaction(agent.tenant_id):
        (event,) = AuditEvent.objects.filter(action=AuditAction.TRUNCATED)
    assert event.detail["call_id"] == str(only_call(agent).id)
    assert only_call(agent).status == CallStatus.PENDING


def test_waiting_retries_use_no_room(
    agent: Agent, foreign_mind: Agent, fleet: Fleet, scripted: Script, settings: Any
) -> None:
    settings.ARBOR_MAX_MAINTENANCE_CALLS = 2
    scripted(ModelUnavailable("the provider is away"), repeat=True)
    for talk in range(3):
        remember_talk(agent, *(f"{talk}: {text}" for text in TALK), session=f"talk {talk}")
        remember_talk(foreign_mind, *(f"{talk}: {text}" for text in TALK), session=f"talk {talk}")
    close_and_settle(agent)
    maintain_episodes()
    assert len(calls_of(agent)) == 2
    close_and_settle(foreign_mind)
    maintain_episodes()
    assert len(calls_of(foreign_mind)) == 1, "its share, though the other tenant has taken all"
    fleet.run()
    assert {call.status for call in calls_of(agent)} == {CallStatus.PENDING}
    maintain_episodes()
    # The tenant that is visited first takes all, the other one its share.
    assert (len(calls_of(agent)), len(calls_of(foreign_mind))) in [(4, 2), (3, 3)]


def test_a_maintenance_call_keeps_its_subject(agent: Agent, fleet: Fleet) -> None:
    maintain_episodes()
    call = only_call(agent)
    with (
        pytest.raises(IntegrityError, match="calls_of_heartbeat_or_maintenance"),
        tenant_transaction(agent.tenant_id),
    ):
        ExternalCall.objects.filter(id=call.id).update(subject_key="")


def test_a_failed_call_is_retried_when_a_person_asks(agent: Agent, fleet: Fleet, scripted: Script) -> None:
    scripted("I would rather sing.", repeat=True)
    maintain_episodes()
    run_all_tries(agent, fleet)
    with tenant_transaction(agent.tenant_id):
        (failed,) = failed_maintenance_calls(agent_id=agent.id)
        assert (failed.purpose, failed.about, failed.model) == ("summarize", "an episode", "scripted/model")
        assert failed.reason.startswith("ReplyInvalid: expected a JSON object")
        assert retry_failed_maintenance_calls(actor="cli:ann", agent_id=agent.id) == 1
        assert retry_failed_maintenance_calls(actor="cli:ann") == 0
        event = AuditEvent.objects.get(actor="cli:ann")
        assert event.message == "requested new calls for 1 failed maintenance call"
        assert event.detail == {"purposes": {"summarize": 1}}
        assert failed_maintenance_calls() == []
    scripted(SUMMARY)
    maintain_episodes()
    fleet.run()
    assert [call.status for call in calls_of(agent)] == [CallStatus.RETRIED, CallStatus.COMPLETE]
    assert episodes_of(agent)[0].summary == read_summary(SUMMARY)
