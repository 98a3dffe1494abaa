"""Schedules: idle heartbeats, active hours, pauses, and heartbeats brought forward."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apps.agents.models import Agent, HeartbeatSchedule, PerceptKind, ScheduleState, Trigger
from apps.agents.services.percepts import perceive
from apps.calls.models import ExternalCall
from apps.goals.models import Goal
from apps.goals.services.goals import create_goal
from apps.heartbeats.models import HeartbeatStatus
from apps.tenants.scope import tenant_transaction
from arbor.errors import Invalid
from arbor.goals.values import GoalState
from tests.integration.heartbeats.batch import shorten
from tests.integration.heartbeats.conftest import (
    begin_heartbeat,
    change_policy,
    heartbeats_of,
    make_due,
    run_heartbeat,
    schedule_of,
    state_of,
)
from tests.integration.heartbeats.fleet import Fleet
from tests.support.database import recorded_statements


def count_calls(agent: Agent) -> int:
    """Count the external calls of the agent."""
    with tenant_transaction(agent.tenant_id):
        return ExternalCall.objects.filter(agent_id=agent.id).count()


def test_an_idle_heartbeat_asks_no_model_and_gives_the_reason(fleet: Fleet, idle_agent: Agent) -> None:
    first = run_heartbeat(fleet, idle_agent)
    assert (first.status, first.mode) == (HeartbeatStatus.DONE, "reflection")
    calls, energy, stale = (
        count_calls(idle_agent),
        state_of(idle_agent).energy,
        state_of(idle_agent).stale_heartbeats,
    )

    second = run_heartbeat(fleet, idle_agent)

    assert second.status == HeartbeatStatus.SKIPPED
    assert second.reason == "idle: nothing waits, and it reflected at the last heartbeat"
    assert state_of(idle_agent).stale_heartbeats == stale + 1
    assert (second.number, second.model, second.energy_start) == (0, "", None)
    assert count_calls(idle_agent) == calls
    assert state_of(idle_agent).energy == energy
    assert state_of(idle_agent).idle_heartbeats == 1
    assert schedule_of(idle_agent).state == ScheduleState.IDLE


def test_an_idle_agent_slows_down_and_reflects_at_intervals(fleet: Fleet, idle_agent: Agent) -> None:
    waits, statuses = [], []
    for _ in range(6):
        heartbeat = run_heartbeat(fleet, idle_agent)
        statuses.append(heartbeat.status)
        waits.append((schedule_of(idle_agent).next_due_at - datetime.now(UTC)) / timedelta(hours=1))
    assert statuses == ["done", "skipped", "skipped", "skipped", "done", "skipped"]
    expected = [1, 1.5, 2.25, 3.375, 1, 1.5]
    assert waits == pytest.approx(expected, rel=0.06)


@pytest.mark.parametrize(("every", "reflections"), [(2, 3), (5, 1)])
def test_an_idle_agent_reflects_as_often_as_is_set(
    every: int, reflections: int, fleet: Fleet, idle_agent: Agent, settings: Any
) -> None:
    settings.ARBOR_REFLECT_EVERY = every
    statuses = [run_heartbeat(fleet, idle_agent).status for _ in range(5)]
    assert statuses.count(HeartbeatStatus.DONE) == reflections


def test_an_idle_agent_does_not_think_again_within_the_pause(
    fleet: Fleet, idle_agent: Agent, settings: Any
) -> None:
    settings.ARBOR_REFLECT_PAUSE, settings.ARBOR_REFLECT_EVERY = timedelta(hours=1), 1
    statuses = [run_heartbeat(fleet, idle_agent).status for _ in range(3)]
    assert statuses == ["done", "skipped", "skipped"]
    assert "nothing waits, and it last thought" in heartbeats_of(idle_agent)[-1].reason


def test_an_idle_heartbeat_takes_few_statements(fleet: Fleet, idle_agent: Agent) -> None:
    run_heartbeat(fleet, idle_agent)
    begin_heartbeat(fleet, idle_agent)
    with recorded_statements(control=True) as sent:
        fleet.run()
    assert heartbeats_of(idle_agent)[-1].status == HeartbeatStatus.SKIPPED
    assert len(sent) <= 9, shorten(sent)


def test_a_percept_ends_the_idleness(fleet: Fleet, idle_agent: Agent) -> None:
    run_heartbeat(fleet, idle_agent)
    assert run_heartbeat(fleet, idle_agent).status == HeartbeatStatus.SKIPPED
    with tenant_transaction(idle_agent.tenant_id):
        perceive(agent_id=idle_agent.id, kind="environment", content="It snows.", actor="test")
    assert run_heartbeat(fleet, idle_agent).status == HeartbeatStatus.DONE
    assert state_of(idle_agent).idle_heartbeats == 0


def test_an_urgent_percept_brings_the_heartbeat_forward(fleet: Fleet, idle_agent: Agent) -> None:
    with tenant_transaction(idle_agent.tenant_id):
        perceive(agent_id=idle_agent.id, kind="environment", content="It snows.", actor="test")
    assert fleet.dispatch().due == 0
    with tenant_transaction(idle_agent.tenant_id):
        percept = perceive(
            agent_id=idle_agent.id,
            kind=PerceptKind.INTERRUPT,
            content="Stop.",
            actor="test",
            detail={"by": "Mia"},
        )
    assert percept.urgent
    assert fleet.dispatch().due == 1
    fleet.run()
    assert heartbeats_of(idle_agent)[-1].trigger == Trigger.EVENT
    assert schedule_of(idle_agent).next_trigger == Trigger.TIMER


def test_an_urgent_percept_during_a_heartbeat_brings_another(fleet: Fleet, idle_agent: Agent) -> None:
    begin_heartbeat(fleet, idle_agent)
    fleet.step()  # the heartbeat waits for its model now
    with tenant_transaction(idle_agent.tenant_id):
        perceive(agent_id=idle_agent.id, kind="interrupt", content="Stop.", actor="test")
    fleet.run()
    assert fleet.dispatch().due == 1
    fleet.run()
    assert [heartbeat.trigger for heartbeat in heartbeats_of(idle_agent)] == [Trigger.TIMER, Trigger.EVENT]


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"kind": "user_message"}, "arbor agent tell"),
        ({"content": " "}, "1 to 8,000 characters"),
        ({"content": "a\0b"}, "NUL character"),
        ({"content": "a\ud800b"}, "surrogate"),
        ({"content": "x" * 8_001}, "got 8,001"),
        ({"detail": {"x": float("nan")}}, "must be JSON"),
        ({"detail": {"x": "y" * 4_000}}, "at most 4,000"),
        ({"detail": {"x": ["a\0b"]}}, "a NUL character"),
        ({"detail": {"a\ud800": 1}}, "a NUL character or half a surrogate pair"),
    ],
)
def test_an_invalid_percept_is_refused(agent: Agent, changes: dict[str, Any], fault: str) -> None:
    fields: dict[str, Any] = {"kind": "environment", "content": "It snows.", **changes}
    with tenant_transaction(agent.tenant_id), pytest.raises(Invalid, match=fault):
        perceive(agent_id=agent.id, actor="test", **fields)


def test_the_detail_of_a_percept_may_have_any_script(agent: Agent) -> None:
    detail = {"place": "река" * 900, "path": r"C:\u0000"}
    with tenant_transaction(agent.tenant_id):
        percept = perceive(
            agent_id=agent.id, kind="environment", content="It rises.", actor="test", detail=detail
        )
        percept.refresh_from_db()
    assert percept.detail == detail


def test_an_agent_outside_its_active_hours_runs_only_for_interrupts(fleet: Fleet, idle_agent: Agent) -> None:
    now = datetime.now(UTC)
    opens = (now + timedelta(hours=3)).replace(second=0, microsecond=0)
    change_policy(idle_agent, active_from=opens.time(), active_until=(opens + timedelta(hours=2)).time())
    night = run_heartbeat(fleet, idle_agent)
    assert night.status == HeartbeatStatus.SKIPPED
    assert night.reason.startswith("idle: outside its active hours, which begin")
    assert opens <= schedule_of(idle_agent).next_due_at
    with tenant_transaction(idle_agent.tenant_id):
        perceive(agent_id=idle_agent.id, kind="interrupt", content="Fire.", actor="test")
    fleet.dispatch()
    fleet.run()
    assert heartbeats_of(idle_agent)[-1].status == HeartbeatStatus.DONE
    assert opens <= schedule_of(idle_agent).next_due_at


def test_an_aspiration_alone_leaves_the_agent_idle(fleet: Fleet, idle_agent: Agent) -> None:
    with tenant_transaction(idle_agent.tenant_id):
        Agent.objects.filter(id=idle_agent.id).update(
            genome={
                "role": "EXPLORER",
                "traits": dict.fromkeys(
                    ("risk_tolerance", "collaboration", "depth_vs_breadth", "quality_vs_speed"), 0.5
                ),
            }
        )
    assert run_heartbeat(fleet, idle_agent).status == HeartbeatStatus.DONE
    with tenant_transaction(idle_agent.tenant_id):
        assert Goal.objects.get(agent_id=idle_agent.id).rule == "role"
    assert run_heartbeat(fleet, idle_agent).reason.startswith("idle: nothing waits")
    with tenant_transaction(idle_agent.tenant_id):
        create_goal(agent_id=idle_agent.id, title="Map the reef", state=GoalState.ACTIVE)
    assert run_heartbeat(fleet, idle_agent).status == HeartbeatStatus.DONE


def test_a_paused_agent_is_not_claimed_before_its_pause_ends(fleet: Fleet, idle_agent: Agent) -> None:
    with tenant_transaction(idle_agent.tenant_id):
        HeartbeatSchedule.objects.filter(agent_id=idle_agent.id).update(
            paused_until=datetime.now(UTC) + timedelta(minutes=5)
        )
    make_due(idle_agent)
    assert fleet.dispatch().due == 0
