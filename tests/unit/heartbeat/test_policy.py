"""The reflex policy decides like a model: in the schema, within its means, and about what is there."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arbor.goals.intents import IntentStatus
from arbor.goals.values import GoalLayer, GoalSource, GoalState, default_state, move
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.decision import decide
from arbor.heartbeat.energy import EnergyBudget
from arbor.heartbeat.focus import mode_of
from arbor.heartbeat.modes import Mode
from arbor.heartbeat.parsing import parse_reply
from arbor.heartbeat.policy import reflex_reply
from arbor.heartbeat.reply import REPLY_SCHEMA, Reply
from arbor.heartbeat.situation import (
    Environment,
    GoalView,
    IntentView,
    LastBeat,
    MemoryView,
    PerceptView,
    Situation,
    Thought,
    WorkingMemory,
)
from arbor.memory.values import MemoryType
from tests.unit.heartbeat.builders import (
    NOW,
    full_situation,
    goal,
    intent,
    memory,
    percept,
    situation,
)
from tests.unit.heartbeat.schema_check import fits

ALL = tuple(ACTIONS)


def reflex(seen: Situation) -> dict[str, Any]:
    return reflex_reply(seen.model_dump(mode="json"))


def actions(reply: dict[str, Any]) -> list[str]:
    return [action["action"] for action in reply["actions"]]


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=80)
ids = st.uuids().map(str)
goals = st.builds(
    GoalView,
    id=ids,
    title=texts,
    description=texts,
    state=st.sampled_from([GoalState.ACTIVE, GoalState.QUEUED, GoalState.BACKBURNER]),
    layer=st.sampled_from(GoalLayer),
    source=st.sampled_from(GoalSource),
    priority=st.floats(0, 5),
    fraction=st.floats(0, 1),
    notes=st.lists(texts, max_size=3),
)
memories = st.builds(
    MemoryView, id=ids, type=st.sampled_from(MemoryType), content=texts, role=texts, at=st.just(NOW)
)


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    wanted = draw(st.lists(goals, max_size=4))
    aims = st.sampled_from([each.id for each in wanted]) if wanted else ids
    steps = st.builds(
        IntentView,
        id=ids,
        goal_id=aims,
        action=st.sampled_from([*ALL, "fly"]),
        description=texts,
        status=st.sampled_from(IntentStatus),
    )
    return situation(
        mode=draw(st.sampled_from(Mode)),
        beat_number=draw(st.integers(1, 1_000)),
        energy=draw(st.floats(0, 20)),
        actions=ACTIONS.offers(draw(st.sets(st.sampled_from(ALL)))),
        goals=wanted,
        intents=draw(st.lists(steps, max_size=4)),
        recent=draw(st.lists(memories, max_size=3)),
        relevant=draw(st.lists(memories, max_size=3)),
        percepts=draw(
            st.lists(
                st.builds(PerceptView, id=ids, kind=st.just("user_message"), content=texts, at=st.just(NOW)),
                max_size=4,
            )
        ),
        working_memory=WorkingMemory(
            thoughts=[Thought(text=draw(texts), at=NOW)], curiosity=draw(st.lists(texts, max_size=2))
        ),
    )


@settings(max_examples=150, deadline=None)
@given(situations())
def test_every_reply_is_in_the_schema_permitted_paid_for_and_used_whole(seen: Situation) -> None:
    reply = reflex(seen)

    assert fits(reply, REPLY_SCHEMA)
    parsed = parse_reply(json.dumps(reply))
    assert (parsed.dropped, parsed.repairs) == ((), ())
    decisions = decide(
        parsed.reply.actions,
        registry=ACTIONS,
        allowed=[offer.name for offer in seen.actions],
        energy=seen.energy,
        budget=EnergyBudget(),
    )
    assert [(each.action, each.reason) for each in decisions if not each.runs] == []


@settings(max_examples=30, deadline=None)
@given(situations())
def test_the_same_situation_gives_the_same_reply(seen: Situation) -> None:
    assert reflex(seen) == reflex(seen)


def test_conversation_takes_in_what_was_said_and_makes_a_goal_of_a_request() -> None:
    reply = reflex(
        situation(
            mode=Mode.CONVERSATION,
            percepts=[percept("The ferry is late"), percept("Can you find out who built the lighthouse?")],
            relevant=[memory("lighthouse")],
        )
    )

    assert actions(reply) == ["remember", "remember", "recall"]
    assert "The ferry is late" in reply["actions"][0]["params"]["content"]
    assert "lighthouse" in reply["actions"][2]["params"]["query"]
    assert [(new["title"], new["source"]) for new in reply["new_goals"]] == [
        ("See to it: Can you find out who built the lighthouse?", "user_request")
    ]
    assert "The lighthouse was rebuilt after the storm" in reply["thinking"]


def test_conversation_without_permission_to_remember_leaves_a_note() -> None:
    reply = reflex(
        situation(
            mode=Mode.CONVERSATION, percepts=[percept("The ferry is late")], actions=ACTIONS.offers(("rest",))
        )
    )

    assert [note["text"] for note in reply["memory_notes"]] == ["User message: “The ferry is late”"]


def test_a_request_that_is_a_goal_already_is_not_taken_up_twice() -> None:
    asked = percept("Can you find out who built the lighthouse?")
    known = goal(title="see to it: can you find out who built the  lighthouse?")

    assert reflex(situation(mode=Mode.CONVERSATION, percepts=[asked], goals=[known]))["new_goals"] == []


def test_planning_breaks_the_most_important_goal_into_permitted_steps() -> None:
    reply = reflex(
        situation(
            mode=Mode.PLAN_EXECUTION,
            goals=[goal("market", priority=1), goal("harbour", priority=2)],
            actions=ACTIONS.offers(("recall", "reflect", "rest")),
        )
    )

    (plan,) = reply["decompositions"]
    assert plan["goal_id"] == "goal-harbour"
    assert [step["action"] for step in plan["intentions"]] == ["recall", "reflect"]
    assert all("Map the harbour" in step["description"] for step in plan["intentions"])


def test_planning_without_a_useful_action_worries_instead() -> None:
    reply = reflex(situation(mode=Mode.PLAN_EXECUTION, goals=[goal()], actions=ACTIONS.offers(("rest",))))

    assert reply["decompositions"] == []
    assert "Map the harbour" in reply["concerns"][0]


@pytest.mark.parametrize(
    ("action", "taken"),
    [
        ("recall", "recall"),
        ("reflect", "reflect"),
        ("remember", "remember"),
        ("connect", "connect"),
        ("rest", "rest"),
        ("reprioritize", "reflect"),
        ("fly", "reflect"),
    ],
)
def test_pursuit_carries_out_the_next_step_or_the_nearest_thing(action: str, taken: str) -> None:
    reply = reflex(
        situation(
            mode=Mode.GOAL_PURSUIT,
            goals=[goal(fraction=0.4)],
            intents=[intent("look", action=action), intent("ask"), intent("tell")],
            relevant=[memory("pier"), memory("crane")],
        )
    )

    assert [(each["action"], each["intent_id"]) for each in reply["actions"]] == [(taken, "intent-look")]
    (update,) = reply["goal_updates"]
    assert (update["goal_id"], update["progress"], update["state"]) == ("goal-harbour", 0.6, None)
    assert "First, look" in update["note"]


def test_the_last_step_completes_the_goal() -> None:
    reply = reflex(situation(mode=Mode.GOAL_PURSUIT, goals=[goal(fraction=0.8)], intents=[intent("look")]))

    (update,) = reply["goal_updates"]
    assert (update["progress"], update["state"]) == (1.0, "completed")
    assert update["reason"]


def test_a_step_that_costs_too_much_waits_and_the_agent_rests() -> None:
    reply = reflex(
        situation(
            mode=Mode.GOAL_PURSUIT, energy=1, goals=[goal()], intents=[intent("think", action="reflect")]
        )
    )

    assert actions(reply) == ["rest"]
    assert reply["goal_updates"] == []
    assert "too little energy" in reply["thinking"]


def test_a_step_that_ties_memories_needs_two_of_them() -> None:
    reply = reflex(
        situation(
            mode=Mode.GOAL_PURSUIT,
            goals=[goal()],
            intents=[intent("tie", action="connect")],
            relevant=[memory("pier")],
            recent=[memory("pier")],
        )
    )

    assert actions(reply) == ["reflect"]


def test_consolidation_ties_the_memories_that_share_most_words() -> None:
    reply = reflex(
        situation(
            mode=Mode.CONSOLIDATION,
            # Of three pairs, the first has its turn at every third consolidation.
            beat_number=15,
            recent=[
                memory("a", content="Bread is baked at dawn"),
                memory("b", content="The lighthouse keeper counts ferries"),
                memory("c", content="Ferries pass the lighthouse at night"),
            ],
        )
    )

    connect, reflect = reply["actions"]
    assert connect["params"] == {"from_id": "memory-b", "to_id": "memory-c", "relation": "associated"}
    assert "lighthouse, ferries" in reflect["params"]["insight"]
    assert "“Ferries pass the lighthouse at night”" in reflect["params"]["insight"]


def test_consolidations_take_turns_with_the_pairs() -> None:
    views = [memory("pier"), memory("crane"), memory("buoy")]
    tied = {
        (connect["params"]["from_id"], connect["params"]["to_id"])
        for beat in (5, 10, 15)
        for connect in reflex(situation(mode=Mode.CONSOLIDATION, beat_number=beat, recent=views))["actions"][
            :1
        ]
    }

    assert len(tied) == 3


def test_consolidation_with_too_little_to_tie_rests() -> None:
    assert actions(reflex(situation(mode=Mode.CONSOLIDATION, recent=[memory()]))) == ["rest"]


def test_reflection_without_goals_finds_one_in_what_it_wonders_about() -> None:
    reply = reflex(
        situation(recent=[memory("pier")], working_memory=WorkingMemory(curiosity=["who built the pier?"]))
    )

    assert actions(reply) == ["reflect"]
    assert "The pier was rebuilt" in reply["actions"][0]["params"]["insight"]
    assert reply["new_goals"][0]["title"] == "Find out more about who built the pier"
    assert reply["new_goals"][0]["source"] == "curiosity"
    assert "The pier was rebuilt" in reply["curiosity"][0]


def test_a_new_mind_with_nothing_in_it_still_finds_something_to_want() -> None:
    reply = reflex(situation())

    assert reply["new_goals"][0]["title"] == "Find out more about what being Mira is for"
    assert actions(reply) == ["rest"]


@pytest.mark.parametrize(("state", "up"), [(GoalState.QUEUED, "active"), (GoalState.BACKBURNER, "queued")])
def test_reflection_moves_a_waiting_goal_up_before_it_makes_a_new_one(state: GoalState, up: str) -> None:
    reply = reflex(situation(goals=[goal(state=state)]))

    assert reply["actions"][-1]["params"] == {"goal_id": "goal-harbour", "state": up}
    assert reply["new_goals"] == []


def test_a_reflection_on_a_reflection_quotes_only_what_it_was_about() -> None:
    own = memory(
        "own",
        role="",
        content="What stays with me is this: Ada said “the pier is old”.",
        type=MemoryType.SEMANTIC,
    )

    insight = reflex(situation(recent=[own]))["actions"][0]["params"]["insight"]

    assert insight.startswith("What stays with me is this: “the pier is old”.")


def test_different_situations_give_different_thoughts() -> None:
    seen = [
        situation(mode=mode, beat_number=beat, recent=[memory("pier"), memory("crane")], goals=goals_)
        for mode in (Mode.REFLECTION, Mode.CONSOLIDATION, Mode.PLAN_EXECUTION)
        for beat, goals_ in ((1, [goal("harbour")]), (7, [goal("market")]))
    ]

    thoughts = [reflex(each)["thinking"] for each in seen]

    assert len(set(thoughts)) >= 5
    assert all(thoughts)


# --- A life in memory --------------------------------------------------------------------------------


@dataclass
class Life:
    """The least world in which replies have their effects."""

    goals: dict[str, GoalView]
    intents: dict[str, IntentView] = field(default_factory=dict)
    energy: float = 0.0
    beat: int = 0
    modes: list[Mode] = field(default_factory=list)
    last: LastBeat | None = None

    def live(self) -> Reply:
        self.beat += 1
        budget = EnergyBudget()
        self.energy = budget.regenerate(self.energy)
        seen = situation(
            beat_number=self.beat,
            environment=Environment(now=NOW),
            energy=self.energy,
            goals=[each for each in self.goals.values() if each.state.is_open],
            intents=list(self.intents.values()),
            recent=[memory("pier"), memory("crane")],
            last_beat=self.last,
        )
        seen = seen.model_copy(update={"mode": mode_of(seen)})
        self.modes.append(seen.mode)
        reply = parse_reply(json.dumps(reflex(seen))).reply
        for decision in decide(
            reply.actions, registry=ACTIONS, allowed=ALL, energy=self.energy, budget=budget
        ):
            assert decision.runs, decision.reason
            self.energy = budget.spend(self.energy, decision.cost)
            if decision.intent_id:
                done = self.intents[decision.intent_id]
                self.intents[done.id] = done.model_copy(update={"status": IntentStatus.COMPLETED})
            if decision.action == "reprioritize":
                self._move(decision.params["goal_id"], GoalState(decision.params["state"]))
        for plan in reply.decompositions:
            for step in plan.intentions:
                new = intent(
                    f"{len(self.intents)}",
                    goal_id=plan.goal_id,
                    action=step.action,
                    description=step.description,
                )
                self.intents[new.id] = new
        for update in reply.goal_updates:
            if update.progress is not None:
                touched = self.goals[update.goal_id]
                self.goals[touched.id] = touched.model_copy(update={"fraction": update.progress})
            if update.state is not None:
                self._move(update.goal_id, update.state)
        for wanted in reply.new_goals:
            new_goal = goal(f"{len(self.goals)}", title=wanted.title, state=default_state(wanted.source))
            self.goals[new_goal.id] = new_goal
        return reply

    def _move(self, goal_id: str, to: GoalState) -> None:
        moved = self.goals[goal_id]
        self.goals[goal_id] = moved.model_copy(update={"state": move(moved.state, to)})


def test_an_agent_on_reflex_plans_works_off_and_completes_its_goals_and_finds_new_ones() -> None:
    first = goal("harbour", priority=3.0)
    second = goal("market", state=GoalState.QUEUED)
    life = Life({first.id: first, second.id: second})

    for _ in range(24):
        life.live()

    assert life.modes[:4] == [Mode.PLAN_EXECUTION, *[Mode.GOAL_PURSUIT] * 3]
    assert life.modes[4] is Mode.CONSOLIDATION
    assert life.goals[first.id].state is GoalState.COMPLETED
    assert life.goals[first.id].fraction == 1.0
    assert life.goals[second.id].state is GoalState.COMPLETED
    assert len(life.goals) > 2
    assert all(each.status is not IntentStatus.FAILED for each in life.intents.values())


def test_a_full_situation_is_answered_about_itself() -> None:
    reply = reflex(full_situation())

    assert "Map the harbour" in reply["thinking"]
    assert reply["actions"][0]["goal_id"] == "goal-harbour"
