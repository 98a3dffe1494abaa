"""Effects of contact with people on drives, mood and schedule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from apps.agents.models import Agent, PerceptKind, Trigger
from apps.agents.services.percepts import perceive
from apps.fleet.contact import message_agent
from apps.goals.models import Goal, Intent
from apps.heartbeats.models import HeartbeatStatus
from apps.tenants.scope import tenant_transaction
from tests.integration.heartbeats.beater import Beater, Script
from tests.integration.heartbeats.conftest import REST, beats_of, make_due, schedule_of
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.selves.conftest import set_state, state_of


@pytest.fixture
def content(agent: Agent, scripted: Script, fleet: Fleet) -> Agent:
    """Return an agent that wants nothing, and that has just reflected."""
    scripted(REST, repeat=True)
    with tenant_transaction(agent.tenant_id):
        Intent.objects.filter(agent_id=agent.id).delete()
        Goal.objects.filter(agent_id=agent.id).delete()
    beat(fleet, agent)
    return agent


def beat(fleet: Fleet, agent: Agent) -> str:
    """Run one beat that is due; return its status."""
    make_due(agent)
    fleet.dispatch()
    fleet.run()
    return str(beats_of(agent)[-1].status)


def miss_company(agent: Agent, *, level: float) -> None:
    """Let the agent have been alone until two minutes ago, when it was looked at last."""
    then = datetime.now(UTC) - timedelta(minutes=2)
    lonely = {"level": level, "at": then.isoformat(), "building": True}
    set_state(agent, drives={"states": {"connection": lonely}})


def test_who_misses_company_wakes_and_whom_somebody_has_talked_to_does_not(
    fleet: Fleet, content: Agent
) -> None:
    miss_company(content, level=0.9)
    set_state(content, last_user_contact_at=datetime.now(UTC) - timedelta(minutes=1))
    assert beat(fleet, content) == HeartbeatStatus.SKIPPED
    assert schedule_of(content).next_trigger == Trigger.TIMER

    miss_company(content, level=0.9)
    set_state(content, last_user_contact_at=None)
    assert beat(fleet, content) == HeartbeatStatus.DONE


def test_an_idle_agent_whom_somebody_has_talked_to_is_not_called_by_loneliness(
    fleet: Fleet, content: Agent
) -> None:
    # Just below urgent: half an hour more of silence, and the drive brings the beat forward.
    miss_company(content, level=0.7975)
    assert beat(fleet, content) == HeartbeatStatus.SKIPPED
    assert schedule_of(content).next_trigger == Trigger.DRIVE

    miss_company(content, level=0.7975)
    set_state(content, last_user_contact_at=datetime.now(UTC) - timedelta(minutes=1))
    assert beat(fleet, content) == HeartbeatStatus.SKIPPED
    assert schedule_of(content).next_trigger == Trigger.TIMER


def test_a_person_stirs_the_agent_whatever_else_has_reached_it_before(beater: Beater, agent: Agent) -> None:
    def arousal_after(*kinds: str) -> float:
        set_state(agent, mood={"valence": 0.0, "arousal": 0.6, "at": datetime.now(UTC).isoformat()})
        with tenant_transaction(agent.tenant_id):
            for kind in kinds:
                if kind == PerceptKind.USER_MESSAGE:
                    message_agent(agent_id=agent.id, text="Hello.", actor="test")
                else:
                    perceive(agent_id=agent.id, kind=kind, content="It snows.", actor="test")
        beater.beat(REST)
        return float(state_of(agent).mood["arousal"])

    alone = arousal_after(PerceptKind.ENVIRONMENT)
    spoken_to = arousal_after(PerceptKind.USER_MESSAGE)
    both = arousal_after(PerceptKind.ENVIRONMENT, PerceptKind.USER_MESSAGE)
    assert spoken_to > alone
    assert both == pytest.approx(spoken_to, abs=0.005)
