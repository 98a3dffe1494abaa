"""Changes by others during a heartbeat: none is lost, none counts twice (`arbor.heartbeat.state_merge`).

When an earlier beat is asked for, or the agent may no longer beat: `test_rhythm` and `test_exactly_once`.
"""

from __future__ import annotations

from typing import Any

import pytest

from apps.agents.models import Agent, AgentState, Percept, Trigger
from apps.agents.services.percepts import perceive
from apps.contacts.services.chat import end_session, say
from apps.fleet.contact import message_agent
from apps.fleet.policy import set_policy
from apps.goals.models import Goal, Intent
from apps.goals.services.goals import create_goal, move_goal
from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.heartbeats.services import calls
from apps.heartbeats.services.calls import execute_call
from apps.heartbeats.services.cycles import allocate
from apps.heartbeats.services.schedule import claim_now
from apps.memories.models import Memory
from apps.selves.services.boundaries import add_boundary
from apps.tenants.scope import tenant_transaction
from arbor.goals.values import GoalState
from arbor.heartbeat.focus import CONSOLIDATION_EVERY
from arbor.models.ports import ScriptedModel
from arbor.selves.boundaries import BoundaryResponse, BoundaryType, NewBoundary
from tests.integration.chat.conftest import answering, begin
from tests.integration.heartbeats.beater import Script, action_of, memory_of, reply_of
from tests.integration.heartbeats.conftest import REST, beats_of
from tests.integration.heartbeats.fleet import Fleet

RECALL = action_of("recall", query="Who keeps the lighthouse?")


class Underway:
    """A beat that waits for its model, so that something can happen before it goes on."""

    def __init__(self, fleet: Fleet, agent: Agent, scripted: Script) -> None:
        self._fleet, self.agent, self._scripted = fleet, agent, scripted

    def begin(self, *replies: str, trigger: Trigger = Trigger.OPERATOR) -> ScriptedModel:
        """Let a beat begin; it waits for the first of these replies then."""
        model = self._scripted(*replies)
        with tenant_transaction(self.agent.tenant_id):
            claim_now(agent_id=self.agent.id, trigger=trigger)
        self._fleet.step()
        return model

    def go_on(self) -> None:
        """Answer the question that it waits for, and walk it to the next one or to its end."""
        self._fleet.step()
        self._fleet.step()

    def end(self) -> Heartbeat:
        """Let the beat end, and return it."""
        self._fleet.run()
        beat = beats_of(self.agent)[-1]
        assert beat.status == HeartbeatStatus.DONE, beat.reason
        return beat

    def change(self, **columns: Any) -> None:
        """Change the agent's state, as a person does."""
        with tenant_transaction(self.agent.tenant_id):
            AgentState.objects.filter(agent_id=self.agent.id).update(**columns)

    @property
    def state(self) -> AgentState:
        """Return the agent's state."""
        with tenant_transaction(self.agent.tenant_id):
            return AgentState.objects.get(agent_id=self.agent.id)


@pytest.fixture
def underway(fleet: Fleet, agent: Agent, scripted: Script) -> Underway:
    """Return what begins and ends a beat of the agent."""
    return Underway(fleet, agent, scripted)


def talk(agent: Agent, text: str = "How is the tide?", person: str = "cli:nora") -> str:
    """Talk to the agent; return the id of the conversation."""
    session_id = begin(agent, person).id
    say(tenant_id=agent.tenant_id, session_id=session_id, text=text, execute=execute_call)
    return str(session_id)


# --- A conversation ------------------------------------------------------------------------------------


def test_what_a_conversation_brought_to_mind_comes_after_the_beats_own(underway: Underway) -> None:
    underway.change(working_memory={"version": 3, "thoughts": [], "concerns": ["the gauge"], "talked": 3})
    underway.begin(
        answering("It rises.", thinking="She asks about the tide."),
        reply_of(thinking="I look at the sea.", concerns=["the wind"]),
    )
    session_id = talk(underway.agent)
    underway.end()

    memory = underway.state.working_memory
    assert (memory["current_human"], memory["current_conversation"]) == ("nora", session_id)
    assert [item["text"] for item in memory["thoughts"]] == ["I look at the sea.", "She asks about the tide."]
    assert memory["concerns"] == ["the gauge", "the wind"]
    assert memory["talked"] == 4


def test_a_conversation_that_ends_while_it_beats_is_over(underway: Underway, scripted: Script) -> None:
    scripted(answering("It rises."))
    talk(underway.agent)
    underway.begin(REST)
    with tenant_transaction(underway.agent.tenant_id):
        end_session(session_id=begin(underway.agent).id)
    underway.end()
    memory = underway.state.working_memory
    assert (memory["current_human"], memory["current_conversation"]) == (None, None)


def test_talk_while_the_memory_is_tended_counts_from_there(underway: Underway) -> None:
    underway.change(working_memory={"version": 3, "talked": 12}, beats=CONSOLIDATION_EVERY - 1, stale_beats=4)
    underway.begin(answering("It rises."), REST)
    talk(underway.agent)
    beat = underway.end()
    assert beat.mode == "consolidation"
    assert underway.state.working_memory["talked"] == 1
    # It met something new in the conversation.
    assert underway.state.stale_beats == 0


# --- Energy, ticks, bonus actions ----------------------------------------------------------------------


def test_energy_that_a_person_gives_or_takes_while_it_beats_counts(underway: Underway) -> None:
    underway.change(energy=4.0)
    underway.begin(reply_of(actions=[action_of("remember", content="The reef is red.")]))
    underway.change(energy=9.0)
    beat = underway.end()
    spent = beat.actions[0]["cost"]
    # Ten came back, as when the beat began.
    assert (beat.energy_start, beat.energy_end) == (14.0, 14.0 - spent)
    assert underway.state.energy == 14.0 - spent + 5.0


@pytest.mark.parametrize("given_in", [(0,), (1,), (2,), (0, 1, 2)])
def test_energy_given_at_any_turn_of_a_beat_counts_once(
    underway: Underway, given_in: tuple[int, ...]
) -> None:
    memory_of(underway.agent, "The lighthouse keeper is called Ines.")
    underway.change(energy=0.0)
    underway.begin(reply_of(actions=[RECALL]), reply_of(actions=[RECALL]), REST)
    for turn in range(3):
        if turn in given_in:
            underway.change(energy=underway.state.energy + 1.5)
        if turn < 2:
            underway.go_on()
    beat = underway.end()

    assert (beat.turns, beat.energy_start, beat.energy_end) == (3, 10.0, 8.0)
    assert underway.state.energy == 8.0 + 1.5 * len(given_in)


@pytest.mark.parametrize(("ticks", "left"), [(50, 49), (5, 4), (0, 0)])
def test_ticks_that_are_allocated_while_it_beats_are_not_lost(
    underway: Underway, ticks: int, left: int
) -> None:
    underway.change(ticks_left=10)
    underway.begin(
        reply_of(actions=[action_of("remember", content="The reef is red.")]), trigger=Trigger.CYCLE
    )
    with tenant_transaction(underway.agent.tenant_id):
        allocate(agent_id=underway.agent.id, ticks=ticks, actor="test")
    beat = underway.end()
    assert (beat.energy_unit, beat.energy_start, beat.energy_end) == ("ticks", 10.0, 9.0)
    assert underway.state.ticks_left == left


def test_ticks_that_are_allocated_replace_those_of_a_new_cycle(underway: Underway) -> None:
    with tenant_transaction(underway.agent.tenant_id):
        set_policy(agent_id=underway.agent.id, changes={"budget": "ticks"}, actor="test")
    underway.begin(reply_of(actions=[action_of("remember", content="The reef is red.")]))
    with tenant_transaction(underway.agent.tenant_id):
        allocate(agent_id=underway.agent.id, ticks=10, actor="test")
    beat = underway.end()
    assert (beat.energy_unit, beat.energy_start, beat.energy_end) == ("ticks", 64.0, 63.0)
    assert underway.state.ticks_left == 9


def test_a_heartbeat_of_a_cycle_has_the_ticks_that_are_left(underway: Underway) -> None:
    underway.change(ticks_left=0)
    underway.begin(
        reply_of(actions=[action_of("remember", content="The reef is red.")]), trigger=Trigger.CYCLE
    )
    beat = underway.end()
    assert (beat.energy_start, beat.energy_end) == (0.0, 0.0)
    assert underway.state.ticks_left == 0


def test_bonus_actions_that_are_given_while_it_beats_are_not_lost(underway: Underway) -> None:
    with tenant_transaction(underway.agent.tenant_id):
        set_policy(agent_id=underway.agent.id, changes={"budget": "actions"}, actor="test")
    rests = [action_of("rest")] * 2
    underway.begin(reply_of(actions=rests))
    underway.change(bonus_actions=2)
    underway.end()
    assert underway.state.bonus_actions == 3


# --- Percepts ------------------------------------------------------------------------------------------


def test_what_reaches_it_while_it_beats_waits_for_the_next_beat(underway: Underway) -> None:
    agent = underway.agent

    def reach(text: str) -> None:
        with tenant_transaction(agent.tenant_id):
            message_agent(agent_id=agent.id, text=text, actor="test")
            perceive(agent_id=agent.id, kind="environment", content=f"{text} It snows.", actor="test")

    reach("Before.")
    model = underway.begin(REST)
    reach("Meanwhile.")
    first = underway.end()

    with tenant_transaction(agent.tenant_id):
        heard = dict(Percept.objects.filter(agent_id=agent.id).values_list("content", "heartbeat_id"))
    assert heard == {
        "Before.": first.id,
        "Before. It snows.": first.id,
        "Meanwhile.": None,
        "Meanwhile. It snows.": None,
    }
    assert "Meanwhile." not in model.requests[0].messages[0].content

    following = underway.begin(REST)
    second = underway.end()
    assert "Meanwhile. It snows." in following.requests[0].messages[0].content
    with tenant_transaction(agent.tenant_id):
        late = Percept.objects.filter(agent_id=agent.id, content__startswith="Meanwhile")
        assert set(late.values_list("heartbeat_id", flat=True)) == {second.id}


# --- Goals ---------------------------------------------------------------------------------------------


def test_a_goal_that_a_person_closes_while_it_beats_stays_closed(underway: Underway, goal: Goal) -> None:
    updates = [{"goal_id": str(goal.id), "progress": 0.5, "note": "half"}]
    underway.begin(reply_of(goal_updates=updates))
    with tenant_transaction(goal.tenant_id):
        move_goal(goal_id=goal.id, to=GoalState.ABANDONED, reason="the reef is gone")
    beat = underway.end()

    with tenant_transaction(goal.tenant_id):
        goal.refresh_from_db()
    assert (goal.state, goal.fraction, goal.effort) == (GoalState.ABANDONED, 0.0, 0)
    assert [item["path"] for item in beat.dropped] == ["goal_updates[0]"]
    assert [item["kind"] for item in beat.goal_changes] == ["refused"]


def test_goals_that_a_person_adds_while_it_beats_count_with_its_own(underway: Underway, goal: Goal) -> None:
    underway.begin(
        reply_of(new_goals=[{"title": "Count the lamps"}, {"title": "Sound the bar"}]),
    )
    with tenant_transaction(goal.tenant_id):
        create_goal(agent_id=goal.agent_id, title="Count the lamps", state=GoalState.ACTIVE)
    beat = underway.end()

    with tenant_transaction(goal.tenant_id):
        titles = sorted(Goal.objects.filter(agent_id=goal.agent_id).values_list("title", flat=True))
    assert titles == ["Chart the reef", "Count the lamps", "Sound the bar"]
    assert [item["path"] for item in beat.dropped] == ["new_goals[0]"]


def test_a_step_that_a_person_ends_while_it_beats_is_not_tried(underway: Underway, goal: Goal) -> None:
    with tenant_transaction(goal.tenant_id):
        intent = Intent.objects.create(
            tenant_id=goal.tenant_id,
            agent_id=goal.agent_id,
            goal=goal,
            action="remember",
            description="what the pilots said",
        )
    underway.begin(reply_of(actions=[action_of("remember", str(intent.id), content="Twelve fathoms.")]))
    with tenant_transaction(goal.tenant_id):
        move_goal(goal_id=goal.id, to=GoalState.ABANDONED, reason="the reef is gone")
    beat = underway.end()

    with tenant_transaction(goal.tenant_id):
        intent.refresh_from_db()
    assert (intent.status, intent.attempts, intent.locked_by) == ("abandoned", 0, None)
    # What it did is done.
    assert beat.actions[0]["outcome"] == "success"
    assert [item["path"] for item in beat.dropped] == ["actions[0].intent_id"]


# --- What holds until the beat ends --------------------------------------------------------------------


def test_a_policy_that_is_changed_while_it_beats_holds_from_the_next_one(underway: Underway) -> None:
    acts = reply_of(actions=[action_of("remember", content="The reef is red.")])
    underway.change(energy=10.0)
    underway.begin(acts)
    with tenant_transaction(underway.agent.tenant_id):
        set_policy(agent_id=underway.agent.id, changes={"budget": "actions"}, actor="test")
    beat = underway.end()
    assert (beat.energy_unit, beat.energy_end) == ("energy", 20.0 - beat.actions[0]["cost"])
    assert underway.state.energy == beat.energy_end

    underway.begin(reply_of(actions=[action_of("remember", content="The bar is dry.")]))
    beat = underway.end()
    assert (beat.energy_unit, beat.energy_start, beat.energy_end) == ("actions", 4.0, 3.0)


def test_a_boundary_that_is_added_while_it_beats_holds_from_the_next_one(underway: Underway) -> None:
    agent = underway.agent
    underway.begin(reply_of(memory_notes=[{"text": "The gossip of the quay."}]))
    boundary = NewBoundary(
        name="no_gossip",
        type=BoundaryType.ETHICAL,
        response=BoundaryResponse.REFUSE,
        description="I do not gossip.",
        patterns=["gossip"],
    )
    add_boundary(tenant_id=agent.tenant_id, agent_id=agent.id, boundary=boundary, actor="test")
    assert underway.end().dropped == []
    with tenant_transaction(agent.tenant_id):
        assert Memory.objects.filter(agent_id=agent.id, content="The gossip of the quay.").exists()

    underway.begin(reply_of(memory_notes=[{"text": "More gossip of the quay."}]))
    assert [item["path"] for item in underway.end().dropped] == ["memory_notes[0]"]


def test_a_model_that_is_changed_while_it_beats_is_asked_from_the_next_one(
    underway: Underway, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    memory_of(underway.agent, "The lighthouse keeper is called Ines.")
    model = underway.begin(reply_of(actions=[RECALL]), REST, REST)

    def model_for(handle: str) -> ScriptedModel:
        asked.append(handle)
        return model

    monkeypatch.setattr(calls, "model_for", model_for)
    with tenant_transaction(underway.agent.tenant_id):
        Agent.objects.filter(id=underway.agent.id).update(model="openai/other")
    beat = underway.end()
    assert (beat.turns, beat.model) == (2, model.handle)
    assert asked == [model.handle] * 2


# --- The beat's alone ----------------------------------------------------------------------------------


def test_what_only_beats_change_is_overwritten(underway: Underway) -> None:
    underway.begin(REST)
    underway.change(
        learned={"recall": [9, 9]}, idle_beats=7, beats=40, nops=3, notices=[{"kind": "loop", "text": "x"}]
    )
    underway.end()
    state = underway.state
    assert (state.idle_beats, state.beats, state.nops) == (0, 1, 0)
    assert state.learned == {"rest": [1, 1]}
    assert [item["kind"] for item in state.notices] == []
