"""Heartbeats that happen exactly once, with messages lost, doubled or late."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from apps.agents.models import Agent, AgentState, HeartbeatSchedule, ScheduleState
from apps.calls.models import CallStatus, ExternalCall, LedgerEntry
from apps.fleet.lifecycle import pause_agent
from apps.heartbeats.models import HeartbeatStatus
from apps.heartbeats.services.schedule import BATCH_DELAY, claim_now, dispatch
from apps.memories.models import Memory
from apps.queues import captured
from apps.tenants.models import Tenant, TenantStatus
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import set_status
from arbor.errors import ModelUnavailable, TransitionIllegal
from arbor.heartbeat.steps import records
from tests.integration.heartbeats.conftest import (
    REST,
    begin_heartbeat,
    heartbeats_of,
    lose_lease,
    lose_worker,
    make_due,
    run_heartbeat,
    schedule_of,
)
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script
from tests.support.races import race


def _assert_one_completed_heartbeat(agent: Agent) -> None:
    (heartbeat,) = heartbeats_of(agent)
    assert heartbeat.status == HeartbeatStatus.DONE, heartbeat.reason
    assert heartbeat.number == 1
    with tenant_transaction(agent.tenant_id):
        assert AgentState.objects.get(agent_id=agent.id).heartbeats == 1
        assert Memory.objects.filter(agent_id=agent.id, session="heartbeats").count() == 1
    assert schedule_of(agent).state == ScheduleState.IDLE


def test_a_due_agent_has_one_heartbeat_until_it_is_due_again(
    fleet: Fleet, agent: Agent, scripted: Script
) -> None:
    scripted(REST)
    make_due(agent)
    assert fleet.dispatch().due == 1
    assert fleet.dispatch().due == 0
    fleet.run()
    _assert_one_completed_heartbeat(agent)
    assert fleet.dispatch().due == 0


def test_every_message_doubled_changes_nothing(fleet: Fleet, agent: Agent, scripted: Script) -> None:
    model = scripted(REST)
    begin_heartbeat(fleet, agent)
    while fleet.messages:
        message = fleet.pop_message()
        fleet.deliver(message)
        assert not fleet.deliver(message)
    assert len(model.requests) == 1
    _assert_one_completed_heartbeat(agent)


def test_every_message_lost_once_costs_a_lease_and_nothing_else(
    fleet: Fleet, agent: Agent, scripted: Script
) -> None:
    model = scripted(REST)
    begin_heartbeat(fleet, agent)
    for _ in range(3):
        fleet.messages.clear()
        lose_lease(agent)
        assert fleet.dispatch().lost == 1
        fleet.step()
    fleet.run()
    assert len(model.requests) == 1
    _assert_one_completed_heartbeat(agent)


def test_a_message_under_an_old_lease_is_dropped(fleet: Fleet, agent: Agent, scripted: Script) -> None:
    scripted(REST)
    begin_heartbeat(fleet, agent)
    old = fleet.pop_message()
    lose_lease(agent)
    fleet.dispatch()
    assert not fleet.deliver(old)
    fleet.run()
    _assert_one_completed_heartbeat(agent)


def _expire_call(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        ExternalCall.objects.filter(agent_id=agent.id).update(lease_until=Now() - timedelta(seconds=1))


def test_a_reply_after_a_retried_call_is_charged_and_not_stored(
    fleet: Fleet, agent: Agent, scripted: Script
) -> None:
    def slow(_request: object) -> str:
        # While this worker waits for the model, its leases expire and another worker calls the model again.
        lose_lease(agent)
        _expire_call(agent)
        with captured() as messages:
            dispatch()
            fleet.deliver(messages[0])
        return REST

    model = scripted(slow, REST)
    begin_heartbeat(fleet, agent, steps=1)
    assert not fleet.deliver(fleet.pop_message())
    with tenant_transaction(agent.tenant_id):
        call = ExternalCall.objects.get(agent_id=agent.id)
    assert (call.status, call.reply) == (CallStatus.PENDING, "")
    lose_lease(agent)
    fleet.dispatch()
    fleet.run()
    assert len(model.requests) == 2
    with tenant_transaction(agent.tenant_id):
        assert LedgerEntry.objects.filter(agent_id=agent.id).count() == 2
    _assert_one_completed_heartbeat(agent)


def test_a_call_that_a_worker_still_has_is_left_to_it(fleet: Fleet, agent: Agent, scripted: Script) -> None:
    def slow(_request: object) -> str:
        # The heartbeat's lease expires; the call's does not.
        lose_lease(agent)
        with captured() as messages:
            dispatch()
            for message in messages:
                fleet.deliver(message)
            assert len(messages) == 1
        return REST

    model = scripted(slow)
    run_heartbeat(fleet, agent)
    assert len(model.requests) == 1
    _assert_one_completed_heartbeat(agent)


def test_ten_dispatchers_claim_each_agent_once(
    fleet: Fleet, tenant: Tenant, other_tenant: Tenant, new_agent: Callable[..., Agent]
) -> None:
    agents = [new_agent(owner, name=f"agent {n}") for n in range(6) for owner in (tenant, other_tenant)]
    for agent in agents:
        make_due(agent)

    def dispatch_once() -> list[str]:
        with captured() as messages:
            dispatch()
        return [message.arguments["agent_id"] for message in messages]

    claimed = [agent_id for ids in race(*[dispatch_once] * 10) for agent_id in ids]
    assert sorted(claimed) == sorted(str(agent.id) for agent in agents)


def test_a_tenant_with_many_due_agents_does_not_delay_another(
    fleet: Fleet,
    tenant: Tenant,
    other_tenant: Tenant,
    new_agent: Callable[..., Agent],
    settings: Any,
) -> None:
    settings.ARBOR_CLAIM_BATCH = 4
    settings.ARBOR_TENANT_CLAIM_LIMIT = 2
    for n in range(5):
        make_due(new_agent(tenant, name=f"many {n}"), overdue_by=timedelta(hours=2))
    make_due(new_agent(other_tenant, name="only"))
    fleet.dispatch()
    assert {message.tenant_id for message in fleet.messages} == {tenant.id, other_tenant.id}


def test_due_agents_share_a_batch_while_others_are_queued(
    fleet: Fleet, tenant: Tenant, new_agent: Callable[..., Agent]
) -> None:
    first, second = new_agent(tenant, name="first"), new_agent(tenant, name="second")
    make_due(first, overdue_by=timedelta())
    assert fleet.dispatch().due == 1
    make_due(second, overdue_by=timedelta())
    assert fleet.dispatch().due == 0
    make_due(second, overdue_by=BATCH_DELAY)
    assert fleet.dispatch().due == 1
    fleet.run()
    make_due(first, overdue_by=timedelta())
    assert fleet.dispatch().due == 1


def test_agents_of_a_suspended_tenant_are_not_claimed(fleet: Fleet, tenant: Tenant, agent: Agent) -> None:
    make_due(agent)
    set_status(slug=tenant.slug, status=TenantStatus.SUSPENDED)
    assert fleet.dispatch().due == 0
    with tenant_transaction(tenant.id), pytest.raises(TransitionIllegal, match="acme is suspended"):
        claim_now(agent_id=agent.id)


def test_due_agents_of_a_suspended_tenant_delay_no_other(
    fleet: Fleet, tenant: Tenant, other_tenant: Tenant, new_agent: Callable[..., Agent], settings: Any
) -> None:
    settings.ARBOR_CLAIM_BATCH = 2
    for n in range(3):
        make_due(new_agent(tenant, name=f"many {n}"), overdue_by=timedelta(hours=2))
    set_status(slug=tenant.slug, status=TenantStatus.SUSPENDED)
    only = new_agent(other_tenant, name="only")
    make_due(only)
    fleet.dispatch()
    assert [message.arguments["agent_id"] for message in fleet.messages] == [str(only.id)]


@pytest.mark.parametrize(("attempts", "workers"), [(1, "1 worker was"), (2, "2 workers were")])
def test_a_heartbeat_whose_workers_keep_dying_is_given_up_as_failed(
    attempts: int, workers: str, fleet: Fleet, agent: Agent, scripted: Script, settings: Any
) -> None:
    settings.ARBOR_MAX_ATTEMPTS = attempts
    scripted(REST)
    begin_heartbeat(fleet, agent, steps=2)
    for _ in range(attempts):
        lose_worker(fleet, agent)
    fleet.run()
    (heartbeat,) = heartbeats_of(agent)
    assert heartbeat.status == HeartbeatStatus.FAILED
    assert heartbeat.reason == f"given up after {workers} lost while it ran"
    assert schedule_of(agent).state == ScheduleState.IDLE


def test_a_heartbeat_whose_call_waits_for_a_model_is_not_given_up(
    fleet: Fleet, agent: Agent, scripted: Script, settings: Any
) -> None:
    settings.ARBOR_MAX_ATTEMPTS = 2
    scripted(REST)
    begin_heartbeat(fleet, agent, steps=1)
    for _ in range(4):
        lose_worker(fleet, agent)
    fleet.run()
    _assert_one_completed_heartbeat(agent)


def test_a_failed_call_fails_the_heartbeat_and_changes_no_state(
    fleet: Fleet, agent: Agent, scripted: Script
) -> None:
    scripted(ModelUnavailable("the provider is down"))
    with tenant_transaction(agent.tenant_id):
        before = AgentState.objects.get(agent_id=agent.id)
        remembered = Memory.objects.count()
    run_heartbeat(fleet, agent)
    (heartbeat,) = heartbeats_of(agent)
    assert heartbeat.status == HeartbeatStatus.FAILED
    assert heartbeat.reason == "ModelUnavailable: the provider is down"
    assert (heartbeat.narrative, heartbeat.actions, heartbeat.memory_id, heartbeat.energy_end) == (
        "",
        [],
        None,
        None,
    )
    with tenant_transaction(agent.tenant_id):
        after = AgentState.objects.get(agent_id=agent.id)
        assert (after.energy, after.heartbeats) == (before.energy, before.heartbeats)
        assert Memory.objects.count() == remembered
    assert schedule_of(agent).state == ScheduleState.IDLE


def test_a_fault_in_a_handler_fails_the_heartbeat_and_names_the_node(
    fleet: Fleet, agent: Agent, scripted: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(REST)
    monkeypatch.setattr(records, "narrate", lambda *_, **__: 1 / 0)
    run_heartbeat(fleet, agent)
    (heartbeat,) = heartbeats_of(agent)
    assert heartbeat.status == HeartbeatStatus.FAILED
    assert "ZeroDivisionError" in heartbeat.reason
    assert "node record" in heartbeat.reason
    with tenant_transaction(agent.tenant_id):
        assert AgentState.objects.get(agent_id=agent.id).heartbeats == 0


def test_missed_heartbeats_run_as_one_and_leave_a_skipped_one(
    fleet: Fleet, agent: Agent, scripted: Script
) -> None:
    scripted(REST)
    run_heartbeat(fleet, agent, overdue_by=timedelta(hours=3, minutes=30))
    by_status = {heartbeat.status: heartbeat for heartbeat in heartbeats_of(agent)}
    assert set(by_status) == {HeartbeatStatus.DONE, HeartbeatStatus.SKIPPED}
    assert (
        by_status[HeartbeatStatus.SKIPPED].reason
        == "3 heartbeats fell due before this one could begin; run as one"
    )


def test_pausing_an_agent_skips_its_claimed_heartbeat(fleet: Fleet, agent: Agent, scripted: Script) -> None:
    model = scripted(REST)
    begin_heartbeat(fleet, agent)
    with tenant_transaction(agent.tenant_id):
        pause_agent(agent_id=agent.id, actor="test")
    fleet.run()
    (skipped,) = heartbeats_of(agent)
    assert (skipped.status, skipped.reason) == (HeartbeatStatus.SKIPPED, "the agent is paused")
    assert model.requests == []
    assert schedule_of(agent).state == ScheduleState.OFF


def test_an_agent_paused_during_a_heartbeat_ends_it_and_stays_off(
    fleet: Fleet, agent: Agent, scripted: Script
) -> None:
    scripted(REST)
    begin_heartbeat(fleet, agent, steps=1)
    with tenant_transaction(agent.tenant_id):
        pause_agent(agent_id=agent.id, actor="test")
    fleet.run()
    (heartbeat,) = heartbeats_of(agent)
    assert heartbeat.status == HeartbeatStatus.DONE
    assert schedule_of(agent).state == ScheduleState.OFF


def test_an_agent_paused_during_a_lost_heartbeat_completes_it(
    fleet: Fleet, agent: Agent, scripted: Script
) -> None:
    scripted(REST)
    begin_heartbeat(fleet, agent, steps=2)
    lose_worker(fleet, agent)
    with tenant_transaction(agent.tenant_id):
        pause_agent(agent_id=agent.id, actor="test")
    fleet.run()
    (heartbeat,) = heartbeats_of(agent)
    assert heartbeat.status == HeartbeatStatus.DONE
    assert schedule_of(agent).state == ScheduleState.OFF


def test_invalid_characters_of_a_reply_are_replaced(fleet: Fleet, agent: Agent, scripted: Script) -> None:
    scripted(REST.replace("All is well.", "All is \ud83d well\0."))
    run_heartbeat(fleet, agent)
    (heartbeat,) = heartbeats_of(agent)
    assert (heartbeat.status, heartbeat.reasoning) == (
        HeartbeatStatus.DONE,
        "All is \N{REPLACEMENT CHARACTER} well\N{REPLACEMENT CHARACTER}.",
    )


def test_an_invalid_pipeline_fails_the_heartbeat_with_the_reason(
    fleet: Fleet, agent: Agent, scripted: Script
) -> None:
    scripted(REST)
    with tenant_transaction(agent.tenant_id):
        Agent.objects.filter(id=agent.id).update(pipeline="digraph { a -> b }")
    run_heartbeat(fleet, agent)
    (heartbeat,) = heartbeats_of(agent)
    assert heartbeat.status == HeartbeatStatus.FAILED
    assert heartbeat.reason.startswith("PipelineInvalid")
    assert schedule_of(agent).state == ScheduleState.IDLE


def test_a_second_request_for_a_heartbeat_is_refused(fleet: Fleet, agent: Agent, scripted: Script) -> None:
    scripted(REST)
    fleet.claim(agent)
    with tenant_transaction(agent.tenant_id), pytest.raises(TransitionIllegal, match="is under way already"):
        claim_now(agent_id=agent.id)
    fleet.run()
    (heartbeat,) = heartbeats_of(agent)
    assert (heartbeat.status, heartbeat.trigger) == (HeartbeatStatus.DONE, "operator")
    assert fleet.dispatch().due == 0


def test_a_request_beside_a_pause_names_the_pause(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        HeartbeatSchedule.objects.filter(agent_id=agent.id).update(state=ScheduleState.OFF)
        with pytest.raises(TransitionIllegal, match="paused or stopped meanwhile"):
            claim_now(agent_id=agent.id)
