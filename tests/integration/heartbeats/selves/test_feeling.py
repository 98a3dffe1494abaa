"""Drives, mood and experiences: changes by a heartbeat, and their place in the next situation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from apps.agents.models import Agent
from apps.selves.models import (
    Experience,
    IdentityAspect,
)
from apps.tenants.scope import tenant_transaction
from arbor.selves.drives import Drive, read_drives
from tests.integration.heartbeats.beater import Beater, action_of, reply_of
from tests.integration.heartbeats.conftest import REST, last_of
from tests.integration.heartbeats.selves.conftest import set_state, state_of, tell

# --- Drives and mood ---------------------------------------------------------------------------------


def test_an_urgent_drive_is_felt_and_what_satisfies_it_calms_it(beater: Beater, agent: Agent) -> None:
    long_ago = datetime.now(UTC) - timedelta(hours=20)
    building = {"level": 0.9, "at": long_ago.isoformat(), "building": True}
    set_state(agent, drives={"states": {"coherence": building}})
    prompt = beater.beat(reply_of(actions=[action_of("reflect", insight="It all fits.", focus="the whole")]))
    assert (
        "- coherence (1.00 of 1): something speaks against what you believe. It calms down by: connect"
        in prompt
    )
    now = datetime.now(UTC)
    assert read_drives(state_of(agent).drives, now).level(Drive.COHERENCE, now) == pytest.approx(
        0.8, abs=0.01
    )


def test_calm_drives_are_not_mentioned(beater: Beater) -> None:
    assert "## Drives" not in beater.beat(REST)


def test_the_mood_moves_is_kept_and_fades(beater: Beater, agent: Agent) -> None:
    mood = {"valence": 0.8, "arousal": 0.9, "at": (datetime.now(UTC) - timedelta(hours=6)).isoformat()}
    set_state(agent, mood=mood)
    with tenant_transaction(agent.tenant_id):
        IdentityAspect.objects.filter(agent_id=agent.id).delete()
    prompt = beater.beat(REST)
    assert "valence +0.40" in prompt
    beat = last_of(agent)
    assert beat.emotional_valence == pytest.approx(0.46, abs=0.01)
    assert beat.arousal == pytest.approx(0.225, abs=0.01)
    assert state_of(agent).mood["valence"] == beat.emotional_valence


# --- Experiences and what is learned -----------------------------------------------------------------


def test_what_acting_taught_is_stored_and_shown_failures_first(beater: Beater, agent: Agent) -> None:
    beater.beat(
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
    prompt = beater.beat(REST)
    section = prompt[prompt.index("## What you have learned from acting") :]
    assert section.index("(failure): Avoid doing") < section.index("(success): Do")
    assert "reflect about Fog comes at dawn." in section


def test_what_it_does_well_and_badly_is_shown(beater: Beater, agent: Agent) -> None:
    set_state(agent, learned={"recall": [10, 9], "connect": [5, 1], "reflect": [1, 1]})
    prompt = beater.beat(REST)
    assert "- well: recall (9 of 10)" in prompt
    assert "- badly: connect (1 of 5)" in prompt
    assert "reflect (1 of 1)" not in prompt


def test_beats_without_anything_new_are_counted(beater: Beater, agent: Agent) -> None:
    beater.beat(REST)
    beater.beat(REST)
    assert state_of(agent).stale_beats == 2
    # A goal that a rule makes, for nothing is new, is nothing new.
    set_state(agent, stale_beats=40)
    beater.beat(REST)
    assert last_of(agent).goal_changes[0]["by_rule"] is True
    assert state_of(agent).stale_beats == 41
    tell(agent, "A ship has come in.")
    beater.beat(REST)
    assert state_of(agent).stale_beats == 0
