"""Heartbeats that end as failed: by an error in any node, or after several lost workers."""

from __future__ import annotations

from typing import Any

import pytest

import apps.heartbeats.services.legs.runner as runner
from apps.agents.models import Agent, AgentState, ScheduleState
from apps.fleet.policy import set_policy
from apps.goals.services.goals import create_goal
from apps.heartbeats.models import HeartbeatStatus
from apps.tenants.scope import tenant_transaction
from arbor.goals.values import GoalState
from arbor.heartbeat.focus import CONSOLIDATION_EVERY
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.steps import HANDLERS
from arbor.pipeline.engine import Work
from tests.integration.heartbeats.conftest import (
    REST,
    begin_heartbeat,
    heartbeats_of,
    lose_lease,
    lose_worker,
    run_heartbeat,
    schedule_of,
)
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script, action_of, reply_giving_up, reply_of

#: A reply that leads to the node of inquiries.
INQUIRES = reply_of(action_of("inquire_shallow", question="How deep is the reef?"))


@pytest.mark.parametrize("node", sorted(set(HANDLERS) - {"nop"}))
def test_a_fault_in_any_node_fails_the_heartbeat_at_once(
    node: str,
    fleet: Fleet,
    agent: Agent,
    scripted: Script,
    unused_web: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fault(_heartbeat: HeartbeatState, /) -> Work[HeartbeatState]:
        raise ZeroDivisionError("on purpose")

    with tenant_transaction(agent.tenant_id):
        goal = create_goal(agent_id=agent.id, title="Chart the reef", state=GoalState.BACKBURNER)
        set_policy(agent_id=agent.id, changes={"voices": 2}, actor="cli:ada")
    scripted({"work": INQUIRES, "voices": reply_giving_up(goal)}.get(node, REST))
    monkeypatch.setattr(runner, "HANDLERS", {**HANDLERS, node: fault})
    with tenant_transaction(agent.tenant_id):
        # The next heartbeat consolidates, and so visits each node except that of inquiries.
        heartbeats = 0 if node == "work" else CONSOLIDATION_EVERY - 1
        AgentState.objects.filter(agent_id=agent.id).update(heartbeats=heartbeats)
    run_heartbeat(fleet, agent)
    (heartbeat,) = heartbeats_of(agent)
    assert heartbeat.status == HeartbeatStatus.FAILED
    assert "ZeroDivisionError: on purpose" in heartbeat.reason
    assert schedule_of(agent).state == ScheduleState.IDLE


def assert_given_up(agent: Agent) -> None:
    """Check that the agent's only heartbeat was given up, and its schedule goes on."""
    (heartbeat,) = heartbeats_of(agent)
    assert (heartbeat.status, heartbeat.reason) == (
        HeartbeatStatus.FAILED,
        "given up after 2 workers were lost while it ran",
    )
    assert schedule_of(agent).state == ScheduleState.IDLE


def test_a_heartbeat_without_a_row_is_given_up_after_lost_workers(
    fleet: Fleet, agent: Agent, scripted: Script, settings: Any
) -> None:
    settings.ARBOR_MAX_ATTEMPTS = 2
    scripted(REST)
    begin_heartbeat(fleet, agent)
    for _ in range(2):
        # The rows of a worker that dies in its second transaction: a running lease, and no heartbeat.
        lose_worker(fleet, agent)
    fleet.run()
    assert_given_up(agent)


class Killed(BaseException):
    """Simulates SIGKILL: nothing is caught, and the transaction is rolled back."""


def test_a_heartbeat_lost_in_its_first_transaction_is_given_up(
    fleet: Fleet,
    agent: Agent,
    scripted: Script,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings.ARBOR_MAX_ATTEMPTS = 2
    scripted(REST)

    def kill(*_: object, **__: object) -> None:
        raise Killed

    begin_heartbeat(fleet, agent)
    with monkeypatch.context() as patched:
        patched.setattr(runner, "load_batch", kill)
        # The first worker leaves no sign that it began; the later ones are counted.
        for _ in range(3):
            with pytest.raises(Killed):
                fleet.run()
            lose_lease(agent)
            assert fleet.dispatch().lost == 1
    fleet.run()
    assert_given_up(agent)
