"""Changes by others during a heartbeat: none is lost, none counts twice (`arbor.heartbeat.state_merge`).

`test_schedule` and `test_exactly_once` have the changes of schedules and statuses.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps.agents.models import Agent, AgentState, Percept, Trigger
from apps.agents.services.percepts import perceive
from apps.contacts.services.chat import end_session, exchange_turns
from apps.fleet.contact import message_agent
from apps.fleet.policy import set_policy
from apps.goals.models import Goal, Intent
from apps.goals.services.goals import create_goal, move_goal
from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.heartbeats.services.calls import calls
from apps.heartbeats.services.calls.calls import execute_call
from apps.heartbeats.services.inline import allocate
from apps.memories.models import Memory
from apps.selves.services.boundaries import add_boundary
from apps.tenants.scope import tenant_transaction
from arbor.goals.values import GoalState
from arbor.heartbeat.focus import CONSOLIDATION_EVERY
from arbor.models.ports import ScriptedModel
from arbor.selves.boundaries import BoundaryResponse, BoundaryType, NewBoundary
from tests.integration.chat.conftest import model_answer, open_chat
from tests.integration.heartbeats.conftest import REST, heartbeats_of, state_of
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script, action_of, reply_of, store_memory

RECALL = action_of("recall", query="Who keeps the lighthouse?")
#: A reply with an action that costs energy.
REMEMBER = reply_of(actions=[action_of("remember", content="The reef is red.")])


class PendingHeartbeat:
    """A heartbeat that waits for its model, so that a test can change rows before it resumes."""

    def __init__(self, fleet: Fleet, agent: Agent, scripted: Script) -> None:
        self._fleet, self.agent, self._scripted = fleet, agent, scripted

    def start(self, *replies: str, trigger: Trigger = Trigger.OPERATOR) -> ScriptedModel:
        """Start a heartbeat, which then waits for the first of these replies."""
        model = self._scripted(*replies)
        self._fleet.claim(self.agent, trigger=trigger)
        self._fleet.step()
        return model

    def resume(self) -> None:
        """Execute the pending call, and run the heartbeat to its next call or to its end."""
        self._fleet.step()
        self._fleet.step()

    def finish(self) -> Heartbeat:
        """Run the heartbeat to its end, and return it."""
        self._fleet.run()
        heartbeat = heartbeats_of(self.agent)[-1]
        assert heartbeat.status == HeartbeatStatus.DONE, heartbeat.reason
        return heartbeat

    def change_state(self, **columns: Any) -> None:
        """Change the agent's state, as a person does."""
        with tenant_transaction(self.agent.tenant_id):
            AgentState.objects.filter(agent_id=self.agent.id).update(**columns)

    @property
    def state(self) -> AgentState:
        """Return the agent's state."""
        return state_of(self.agent)


@pytest.fixture
def pending(fleet: Fleet, agent: Agent, scripted: Script) -> PendingHeartbeat:
    """Return a heartbeat of the agent that the test starts and ends."""
    return PendingHeartbeat(fleet, agent, scripted)


def talk(agent: Agent, text: str = "How is the tide?", person: str = "cli:nora") -> str:
    """Talk to the agent; return the id of the conversation."""
    session_id = open_chat(agent, person).id
    exchange_turns(tenant_id=agent.tenant_id, session_id=session_id, text=text, execute=execute_call)
    return str(session_id)


# --- A conversation ------------------------------------------------------------------------------------


def test_a_conversation_follows_the_heartbeat_in_working_memory(pending: PendingHeartbeat) -> None:
    pending.change_state(
        working_memory={"version": 3, "thoughts": [], "concerns": ["the gauge"], "talked": 3}
    )
    pending.start(
        model_answer("It rises.", thinking="She asks about the tide."),
        reply_of(thinking="I look at the sea.", concerns=["the wind"]),
    )
    session_id = talk(pending.agent)
    pending.finish()

    memory = pending.state.working_memory
    assert (memory["current_human"], memory["current_conversation"]) == ("nora", session_id)
    assert [item["text"] for item in memory["thoughts"]] == ["I look at the sea.", "She asks about the tide."]
    assert memory["concerns"] == ["the gauge", "the wind"]
    assert memory["talked"] == 4
    # 0.5, less for a heartbeat without an action, more for the turn.
    assert memory["engagement"] == pytest.approx(0.6)


def test_idle_intervals_before_a_recorded_heartbeat_count_once(pending: PendingHeartbeat) -> None:
    thought = {"text": "The sea is calm.", "at": (timezone.now() - timedelta(days=2)).isoformat()}
    memory = {"version": 3, "thoughts": [thought], "engagement": 0.5}
    pending.change_state(working_memory=memory, last_beat_at=timezone.now())
    pending.start(REST)
    pending.finish()

    assert pending.state.working_memory["engagement"] == pytest.approx(0.4)


def test_a_conversation_ended_during_a_heartbeat_stays_ended(
    pending: PendingHeartbeat, scripted: Script
) -> None:
    scripted(model_answer("It rises."))
    talk(pending.agent)
    pending.start(REST)
    with tenant_transaction(pending.agent.tenant_id):
        end_session(session_id=open_chat(pending.agent).id)
    pending.finish()
    memory = pending.state.working_memory
    assert (memory["current_human"], memory["current_conversation"]) == (None, None)


def test_turns_during_a_consolidation_count_towards_the_next_one(pending: PendingHeartbeat) -> None:
    pending.change_state(
        working_memory={"version": 3, "talked": 12}, beats=CONSOLIDATION_EVERY - 1, stale_beats=4
    )
    pending.start(model_answer("It rises."), REST)
    talk(pending.agent)
    heartbeat = pending.finish()
    assert heartbeat.mode == "consolidation"
    assert pending.state.working_memory["talked"] == 1
    # The conversation brought something new.
    assert pending.state.stale_beats == 0


# --- Energy, ticks, bonus actions ----------------------------------------------------------------------


def test_energy_changed_by_a_person_during_a_heartbeat_counts(pending: PendingHeartbeat) -> None:
    pending.change_state(energy=4.0)
    pending.start(REMEMBER)
    pending.change_state(energy=9.0)
    heartbeat = pending.finish()
    spent = heartbeat.actions[0]["cost"]
    # Ten came back when the heartbeat began.
    assert (heartbeat.energy_start, heartbeat.energy_end) == (14.0, 14.0 - spent)
    assert pending.state.energy == 14.0 - spent + 5.0


@pytest.mark.parametrize("given_in", [(0,), (1,), (2,), (0, 1, 2)])
def test_energy_added_at_any_round_trip_counts_once(
    pending: PendingHeartbeat, given_in: tuple[int, ...]
) -> None:
    store_memory(pending.agent, "The lighthouse keeper is called Ines.")
    pending.change_state(energy=0.0)
    pending.start(reply_of(actions=[RECALL]), reply_of(actions=[RECALL]), REST)
    for round_trip in range(3):
        if round_trip in given_in:
            pending.change_state(energy=pending.state.energy + 1.5)
        if round_trip < 2:
            pending.resume()
    heartbeat = pending.finish()

    assert (heartbeat.turns, heartbeat.energy_start, heartbeat.energy_end) == (3, 10.0, 8.0)
    assert pending.state.energy == 8.0 + 1.5 * len(given_in)


@pytest.mark.parametrize(("ticks", "left"), [(50, 49), (10, 9), (5, 4), (0, 0)])
def test_ticks_allocated_during_a_heartbeat_are_not_lost(
    pending: PendingHeartbeat, ticks: int, left: int
) -> None:
    pending.change_state(ticks_left=10)
    pending.start(REMEMBER, trigger=Trigger.CYCLE)
    with tenant_transaction(pending.agent.tenant_id):
        allocate(agent_id=pending.agent.id, ticks=ticks, actor="test")
    heartbeat = pending.finish()
    assert (heartbeat.energy_unit, heartbeat.energy_start, heartbeat.energy_end) == ("ticks", 10.0, 9.0)
    assert pending.state.ticks_left == left


def test_allocated_ticks_replace_those_of_a_new_cycle(pending: PendingHeartbeat) -> None:
    with tenant_transaction(pending.agent.tenant_id):
        set_policy(agent_id=pending.agent.id, changes={"budget": "ticks"}, actor="test")
    pending.start(REMEMBER)
    with tenant_transaction(pending.agent.tenant_id):
        allocate(agent_id=pending.agent.id, ticks=10, actor="test")
    heartbeat = pending.finish()
    assert (heartbeat.energy_unit, heartbeat.energy_start, heartbeat.energy_end) == ("ticks", 64.0, 63.0)
    assert pending.state.ticks_left == 9


def test_a_heartbeat_of_a_cycle_has_the_remaining_ticks(pending: PendingHeartbeat) -> None:
    pending.change_state(ticks_left=0)
    pending.start(REMEMBER, trigger=Trigger.CYCLE)
    heartbeat = pending.finish()
    assert (heartbeat.energy_start, heartbeat.energy_end) == (0.0, 0.0)
    assert pending.state.ticks_left == 0


def test_bonus_actions_added_during_a_heartbeat_are_not_lost(pending: PendingHeartbeat) -> None:
    with tenant_transaction(pending.agent.tenant_id):
        set_policy(agent_id=pending.agent.id, changes={"budget": "actions"}, actor="test")
    rests = [action_of("rest")] * 2
    pending.start(reply_of(actions=rests))
    pending.change_state(bonus_actions=2)
    pending.finish()
    assert pending.state.bonus_actions == 3


# --- Percepts ------------------------------------------------------------------------------------------


def test_percepts_during_a_heartbeat_wait_for_the_next_one(pending: PendingHeartbeat) -> None:
    agent = pending.agent

    def send_message_and_percept(text: str) -> None:
        with tenant_transaction(agent.tenant_id):
            message_agent(agent_id=agent.id, text=text, actor="test")
            perceive(agent_id=agent.id, kind="environment", content=f"{text} It snows.", actor="test")

    send_message_and_percept("Before.")
    model = pending.start(REST)
    send_message_and_percept("Meanwhile.")
    first = pending.finish()

    with tenant_transaction(agent.tenant_id):
        consumed_by = dict(Percept.objects.filter(agent_id=agent.id).values_list("content", "heartbeat_id"))
    assert consumed_by == {
        "Before.": first.id,
        "Before. It snows.": first.id,
        "Meanwhile.": None,
        "Meanwhile. It snows.": None,
    }
    assert "Meanwhile." not in model.requests[0].messages[0].content

    following = pending.start(REST)
    second = pending.finish()
    assert "Meanwhile. It snows." in following.requests[0].messages[0].content
    with tenant_transaction(agent.tenant_id):
        late = Percept.objects.filter(agent_id=agent.id, content__startswith="Meanwhile")
        assert set(late.values_list("heartbeat_id", flat=True)) == {second.id}


# --- Goals ---------------------------------------------------------------------------------------------


def test_a_goal_closed_by_a_person_during_a_heartbeat_stays_closed(
    pending: PendingHeartbeat, goal: Goal
) -> None:
    updates = [{"goal_id": str(goal.id), "progress": 0.5, "note": "half"}]
    pending.start(reply_of(goal_updates=updates))
    with tenant_transaction(goal.tenant_id):
        move_goal(goal_id=goal.id, to=GoalState.ABANDONED, reason="the reef is gone")
    heartbeat = pending.finish()

    with tenant_transaction(goal.tenant_id):
        goal.refresh_from_db()
    assert (goal.state, goal.fraction, goal.effort) == (GoalState.ABANDONED, 0.0, 0)
    assert [item["path"] for item in heartbeat.dropped] == ["goal_updates[0]"]
    assert [item["kind"] for item in heartbeat.goal_changes] == ["refused"]


def test_a_goal_that_a_person_added_meanwhile_is_not_added_twice(
    pending: PendingHeartbeat, goal: Goal
) -> None:
    pending.start(
        reply_of(new_goals=[{"title": "Count the lamps"}, {"title": "Sound the bar"}]),
    )
    with tenant_transaction(goal.tenant_id):
        create_goal(agent_id=goal.agent_id, title="Count the lamps", state=GoalState.ACTIVE)
    heartbeat = pending.finish()

    with tenant_transaction(goal.tenant_id):
        titles = sorted(Goal.objects.filter(agent_id=goal.agent_id).values_list("title", flat=True))
    assert titles == ["Chart the reef", "Count the lamps", "Sound the bar"]
    assert [item["path"] for item in heartbeat.dropped] == ["new_goals[0]"]


def test_an_intent_abandoned_during_a_heartbeat_counts_no_attempt(
    pending: PendingHeartbeat, goal: Goal
) -> None:
    with tenant_transaction(goal.tenant_id):
        intent = Intent.objects.create(
            tenant_id=goal.tenant_id,
            agent_id=goal.agent_id,
            goal=goal,
            action="remember",
            description="what the pilots said",
        )
    pending.start(reply_of(actions=[action_of("remember", str(intent.id), content="Twelve fathoms.")]))
    with tenant_transaction(goal.tenant_id):
        move_goal(goal_id=goal.id, to=GoalState.ABANDONED, reason="the reef is gone")
    heartbeat = pending.finish()

    with tenant_transaction(goal.tenant_id):
        intent.refresh_from_db()
    assert (intent.status, intent.attempts, intent.locked_by) == ("abandoned", 0, None)
    # The action itself has run.
    assert heartbeat.actions[0]["outcome"] == "success"
    assert [item["path"] for item in heartbeat.dropped] == ["actions[0].intent_id"]


# --- Unchanged until the heartbeat ends ----------------------------------------------------------------


def test_a_policy_changed_during_a_heartbeat_applies_to_the_next_one(pending: PendingHeartbeat) -> None:
    pending.change_state(energy=10.0)
    pending.start(REMEMBER)
    with tenant_transaction(pending.agent.tenant_id):
        set_policy(agent_id=pending.agent.id, changes={"budget": "actions"}, actor="test")
    heartbeat = pending.finish()
    assert (heartbeat.energy_unit, heartbeat.energy_end) == ("energy", 20.0 - heartbeat.actions[0]["cost"])
    assert pending.state.energy == heartbeat.energy_end

    pending.start(reply_of(actions=[action_of("remember", content="The bar is dry.")]))
    heartbeat = pending.finish()
    assert (heartbeat.energy_unit, heartbeat.energy_start, heartbeat.energy_end) == ("actions", 4.0, 3.0)


def test_a_boundary_added_during_a_heartbeat_applies_to_the_next_one(pending: PendingHeartbeat) -> None:
    agent = pending.agent
    pending.start(reply_of(memory_notes=[{"text": "The gossip of the quay."}]))
    boundary = NewBoundary(
        name="no_gossip",
        type=BoundaryType.ETHICAL,
        response=BoundaryResponse.REFUSE,
        description="I do not gossip.",
        patterns=["gossip"],
    )
    add_boundary(tenant_id=agent.tenant_id, agent_id=agent.id, boundary=boundary, actor="test")
    assert pending.finish().dropped == []
    with tenant_transaction(agent.tenant_id):
        assert Memory.objects.filter(agent_id=agent.id, content="The gossip of the quay.").exists()

    pending.start(reply_of(memory_notes=[{"text": "More gossip of the quay."}]))
    assert [item["path"] for item in pending.finish().dropped] == ["memory_notes[0]"]


def test_a_model_changed_during_a_heartbeat_applies_to_the_next_one(
    pending: PendingHeartbeat, monkeypatch: pytest.MonkeyPatch
) -> None:
    handles: list[str] = []
    store_memory(pending.agent, "The lighthouse keeper is called Ines.")
    model = pending.start(reply_of(actions=[RECALL]), REST, REST)

    def model_for(handle: str) -> ScriptedModel:
        handles.append(handle)
        return model

    monkeypatch.setattr(calls, "model_for", model_for)
    with tenant_transaction(pending.agent.tenant_id):
        Agent.objects.filter(id=pending.agent.id).update(model="openai/other")
    heartbeat = pending.finish()
    assert (heartbeat.turns, heartbeat.model) == (2, model.handle)
    assert handles == [model.handle] * 2


# --- Owned by heartbeats -------------------------------------------------------------------------------


def test_counters_owned_by_heartbeats_are_overwritten(pending: PendingHeartbeat) -> None:
    pending.start(REST)
    pending.change_state(
        learned={"recall": [9, 9]}, idle_beats=7, beats=40, nops=3, notices=[{"kind": "loop", "text": "x"}]
    )
    pending.finish()
    state = pending.state
    assert (state.idle_beats, state.beats, state.nops) == (0, 1, 0)
    assert state.learned == {"rest": [1, 1]}
    assert [item["kind"] for item in state.notices] == []
