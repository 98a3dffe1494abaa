"""The inner dialogue: voices that are asked before a hard decision."""

from __future__ import annotations

import json

import pytest

from apps.agents.models import Agent, AgentState
from apps.calls.models import ExternalCall
from apps.fleet.policy import policy_of, set_policy
from apps.goals.models import Goal
from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.heartbeats.services.reports.trace import steps_of
from apps.tenants.scope import tenant_transaction
from arbor.errors import Invalid, ModelRefused
from arbor.goals.values import GoalState
from tests.integration.heartbeats.conftest import replay_of, run_at_once
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script, reply_giving_up, reply_of

DOUBT = json.dumps({"view": "The reef is half charted; giving up wastes it.", "advice": "leave"})
AGREE = json.dumps({"view": "Your users never asked for a chart.", "advice": "carry_out"})


def _run_heartbeat(agent: Agent, fleet: Fleet, *, voices: int) -> Heartbeat:
    if voices:
        with tenant_transaction(agent.tenant_id):
            set_policy(agent_id=agent.id, changes={"voices": voices}, actor="cli:ada")
    return run_at_once(fleet, agent)


def _state_of(goal: Goal) -> str:
    with tenant_transaction(goal.tenant_id):
        return Goal.objects.get(id=goal.id).state


def test_voices_are_asked_before_a_hard_decision(
    agent: Agent, fleet: Fleet, scripted: Script, goal: Goal
) -> None:
    model = scripted(reply_giving_up(goal), DOUBT, AGREE, reply_of(thinking="The skeptic is right."))

    heartbeat = _run_heartbeat(agent, fleet, voices=2)

    assert heartbeat.status == HeartbeatStatus.DONE
    assert _state_of(goal) == GoalState.ACTIVE
    assert heartbeat.reasoning == "The skeptic is right."
    first, skeptic, advocate, final = model.requests
    assert skeptic.system == first.system
    assert f"giving up the goal {goal.id}" in skeptic.messages[-1].content
    assert "the skeptic" in skeptic.messages[-1].content
    assert "the advocate" in advocate.messages[-1].content
    # Each voice judges alone; the final question has all views, as data.
    assert "half charted" not in advocate.messages[-1].content
    assert "skeptic (leave): The reef is half charted" in final.messages[-1].content
    assert "advocate (carry_out): Your users" in final.messages[-1].content
    with tenant_transaction(agent.tenant_id):
        purposes = ExternalCall.objects.order_by("requested_at").values_list("purpose", flat=True)
        assert list(purposes) == ["think", "voice", "voice", "think"]
        lines = [line for step in steps_of(heartbeat) for line in step.changed]
    assert "skeptic: leave: The reef is half charted; giving up wastes it." in lines
    # The reply that was reconsidered is not replayed.
    assert replay_of(heartbeat).is_same


@pytest.mark.parametrize("voices", [0, 4])
def test_an_easy_decision_or_one_without_voices_costs_one_call(
    agent: Agent, fleet: Fleet, scripted: Script, goal: Goal, voices: int
) -> None:
    reply = reply_of(thinking="A quiet day.") if voices else reply_giving_up(goal)
    model = scripted(reply)

    assert _run_heartbeat(agent, fleet, voices=voices).status == HeartbeatStatus.DONE
    assert len(model.requests) == 1
    assert _state_of(goal) == (GoalState.ACTIVE if voices else GoalState.ABANDONED)


def test_a_voice_that_fails_is_left_out(agent: Agent, fleet: Fleet, scripted: Script, goal: Goal) -> None:
    model = scripted(reply_giving_up(goal), "no JSON at all", AGREE, reply_giving_up(goal))

    assert _run_heartbeat(agent, fleet, voices=2).status == HeartbeatStatus.DONE
    assert "skeptic" not in model.requests[3].messages[-1].content
    assert _state_of(goal) == GoalState.ABANDONED


@pytest.mark.parametrize(("answer", "nops"), [(ModelRefused("no"), 0), ("no JSON at all", 1)])
def test_a_hard_decision_without_any_voice_is_not_made(
    agent: Agent, fleet: Fleet, scripted: Script, goal: Goal, answer: ModelRefused | str, nops: int
) -> None:
    scripted(reply_giving_up(goal), answer, answer)

    heartbeat = _run_heartbeat(agent, fleet, voices=2)

    assert heartbeat.status == HeartbeatStatus.FAILED
    assert "no inner voice answered about a hard decision" in heartbeat.reason
    assert _state_of(goal) == GoalState.ACTIVE
    # As after a call or a reply of the heartbeat itself: only unusable replies count towards dormancy.
    with tenant_transaction(agent.tenant_id):
        assert AgentState.objects.get(agent_id=agent.id).nops == nops


@pytest.mark.parametrize("voices", [1, 5])
def test_a_policy_has_two_to_four_voices(agent: Agent, voices: int) -> None:
    with tenant_transaction(agent.tenant_id):
        with pytest.raises(Invalid, match="2 to 4"):
            set_policy(agent_id=agent.id, changes={"voices": voices}, actor="cli:ada")
        assert policy_of(agent.id).voices == 0
