"""Calls of one message: leased by one statement, executed together, stored together; failures are separate."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from django.db import IntegrityError, connections
from django.db.models import Sum
from django.db.models.functions import Now

from apps.agents.models import Agent
from apps.calls.models import CallStatus, DailyUsage, ExternalCall, LedgerEntry
from apps.calls.services.leased_calls import LeasedCall
from apps.calls.services.ledger import failure_charge
from apps.console.pages.call import read_call
from apps.heartbeats.models import HeartbeatStatus
from apps.heartbeats.services.calls import call_leases
from apps.heartbeats.services.calls import calls as calls_service
from apps.heartbeats.services.calls.calls import Submit, execute_calls
from apps.queues import Task
from apps.tenants.models import Tenant
from apps.tenants.scope import APP, tenant_transaction
from arbor.errors import ModelRefused, ModelTimeout, ModelUnavailable
from arbor.ids import uuid7
from arbor.models.ports import CallPurpose, ModelReply, ModelRequest, TextSink
from arbor.models.slots import Slots
from arbor.models.usage import Usage
from tests.integration.heartbeats.conftest import (
    REST,
    heartbeats_of,
    lose_lease,
    make_due,
    run_at_once,
    schedule_of,
)
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script, reply_of
from tests.support.database import recorded_statements

MANY = 4


@pytest.fixture
def submit() -> Iterator[Submit]:
    """Return a function that submits work to threads, which release their connections as a worker's do."""

    def work_and_release(work: Callable[[], None]) -> None:
        try:
            work()
        finally:
            connections[APP].close()

    with ThreadPoolExecutor(MANY) as pool:
        yield lambda work: pool.submit(work_and_release, work)


@pytest.fixture
def agents(tenant: Tenant, new_agent: Callable[..., Agent]) -> list[Agent]:
    """Return agents of one tenant, by name."""
    return [new_agent(tenant, name=f"agent {number}") for number in range(MANY)]


def pending_calls(fleet: Fleet, agents: list[Agent]) -> list[UUID]:
    """Run the agents until they wait for models; return the ids of their calls in the order of the agents."""
    for agent in agents:
        make_due(agent)
    fleet.dispatch()
    for _ in agents:
        fleet.step()
    messages = [fleet.pop_message() for _ in agents]
    assert {message.task for message in messages} == {Task.EXECUTE_CALL}
    with tenant_transaction(agents[0].tenant_id):
        calls = dict(ExternalCall.objects.values_list("agent_id", "id"))
    return [calls[agent.id] for agent in agents]


def number_of(request: ModelRequest) -> int:
    """Return the number of the agent in the request."""
    return next(number for number in range(MANY) if f"agent {number}" in request.system)


def test_calls_are_leased_and_stored_together_and_asked_at_once(
    fleet: Fleet, agents: list[Agent], scripted: Script, submit: Submit
) -> None:
    together = threading.Barrier(MANY, timeout=10)

    def wait_for_all(_: ModelRequest) -> str:
        assert not connections[APP].in_atomic_block
        together.wait()
        return REST

    model = scripted(wait_for_all, repeat=True)
    calls = pending_calls(fleet, agents)
    with recorded_statements() as sent:
        assert execute_calls(call_ids=calls, tenant_id=agents[0].tenant_id, submit=submit) == MANY
    # One statement leases the calls; one, or two if a thread is late, store them.
    assert 2 <= len([statement for statement in sent if "externalcall" in statement]) <= 3
    assert len(model.requests) == MANY
    fleet.run()
    assert [heartbeat.status for agent in agents for heartbeat in heartbeats_of(agent)] == [
        HeartbeatStatus.DONE
    ] * MANY
    with tenant_transaction(agents[0].tenant_id):
        assert LedgerEntry.objects.count() == MANY
        assert DailyUsage.objects.aggregate(calls=Sum("calls"))["calls"] == MANY


def test_a_failed_call_fails_only_its_heartbeat(
    fleet: Fleet, agents: list[Agent], scripted: Script, submit: Submit
) -> None:
    def answer(request: ModelRequest) -> str:
        match number_of(request):
            case 1:
                raise ModelTimeout("too late")
            case 2:
                raise ZeroDivisionError("a fault in an adapter")
            case _:
                return REST

    scripted(answer, repeat=True)
    calls = pending_calls(fleet, agents)
    assert execute_calls(call_ids=calls, tenant_id=agents[0].tenant_id, submit=submit) == MANY
    fleet.run()
    ended = [heartbeat.status for agent in agents for heartbeat in heartbeats_of(agent)]
    done, failed = HeartbeatStatus.DONE, HeartbeatStatus.FAILED
    assert ended == [done, failed, failed, done]
    with tenant_transaction(agents[0].tenant_id):
        kinds = dict(ExternalCall.objects.values_list("id", "error_kind"))
        paid = dict(LedgerEntry.objects.values_list("call_id", "error_kind"))
    assert [kinds[call] for call in calls] == ["", "ModelTimeout", "ZeroDivisionError", ""]
    # No model was called where an adapter failed.
    assert paid == {calls[0]: "", calls[1]: "ModelTimeout", calls[3]: ""}


def test_a_fault_in_storing_replies_stores_them_one_by_one(
    fleet: Fleet, agents: list[Agent], scripted: Script, submit: Submit
) -> None:
    calls: list[UUID] = []
    together = threading.Barrier(MANY, timeout=10)

    def answer(request: ModelRequest) -> str:
        if number_of(request) == 1:
            # No ledger entry can refer to this call any more.
            with tenant_transaction(agents[0].tenant_id):
                ExternalCall.objects.filter(id=calls[1]).delete()
        together.wait()
        return REST

    scripted(answer, repeat=True)
    calls += pending_calls(fleet, agents)
    with pytest.raises(IntegrityError):
        execute_calls(call_ids=calls, tenant_id=agents[0].tenant_id, submit=submit)
    fleet.run()
    ended = [heartbeat.status for agent in agents for heartbeat in heartbeats_of(agent)]
    assert ended == [
        HeartbeatStatus.DONE,
        HeartbeatStatus.WAITING,
        HeartbeatStatus.DONE,
        HeartbeatStatus.DONE,
    ]


def test_a_doubled_message_calls_no_model(
    fleet: Fleet, agents: list[Agent], scripted: Script, submit: Submit
) -> None:
    model = scripted(REST, repeat=True)
    calls = pending_calls(fleet, agents)
    assert execute_calls(call_ids=calls[:2], tenant_id=agents[0].tenant_id, submit=submit) == 2
    assert execute_calls(call_ids=calls, tenant_id=agents[0].tenant_id, submit=submit) == 2
    assert execute_calls(call_ids=calls, tenant_id=agents[0].tenant_id, submit=submit) == 0
    assert len(model.requests) == MANY


def test_calls_of_another_tenant_are_not_found(
    fleet: Fleet, agents: list[Agent], other_tenant: Tenant, scripted: Script, submit: Submit
) -> None:
    model = scripted(REST, repeat=True)
    calls = pending_calls(fleet, agents)
    assert execute_calls(call_ids=calls, tenant_id=other_tenant.id, submit=submit) == 0
    assert model.requests == []


def test_a_reply_under_a_lost_lease_is_paid_for_and_not_stored(
    fleet: Fleet, agents: list[Agent], scripted: Script, submit: Submit
) -> None:
    calls: list[UUID] = []

    def answer(request: ModelRequest) -> str:
        if number_of(request) == 2:
            with tenant_transaction(agents[0].tenant_id):
                ExternalCall.objects.filter(id=calls[2]).update(status=CallStatus.PENDING, attempts=2)
        return REST

    scripted(answer, repeat=True)
    calls += pending_calls(fleet, agents)
    assert execute_calls(call_ids=calls, tenant_id=agents[0].tenant_id, submit=submit) == MANY - 1
    with tenant_transaction(agents[0].tenant_id):
        call = ExternalCall.objects.get(id=calls[2])
        assert (call.status, call.reply, call.attempts) == (CallStatus.PENDING, "", 2)
        assert LedgerEntry.objects.count() == MANY


def test_a_call_that_has_waited_for_a_thread_renews_its_lease(
    fleet: Fleet, agents: list[Agent], scripted: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_leases, "RENEWED_AFTER_S", 0.0)
    tenant_id = agents[0].tenant_id
    leased: list[bool] = []

    def answer(_: ModelRequest) -> str:
        with tenant_transaction(tenant_id):
            leased.append(ExternalCall.objects.filter(lease_until__gt=Now(), status="running").exists())
        return REST

    model = scripted(answer, repeat=True)
    calls = pending_calls(fleet, agents)
    queued: list[Callable[[], None]] = []

    def start_late(work: Callable[[], None]) -> None:
        """Start all threads with the last call: the leases have expired, and another worker has one call."""
        queued.append(work)
        if len(queued) < MANY:
            return
        with tenant_transaction(tenant_id):
            ExternalCall.objects.update(lease_until=Now() - timedelta(seconds=1))
            ExternalCall.objects.filter(id=calls[0]).update(attempts=2)
        for call in queued:
            call()

    stored = execute_calls(call_ids=calls, tenant_id=tenant_id, submit=start_late)
    assert (stored, len(model.requests)) == (MANY - 1, MANY - 1)
    assert leased == [True] * (MANY - 1)


def test_a_waiting_heartbeats_lease_outlasts_its_calls(
    fleet: Fleet, agents: list[Agent], scripted: Script, submit: Submit, settings: Any
) -> None:
    leases: list[float] = []

    def answer(request: ModelRequest) -> str:
        row = schedule_of(agents[number_of(request)])
        assert row.lease_until is not None
        with tenant_transaction(agents[0].tenant_id):
            call = ExternalCall.objects.get(agent_id=row.agent_id)
        assert call.lease_until is not None
        leases.append((row.lease_until - call.lease_until).total_seconds())
        return REST

    scripted(answer, repeat=True)
    calls = pending_calls(fleet, agents)
    lose_lease(agents[0])
    assert execute_calls(call_ids=calls, tenant_id=agents[0].tenant_id, submit=submit) == MANY
    assert min(leases) >= settings.ARBOR_QUEUE_LEASE.total_seconds() / 2


def test_a_closed_pool_leaves_its_calls_to_the_leasing_thread(
    fleet: Fleet, agents: list[Agent], scripted: Script
) -> None:
    def shut_down(_work: Callable[[], None]) -> None:
        raise RuntimeError("cannot schedule new futures after shutdown")

    scripted(ModelUnavailable("the provider is down"), repeat=True)
    calls = pending_calls(fleet, agents)
    assert execute_calls(call_ids=calls, tenant_id=agents[0].tenant_id, submit=shut_down) == MANY


class SlowServer:
    """A model that answers after a time, and counts the requests that it has at once."""

    handle = "ollama/slow"

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._present = 0
        self.most = 0
        self.deadlines: list[float] = []
        #: Called when the first request arrives.
        self.before_first: Callable[[], None] | None = None

    def complete(
        self, request: ModelRequest, *, deadline_s: float, on_text: TextSink | None = None
    ) -> ModelReply:
        with self._lock:
            self._present += 1
            self.most = max(self.most, self._present)
            self.deadlines.append(deadline_s)
            is_first = len(self.deadlines) == 1
        if is_first and self.before_first is not None:
            self.before_first()
        threading.Event().wait(self._seconds)
        with self._lock:
            self._present -= 1
        return ModelReply(
            text=REST, provider="ollama", model="slow", usage=Usage(), cost_usd=Decimal(0), latency_ms=1.0
        )


@pytest.fixture
def one_at_a_time(monkeypatch: pytest.MonkeyPatch, settings: Any) -> SlowServer:
    """Return a slow server that answers one call at a time, so that waiting calls outlast their leases."""
    server = SlowServer(1.0)
    settings.ARBOR_DEFAULT_MODEL = server.handle
    settings.ARBOR_MODEL_DEADLINE_S = 1.5
    slots = Slots(1)
    monkeypatch.setattr(calls_service, "model_for", lambda _handle: server)
    monkeypatch.setattr(calls_service, "slots_for", lambda _handle: slots)
    monkeypatch.setattr(calls_service, "LEASE_RENEWAL_S", 0.2)
    monkeypatch.setattr(call_leases, "RENEWED_AFTER_S", 0.0)
    monkeypatch.setattr(call_leases, "_TIME_TO_STORE", timedelta(seconds=0.5))
    return server


def test_calls_to_a_slow_server_wait_and_do_not_fail(
    fleet: Fleet, agents: list[Agent], one_at_a_time: SlowServer, submit: Submit
) -> None:
    ids = pending_calls(fleet, agents)
    assert execute_calls(call_ids=ids, tenant_id=agents[0].tenant_id, submit=submit) == MANY
    assert one_at_a_time.most == 1
    # The last call waited for longer than its deadline and its lease, and had its whole deadline when it was sent.
    assert one_at_a_time.deadlines == [1.5] * MANY
    fleet.run()
    assert {heartbeats_of(agent)[-1].status for agent in agents} == {HeartbeatStatus.DONE}


def test_waiting_calls_that_lost_their_leases_are_not_sent(
    fleet: Fleet, agents: list[Agent], one_at_a_time: SlowServer, submit: Submit
) -> None:
    ids = pending_calls(fleet, agents)
    tenant_id = agents[0].tenant_id
    one_at_a_time.before_first = partial(lease_by_another_worker, tenant_id, ids)
    # The reply to the call that was sent comes too late.
    assert execute_calls(call_ids=ids, tenant_id=tenant_id, submit=submit) == 0
    assert len(one_at_a_time.deadlines) == 1


def lease_by_another_worker(tenant_id: UUID, ids: Sequence[UUID]) -> None:
    """Let another worker lease the calls."""
    try:
        with tenant_transaction(tenant_id):
            assert ExternalCall.objects.filter(id__in=ids).update(attempts=9) == MANY
    finally:
        connections[APP].close()


@pytest.mark.parametrize("cost", [Decimal(2), None])
def test_a_refusal_costs_what_the_provider_bills(cost: Decimal | None) -> None:
    request = ModelRequest(purpose=CallPurpose.THINK, system="", messages=())
    call = LeasedCall(
        call_id=uuid7(),
        tenant_id=uuid7(),
        agent_id=uuid7(),
        model="scripted/model",
        request=request,
        attempt=1,
        subject={},
        failures=0,
    )
    refusal = ModelRefused("I will not.", usage=Usage(input_tokens=7), cost_usd=cost)
    charge = failure_charge(call, refusal, latency_ms=1.0)
    assert charge is not None
    assert (charge.input, charge.cost) == (7, cost)


def test_a_calls_page_shows_the_keys_of_the_reply_only(agent: Agent, fleet: Fleet, scripted: Script) -> None:
    scripted(reply_of(concerns=[7, {}, "fog"]))
    heartbeat = run_at_once(fleet, agent)
    with tenant_transaction(agent.tenant_id):
        shown = read_call(ExternalCall.objects.get(heartbeat_id=heartbeat.id), None)
    assert json.loads(shown.parsed) == {"concerns": ["7", "fog"]}
