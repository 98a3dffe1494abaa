"""Transitions between the statuses of an agent."""

from __future__ import annotations

import pytest

from arbor.agents.lifecycle import TRANSITIONS, AgentStatus, LifecycleVerb, transition
from arbor.errors import TransitionIllegal

LEGAL = {
    ("created", "start"): "active",
    ("active", "pause"): "paused",
    ("active", "stop"): "stopped",
    ("active", "sleep"): "dormant",
    ("paused", "resume"): "active",
    ("paused", "stop"): "stopped",
    ("stopped", "start"): "active",
    ("dormant", "wake"): "active",
    ("dormant", "stop"): "stopped",
}


@pytest.mark.parametrize("status", AgentStatus)
@pytest.mark.parametrize("verb", LifecycleVerb)
def test_every_pair_of_status_and_verb_is_legal_or_refused(status: AgentStatus, verb: LifecycleVerb) -> None:
    expected = LEGAL.get((status.value, verb.value))
    if expected is None:
        with pytest.raises(
            TransitionIllegal, match=f"cannot {verb} an agent that is {status}; possible now: "
        ):
            transition(status, verb)
    else:
        assert transition(status, verb) is AgentStatus(expected)


def test_a_refusal_names_the_legal_transitions() -> None:
    with pytest.raises(TransitionIllegal) as caught:
        transition(AgentStatus.DORMANT, LifecycleVerb.PAUSE)
    assert str(caught.value) == "cannot pause an agent that is dormant; possible now: wake, stop, destroy"


def test_an_agent_of_any_status_can_become_active_in_one_step() -> None:
    for status in AgentStatus:
        assert status is AgentStatus.ACTIVE or AgentStatus.ACTIVE in TRANSITIONS[status].values()
