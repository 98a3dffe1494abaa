"""Drives, mood, contact and experiences: changed by a heartbeat, and shown in the next prompt."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from apps.agents.models import Agent, PerceptKind, Trigger
from apps.agents.services.percepts import perceive
from apps.fleet.contact import message_agent
from apps.heartbeats.models import HeartbeatStatus
from apps.selves.models import (
    Experience,
    IdentityAspect,
)
from apps.tenants.scope import tenant_transaction
from arbor.selves.drives import Drive, read_drives
from tests.integration.heartbeats.conftest import REST, last_heartbeat, run_heartbeat, schedule_of, state_of
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import HeartbeatRunner, action_of, reply_of
from tests.integration.heartbeats.selves.conftest import send_message, set_state

# --- Drives and mood ---------------------------------------------------------------------------------


def test_an_urgent_drive_is_shown_and_calmed_by_what_satisfies_it(
    heartbeats: HeartbeatRunner, agent: Agent
) -> None:
    long_ago = datetime.now(UTC) - timedelta(hours=20)
    building = {"level": 0.9, "at": long_ago.isoformat(), "building": True}
    set_state(agent, drives={"states": {"coherence": building}})
    prompt = heartbeats.run(
        reply_of(actions=[action_of("reflect", insight="It all fits.", focus="the whole")])
    )
    assert (
        "- coherence (1.00 of 1): something speaks against what you believe. It calms down by: connect"
        in prompt
    )
    now = datetime.now(UTC)
    assert read_drives(state_of(agent).drives, now).level(Drive.COHERENCE, now) == pytest.approx(
        0.8, abs=0.01
    )


def test_calm_drives_are_not_mentioned(heartbeats: HeartbeatRunner) -> None:
    assert "## Drives" not in heartbeats.run(REST)


def test_the_mood_fades_and_is_stored(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    mood = {"valence": 0.8, "arousal": 0.9, "at": (datetime.now(UTC) - timedelta(hours=6)).isoformat()}
    set_state(agent, mood=mood)
    with tenant_transaction(agent.tenant_id):
        IdentityAspect.objects.filter(agent_id=agent.id).delete()
    prompt = heartbeats.run(REST)
    assert "valence +0.40" in prompt
    heartbeat = last_heartbeat(agent)
    assert heartbeat.emotional_valence == pytest.approx(0.46, abs=0.01)
    assert heartbeat.arousal == pytest.approx(0.225, abs=0.01)
    assert state_of(agent).mood["valence"] == heartbeat.emotional_valence


# --- Experiences and lessons -------------------------------------------------------------------------


def test_lessons_from_actions_are_shown_failures_first(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    heartbeats.run(
        reply_of(
            actions=[
                action_of("reflect", insight="Fog comes at dawn.", focus="weather"),
                action_of("connect", from_id=str(agent.id), to_id=str(agent.id), relation="supports"),
                action_of("rest"),
            ]
        )
    )
    with tenant_transaction(agent.tenant_id):
        rows = {experience.action: experience for experience in Experience.objects.filter(agent_id=agent.id)}
    assert rows.keys() == {"reflect", "connect"}
    assert (rows["reflect"].outcome, rows["connect"].outcome) == ("success", "failure")
    assert "Fog comes at dawn." in rows["reflect"].about
    state = state_of(agent)
    assert (state.learned["connect"], state.learned["reflect"]) == ([1, 0], [1, 1])
    prompt = heartbeats.run(REST)
    section = prompt[prompt.index("## What you have learned from acting") :]
    assert section.index("(failure): Avoid doing") < section.index("(success): Do")
    assert "reflect about Fog comes at dawn." in section


def test_success_rates_of_frequent_actions_are_shown(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    set_state(agent, learned={"recall": [10, 9], "connect": [5, 1], "reflect": [1, 1]})
    prompt = heartbeats.run(REST)
    assert "- well: recall (9 of 10)" in prompt
    assert "- badly: connect (1 of 5)" in prompt
    assert "reflect (1 of 1)" not in prompt


def test_heartbeats_without_news_are_counted(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    heartbeats.run(REST)
    heartbeats.run(REST)
    assert state_of(agent).stale_heartbeats == 2
    # A goal that a rule creates for lack of news is no news.
    set_state(agent, stale_heartbeats=40)
    heartbeats.run(REST)
    assert last_heartbeat(agent).goal_changes[0]["by_rule"] is True
    assert state_of(agent).stale_heartbeats == 41
    send_message(agent, "A ship has come in.")
    heartbeats.run(REST)
    assert state_of(agent).stale_heartbeats == 0


@pytest.fixture
def rested_agent(idle_agent: Agent, fleet: Fleet) -> Agent:
    """Return an agent without goals that has just reflected."""
    run_heartbeat(fleet, idle_agent)
    return idle_agent


def set_connection_drive(agent: Agent, *, level: float) -> None:
    """Set the drive for connection as of two minutes ago."""
    then = datetime.now(UTC) - timedelta(minutes=2)
    lonely = {"level": level, "at": then.isoformat(), "building": True}
    set_state(agent, drives={"states": {"connection": lonely}})


def test_a_lonely_agent_stays_idle_after_recent_contact(fleet: Fleet, rested_agent: Agent) -> None:
    set_connection_drive(rested_agent, level=0.9)
    set_state(rested_agent, last_user_contact_at=datetime.now(UTC) - timedelta(minutes=1))
    assert run_heartbeat(fleet, rested_agent).status == HeartbeatStatus.SKIPPED
    assert schedule_of(rested_agent).next_trigger == Trigger.TIMER

    set_connection_drive(rested_agent, level=0.9)
    set_state(rested_agent, last_user_contact_at=None)
    assert run_heartbeat(fleet, rested_agent).status == HeartbeatStatus.DONE


def test_recent_contact_keeps_a_lonely_agent_from_an_early_heartbeat(
    fleet: Fleet, rested_agent: Agent
) -> None:
    # Just below urgent: after half an hour more, the drive brings the heartbeat forward.
    set_connection_drive(rested_agent, level=0.7975)
    assert run_heartbeat(fleet, rested_agent).status == HeartbeatStatus.SKIPPED
    assert schedule_of(rested_agent).next_trigger == Trigger.DRIVE

    set_connection_drive(rested_agent, level=0.7975)
    set_state(rested_agent, last_user_contact_at=datetime.now(UTC) - timedelta(minutes=1))
    assert run_heartbeat(fleet, rested_agent).status == HeartbeatStatus.SKIPPED
    assert schedule_of(rested_agent).next_trigger == Trigger.TIMER


def test_a_users_message_raises_arousal_despite_other_percepts(
    heartbeats: HeartbeatRunner, agent: Agent
) -> None:
    def arousal_after(*kinds: str) -> float:
        set_state(agent, mood={"valence": 0.0, "arousal": 0.6, "at": datetime.now(UTC).isoformat()})
        with tenant_transaction(agent.tenant_id):
            for kind in kinds:
                if kind == PerceptKind.USER_MESSAGE:
                    message_agent(agent_id=agent.id, text="Hello.", actor="test")
                else:
                    perceive(agent_id=agent.id, kind=kind, content="It snows.", actor="test")
        heartbeats.run(REST)
        return float(state_of(agent).mood["arousal"])

    alone = arousal_after(PerceptKind.ENVIRONMENT)
    spoken_to = arousal_after(PerceptKind.USER_MESSAGE)
    both = arousal_after(PerceptKind.ENVIRONMENT, PerceptKind.USER_MESSAGE)
    assert spoken_to > alone
    assert both == pytest.approx(spoken_to, abs=0.005)
