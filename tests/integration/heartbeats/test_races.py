"""Concurrent operations on one agent: its heartbeat happens once, in either order."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from apps.agents.models import Agent, ScheduleState
from apps.fleet.administration import resume_tenant, suspend_tenant
from apps.heartbeats.models import HeartbeatStatus
from apps.heartbeats.services.schedule import dispatch
from apps.queues import TaskMessage, captured
from apps.tenants.models import Tenant
from tests.integration.heartbeats.conftest import (
    REST,
    begin_heartbeat,
    heartbeats_of,
    lose_lease,
    run_heartbeat,
    schedule_of,
)
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script
from tests.support.races import race

type Operation = Callable[[], list[TaskMessage]]


def with_messages(operation: Callable[[], object]) -> Operation:
    """Return the operation with the messages that it publishes as its result: a thread has a broker of its own."""

    def run() -> list[TaskMessage]:
        with captured() as messages:
            operation()
            return list(messages)

    return run


def run_race(fleet: Fleet, first: Operation, second: Operation, *, reverse: bool) -> None:
    """Run two operations at once, started in either order; add their messages to the fleet."""
    operations = [second, first] if reverse else [first, second]
    for messages in race(*operations):
        fleet.messages += messages


def recover(fleet: Fleet, agent: Agent) -> None:
    """Run the remaining messages, and once more after the lease of a lost worker has expired."""
    fleet.run()
    if schedule_of(agent).state != ScheduleState.IDLE:
        lose_lease(agent)
        fleet.dispatch()
        fleet.run()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("steps_before", [0, 1, 2])
def test_a_lease_that_expires_during_a_commit_doubles_no_heartbeat(
    fleet: Fleet, agent: Agent, scripted: Script, steps_before: int, reverse: bool
) -> None:
    scripted(REST, repeat=True)
    begin_heartbeat(fleet, agent)
    for _ in range(steps_before):
        fleet.step()
    message = fleet.pop_message()

    def expire() -> None:
        lose_lease(agent)
        dispatch()

    run_race(fleet, with_messages(lambda: fleet.deliver(message)), with_messages(expire), reverse=reverse)
    recover(fleet, agent)
    (heartbeat,) = heartbeats_of(agent)
    assert heartbeat.status == HeartbeatStatus.DONE
    assert schedule_of(agent).state == ScheduleState.IDLE


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("steps_before", [0, 1, 2])
def test_a_suspension_neither_loses_nor_doubles_a_heartbeat(
    fleet: Fleet, tenant: Tenant, agent: Agent, scripted: Script, steps_before: int, reverse: bool
) -> None:
    scripted(REST, repeat=True)
    begin_heartbeat(fleet, agent)
    for _ in range(steps_before):
        fleet.step()
    message = fleet.pop_message()

    run_race(
        fleet,
        with_messages(lambda: fleet.deliver(message)),
        with_messages(lambda: suspend_tenant(slug=tenant.slug, actor="user:ada")),
        reverse=reverse,
    )
    fleet.run()
    completed = [heartbeat for heartbeat in heartbeats_of(agent) if heartbeat.status == HeartbeatStatus.DONE]
    assert len(completed) <= 1
    assert fleet.dispatch().due == 0

    resume_tenant(slug=tenant.slug, actor="user:ada")
    if not completed:
        recover(fleet, agent)
        if not heartbeats_of(agent):
            run_heartbeat(fleet, agent)
    assert [heartbeat.status for heartbeat in heartbeats_of(agent)] == [HeartbeatStatus.DONE]
