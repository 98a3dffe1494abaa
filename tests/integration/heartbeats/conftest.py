"""Fixtures of active agents and scripted models."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import connections

import apps.heartbeats.services.legs.runner as runner
from apps.agents.models import Agent, AgentState, HeartbeatSchedule
from apps.fleet.creation import create_agent
from apps.fleet.lifecycle import start_agent
from apps.fleet.policy import set_policy
from apps.goals.models import Goal, Intent
from apps.goals.services.goals import create_goal
from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.heartbeats.services.calls import calls
from apps.heartbeats.services.reports.replay import read_recorded_heartbeat
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.goals.values import GoalState
from arbor.heartbeat.replay import Replay, replay
from arbor.models.ports import ScriptedModel, ScriptLine
from arbor.runtime import AgentRuntime
from config.runtime import open_runtime
from tests.integration.heartbeats.fleet import Fleet, a_fleet
from tests.integration.heartbeats.heartbeat_runner import HeartbeatRunner, Script

#: A reply whose only action is to rest.
REST = json.dumps(
    {
        "thinking": "All is well.",
        "actions": [{"action": "rest", "params": {}}],
        "memory_notes": [],
        "goal_updates": [],
    }
)


@pytest.fixture
def fleet(database: None) -> Iterator[Fleet]:
    """Return a fleet whose messages wait for the test."""
    with a_fleet() as new_fleet:
        yield new_fleet


@pytest.fixture
def new_agent(database: None, fleet: Fleet, templates: None) -> Callable[..., Agent]:
    """Return a function that creates active agents."""

    def make(tenant: Tenant, name: str = "Ada", template: str = "Researcher", **options: Any) -> Agent:
        with tenant_transaction(tenant.id):
            agent = create_agent(
                name=name, template_name=template, actor="test", interval=timedelta(hours=1), **options
            )
            start_agent(agent_id=agent.id, actor="test")
        fleet.messages.clear()
        return agent

    return make


@pytest.fixture
def agent(tenant: Tenant, new_agent: Callable[..., Agent]) -> Agent:
    """Return an active agent that asks the default model."""
    return new_agent(tenant)


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Script:
    """Return a function that replaces each model by a script."""

    def script(*lines: ScriptLine, repeat: bool = False) -> ScriptedModel:
        model = ScriptedModel(*lines, repeat=repeat)
        monkeypatch.setattr(calls, "model_for", lambda _handle: model)
        monkeypatch.setattr(settings, "ARBOR_DEFAULT_MODEL", model.handle)
        return model

    return script


@pytest.fixture
def heartbeats(fleet: Fleet, agent: Agent, scripted: Script) -> HeartbeatRunner:
    """Return the runner of the agent's heartbeats."""
    return HeartbeatRunner(fleet, agent, scripted)


@pytest.fixture
def goal(agent: Agent) -> Goal:
    """Return an active goal of the agent, its only one."""
    with tenant_transaction(agent.tenant_id):
        Goal.objects.filter(agent_id=agent.id).delete()
        return create_goal(agent_id=agent.id, title="Chart the reef", state=GoalState.ACTIVE)


@pytest.fixture
def idle_agent(agent: Agent, scripted: Script, monkeypatch: pytest.MonkeyPatch) -> Agent:
    """Return an agent without goals, whose scripted model rests; tests do not wait for its next thought."""
    monkeypatch.setattr(settings, "ARBOR_REFLECT_PAUSE", timedelta(0))
    scripted(REST, repeat=True)
    with tenant_transaction(agent.tenant_id):
        Intent.objects.filter(agent_id=agent.id).delete()
        Goal.objects.filter(agent_id=agent.id).delete()
    return agent


@pytest.fixture
def runtime(tenant: Tenant, agent: Agent) -> AgentRuntime:
    """Return the tenant's runtime, as a program opens it."""
    return open_runtime(tenant=tenant.slug, actor="program:test")


@pytest.fixture
def unused_web(monkeypatch: pytest.MonkeyPatch) -> None:
    """Permit inquiries in a web that no test calls."""
    monkeypatch.setattr(settings, "ARBOR_SEARCH_URL", "http://search.invalid")
    monkeypatch.setattr(settings, "ARBOR_WEB_ALLOW", ["*"])


@pytest.fixture
def no_leg_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the time limit of a leg, so that a batch is never cut on a slow machine."""
    monkeypatch.setattr(runner, "LEG_MS", 1e9)


def make_due(agent: Agent, *, overdue_by: timedelta = timedelta(seconds=1)) -> None:
    """Make the agent due."""
    _update_schedule(agent, f"next_due_at = now() - interval '{overdue_by.total_seconds()} seconds'")


def begin_heartbeat(
    fleet: Fleet, agent: Agent, *, steps: int = 0, overdue_by: timedelta = timedelta(seconds=1)
) -> None:
    """Make the agent due, dispatch it, and deliver this number of messages."""
    make_due(agent, overdue_by=overdue_by)
    fleet.dispatch()
    for _ in range(steps):
        fleet.step()


def run_heartbeat(fleet: Fleet, agent: Agent, *, overdue_by: timedelta = timedelta(seconds=1)) -> Heartbeat:
    """Make the agent due, run its heartbeat, and return it."""
    begin_heartbeat(fleet, agent, overdue_by=overdue_by)
    fleet.run()
    return last_heartbeat(agent)


def run_at_once(fleet: Fleet, agent: Agent) -> Heartbeat:
    """Claim the agent, whether or not it is due, run its heartbeat, and return it."""
    fleet.claim(agent)
    fleet.run()
    return last_heartbeat(agent)


def lose_lease(agent: Agent) -> None:
    """Let the lease on the agent's heartbeat expire, as after the loss of its worker."""
    _update_schedule(agent, "lease_until = now() - interval '1 second'")


def lose_worker(fleet: Fleet, agent: Agent) -> None:
    """Lose the messages and the lease of a running heartbeat, and dispatch it again."""
    fleet.messages.clear()
    _update_schedule(agent, "state = 'running'")
    lose_lease(agent)
    assert fleet.dispatch().lost == 1


def change_policy(agent: Agent, **changes: Any) -> None:
    """Change the agent's policy."""
    with tenant_transaction(agent.tenant_id):
        set_policy(agent_id=agent.id, changes=changes, actor="test")


def _update_schedule(agent: Agent, change: str) -> None:
    with connections["ops"].cursor() as cursor:
        cursor.execute(f"UPDATE heartbeats_heartbeatschedule SET {change} WHERE agent_id = %s", [agent.id])


def schedule_of(agent: Agent) -> HeartbeatSchedule:
    """Return the agent's schedule."""
    with tenant_transaction(agent.tenant_id):
        return HeartbeatSchedule.objects.get(agent_id=agent.id)


def heartbeats_of(agent: Agent) -> list[Heartbeat]:
    """Return the agent's heartbeats, oldest first."""
    with tenant_transaction(agent.tenant_id):
        return list(Heartbeat.objects.filter(agent_id=agent.id).order_by("started_at"))


def state_of(agent: Agent) -> AgentState:
    """Return the agent's state."""
    with tenant_transaction(agent.tenant_id):
        return AgentState.objects.get(agent_id=agent.id)


def last_heartbeat(agent: Agent) -> Heartbeat:
    """Return the agent's latest heartbeat."""
    return heartbeats_of(agent)[-1]


def first_action(agent: Agent) -> dict[str, Any]:
    """Check that the agent's latest heartbeat is done, and return its first action."""
    last = last_heartbeat(agent)
    assert last.status == HeartbeatStatus.DONE, last.reason
    action: dict[str, Any] = last.actions[0]
    return action


def replay_of(heartbeat: Heartbeat) -> Replay:
    """Decide the recorded heartbeat again, and return the result."""
    return replay(read_recorded_heartbeat(heartbeat_id=heartbeat.id, tenant_id=heartbeat.tenant_id).heartbeat)
