"""An agent with goals, and heartbeats whose replies change them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from apps.agents.models import Agent
from apps.goals.models import Goal
from apps.goals.services.goals import create_goal
from apps.heartbeats.models import Heartbeat
from apps.tenants.scope import tenant_transaction
from arbor.goals.values import GoalSource
from tests.factories.authority import allow_also
from tests.integration.heartbeats.conftest import REST, heartbeats_of
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script, reply_of, text_of

type RunReplies = Callable[..., str]


def allow_actions(agent: Agent, *actions: str) -> None:
    """Allow an agent further actions."""
    with tenant_transaction(agent.tenant_id):
        allow_also(agent, *actions)


@pytest.fixture
def run_replies(fleet: Fleet, agent: Agent, scripted: Script) -> RunReplies:
    """Return a function that runs one heartbeat with these replies, and returns the prompt of its first question."""

    def run(*replies: str) -> str:
        model = scripted(*(replies or (REST,)))
        fleet.claim(agent)
        fleet.run()
        return text_of(model.requests[0])

    return run


@pytest.fixture
def goals(agent: Agent) -> tuple[Goal, Goal]:
    """Return the agent's only goals: an active one, and its only part, active too."""
    with tenant_transaction(agent.tenant_id):
        Goal.objects.filter(agent_id=agent.id).delete()
        coast = create_goal(agent_id=agent.id, title="Chart the coast", source=GoalSource.USER_REQUEST)
        reef = create_goal(
            agent_id=agent.id,
            title="Sound the reef",
            source=GoalSource.DERIVED,
            parent_id=coast.id,
            expected_reward=0.8,
        )
    return coast, reef


def last_done(agent: Agent) -> Heartbeat:
    """Check that the agent's latest heartbeat is done, and return it."""
    heartbeat = heartbeats_of(agent)[-1]
    assert heartbeat.status == "done", heartbeat.reason
    return heartbeat


def plan_for(goal: Goal, *steps: str, **fields: Any) -> str:
    """Return a reply that plans these steps towards a goal."""
    intentions = [{"action": "recall", "description": step} for step in steps]
    return reply_of(decompositions=[{"goal_id": str(goal.id), "intentions": intentions, **fields}])
