"""Replies of the reflex policy in each mode."""

from __future__ import annotations

import pytest

from arbor.goals.plans import PlanStatus, StepStatus
from arbor.goals.values import GoalLayer, GoalState
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.focus import mode_of
from arbor.heartbeat.situation import Mode
from arbor.heartbeat.views import PlanView, StepView
from arbor.heartbeat.working_memory import WorkingMemory
from tests.unit.heartbeat.builders import (
    action_names,
    full_situation,
    goal,
    intent,
    memory,
    percept,
    reflex,
    situation,
)


def test_conversation_remembers_messages_and_adds_requests_as_goals() -> None:
    reply = reflex(
        situation(
            mode=Mode.CONVERSATION,
            percepts=[percept("The ferry is late"), percept("Can you find out who built the lighthouse?")],
            relevant=[memory("lighthouse")],
        )
    )

    assert action_names(reply) == ["remember", "remember", "recall"]
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


def test_a_request_that_is_a_goal_already_is_not_added_again() -> None:
    request = percept("Can you find out who built the lighthouse?")
    known = goal(title="see to it: can you find out who built the  lighthouse?")

    assert reflex(situation(mode=Mode.CONVERSATION, percepts=[request], goals=[known]))["new_goals"] == []


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


def test_a_goal_whose_plan_waits_is_neither_planned_nor_work() -> None:
    waiting = PlanView(
        id="plan",
        goal_id="goal-harbour",
        status=PlanStatus.ACTIVE,
        dependencies=["a boat", "a rope"],
        met=["a rope"],
    )
    view = situation(goals=[goal("harbour", priority=2), goal("market", priority=1)], plans=[waiting])
    assert mode_of(view) is Mode.PLAN_EXECUTION
    (planned,) = reflex(view.model_copy(update={"mode": Mode.PLAN_EXECUTION}))["decompositions"]
    assert planned["goal_id"] == "goal-market"
    alone = view.model_copy(update={"goals": [goal("harbour")]})
    assert mode_of(alone) is Mode.REFLECTION
    assert reflex(alone.model_copy(update={"mode": Mode.REFLECTION}))["decompositions"] == []


def test_a_goal_whose_next_step_waits_is_not_planned_again() -> None:
    step = StepView(
        position=1,
        action="recall",
        description="Look first",
        precondition="Map the market",
        status=StepStatus.WAITING,
    )
    plan = PlanView(id="plan", goal_id="goal-harbour", status=PlanStatus.ACTIVE, steps=[step])
    view = situation(goals=[goal("harbour")], plans=[plan])

    assert mode_of(view) is Mode.REFLECTION
    assert reflex(view.model_copy(update={"mode": Mode.PLAN_EXECUTION}))["decompositions"] == []
    committed = plan.model_copy(
        update={"steps": [step.model_copy(update={"status": StepStatus.COMMITTED}), step]}
    )
    assert not committed.is_waiting


def test_planning_without_a_useful_action_worries_instead() -> None:
    reply = reflex(situation(mode=Mode.PLAN_EXECUTION, goals=[goal()], actions=ACTIONS.offers(("rest",))))

    assert reply["decompositions"] == []
    assert "Map the harbour" in reply["concerns"][0]


def test_pursuit_executes_different_steps_together() -> None:
    steps = [intent(name, action=name) for name in ("reflect", "connect", "synthesize")]
    view = situation(
        mode=Mode.GOAL_PURSUIT, goals=[goal()], intents=steps, relevant=[memory("pier"), memory("crane")]
    )

    assert action_names(reflex(view)) == ["reflect", "connect", "synthesize"]
    assert action_names(reflex(view.model_copy(update={"energy": 3.0}))) == ["reflect", "connect"]


def test_an_aspiration_is_neither_planned_nor_completed() -> None:
    aspiration = goal(layer=GoalLayer.ASPIRATION)

    planned = reflex(situation(mode=Mode.PLAN_EXECUTION, goals=[aspiration]))
    pursued = reflex(situation(mode=Mode.GOAL_PURSUIT, goals=[aspiration], intents=[intent("look")]))

    assert planned["decompositions"] == []
    assert [(update["progress"], update["state"]) for update in pursued["goal_updates"]] == [(None, None)]


def test_the_last_step_completes_the_goal() -> None:
    reply = reflex(situation(mode=Mode.GOAL_PURSUIT, goals=[goal(fraction=0.8)], intents=[intent("look")]))

    (update,) = reply["goal_updates"]
    assert (update["progress"], update["state"]) == (1.0, "completed")
    assert update["reason"]


def test_an_aspiration_makes_room_for_a_waiting_goal() -> None:
    aspirations = [goal(name, layer=GoalLayer.ASPIRATION) for name in ("reef", "pier", "crane")]
    reply = reflex(situation(goals=[*aspirations, goal(state=GoalState.QUEUED)]))

    moves = [(action["params"]["goal_id"], action["params"]["state"]) for action in reply["actions"]]
    assert moves == [("goal-reef", "queued"), ("goal-harbour", "active")]


def test_rules_wait_with_a_blocked_goal_and_do_other_work() -> None:
    blocked = goal(blocked_by="the tide", priority=9.0)
    queued = goal("pier", blocked_by="the tide", state=GoalState.QUEUED)
    alone = situation(model_is_reflex=True, goals=[blocked, queued], intents=[intent("look")])

    assert mode_of(alone) is Mode.REFLECTION
    assert mode_of(alone.model_copy(update={"model_is_reflex": False})) is Mode.GOAL_PURSUIT
    assert reflex(alone)["goal_updates"] == []
    assert "reprioritize" not in action_names(reflex(alone))
    with_other = situation(model_is_reflex=True, mode=Mode.PLAN_EXECUTION, goals=[blocked, goal("reef")])
    assert [plan["goal_id"] for plan in reflex(with_other)["decompositions"]] == ["goal-reef"]


def test_a_goal_is_activated_without_permission_to_reprioritize() -> None:
    reply = reflex(situation(goals=[goal(state=GoalState.QUEUED)], actions=ACTIONS.offers(("rest",))))

    assert [(update["goal_id"], update["state"]) for update in reply["goal_updates"]] == [
        ("goal-harbour", "active")
    ]


def test_thoughts_differ_by_mode_and_by_the_planned_goal() -> None:
    situations = [
        situation(
            mode=mode, heartbeat_number=heartbeat, recent=[memory("pier"), memory("crane")], goals=goals_
        )
        for mode in (Mode.REFLECTION, Mode.CONSOLIDATION, Mode.PLAN_EXECUTION)
        for heartbeat, goals_ in ((1, [goal("harbour")]), (7, [goal("market")]))
    ]

    thoughts = [reflex(situation)["thinking"] for situation in situations]

    # Reflection and consolidation are about the memories, which are the same.
    assert len(set(thoughts)) == 4
    assert all(thoughts)


def test_a_full_situation_gets_a_reply_about_its_content() -> None:
    reply = reflex(full_situation())

    assert "Map the harbour" in reply["thinking"]
    assert reply["actions"][0]["goal_id"] == "goal-harbour"


def test_plans_after_failed_ones_begin_with_another_action() -> None:
    def first_action(effort: int) -> str:
        planned = situation(
            mode=Mode.PLAN_EXECUTION, goals=[goal(effort=effort, notes=["one", "two", "three"])]
        )
        return str(reflex(planned)["decompositions"][0]["intentions"][0]["action"])

    # The notes stay three while the heartbeats grow, by the number of steps or by another number.
    assert len({first_action(effort) for effort in (3, 6, 9)}) == 3
    assert len({first_action(effort) for effort in (4, 8, 12)}) > 1


@pytest.mark.parametrize(("steps", "note"), [(2, "1 step to go"), (3, "2 steps to go")])
def test_a_note_counts_the_steps_to_go(steps: int, note: str) -> None:
    intents = [intent(str(number)) for number in range(steps)]
    reply = reflex(situation(mode=Mode.GOAL_PURSUIT, goals=[goal()], intents=intents))

    assert reply["goal_updates"][0]["note"].endswith(f"; {note}.")


def test_a_note_counts_the_planned_steps() -> None:
    def planned(*actions: str) -> str:
        view = situation(mode=Mode.PLAN_EXECUTION, goals=[goal()], actions=ACTIONS.offers(actions))
        return str(reflex(view)["goal_updates"][0]["note"])

    assert planned("recall") == "Planned 1 step: recall."
    assert planned("recall", "reflect") == "Planned 2 steps: recall, reflect."


def test_conversation_stores_all_percepts_and_adds_three_goals() -> None:
    asked = [percept(f"Can you map harbour {number}?", id=f"percept-{number}") for number in range(5)]
    reply = reflex(situation(mode=Mode.CONVERSATION, percepts=asked))

    assert action_names(reply) == ["remember"] * 5 + ["recall"]
    assert [new["title"] for new in reply["new_goals"]] == [
        f"See to it: Can you map harbour {number}?" for number in range(3)
    ]
    assert reply["thinking"].count("That is more than I can take up at once.") == 2


@pytest.mark.parametrize(
    ("kind", "sources"),
    [
        ("user_message", ["user_request"]),
        ("peer_message", ["external"]),
        ("webhook", ["external"]),
        ("action_result", []),
        ("timeout", []),
    ],
)
def test_only_a_request_of_a_user_is_one(kind: str, sources: list[str]) -> None:
    text = "You gave up the step 'Who built it?' (recall) towards 'Chart the reef'"
    reply = reflex(situation(mode=Mode.CONVERSATION, percepts=[percept(text, kind=kind)]))

    assert [new["source"] for new in reply["new_goals"]] == sources


def test_a_concern_that_no_longer_holds_is_resolved() -> None:
    view = situation(mode=Mode.PLAN_EXECUTION, goals=[goal()], actions=ACTIONS.offers(("rest",)))
    (concern,) = reflex(view)["concerns"]
    worried = view.model_copy(update={"working_memory": WorkingMemory(concerns=[concern, "the fog"])})

    assert reflex(worried)["resolved"] == []
    assert reflex(worried.model_copy(update={"mode": Mode.CONVERSATION}))["resolved"] == []
    able = worried.model_copy(update={"actions": ACTIONS.offers(("recall", "rest"))})
    assert reflex(able)["resolved"] == [concern]
    done = worried.model_copy(update={"goals": [], "mode": Mode.REFLECTION})
    assert reflex(done)["resolved"] == [concern]


def test_a_full_queue_makes_room_for_a_waiting_goal() -> None:
    aspirations = [goal(name, layer=GoalLayer.ASPIRATION) for name in ("reef", "pier", "crane")]
    queued = [
        goal(f"queued{number}", state=GoalState.QUEUED, priority=9.0 - number / 10) for number in range(10)
    ]
    moves = reflex(situation(goals=[*aspirations, *queued]))["actions"]
    assert [(move["params"]["goal_id"], move["params"]["state"]) for move in moves] == [
        ("goal-queued9", "backburner"),
        ("goal-reef", "queued"),
        ("goal-queued0", "active"),
    ]

    blocked = [view.model_copy(update={"blocked_by": "the tide"}) for view in queued]
    moves = reflex(situation(goals=[*blocked, goal(state=GoalState.BACKBURNER)]))["actions"]
    assert [(move["params"]["goal_id"], move["params"]["state"]) for move in moves] == [
        ("goal-queued9", "backburner"),
        ("goal-harbour", "queued"),
    ]


@pytest.mark.parametrize(("before", "progress"), [(0.5, 0.75), (0.985, 0.99), (0.99, None), (0.9995, None)])
def test_a_goal_with_steps_to_go_is_not_completed(before: float, progress: float | None) -> None:
    steps = [intent("look"), intent("ask")]
    reply = reflex(situation(mode=Mode.GOAL_PURSUIT, goals=[goal(fraction=before)], intents=steps))

    (update,) = reply["goal_updates"]
    assert (update["progress"], update["state"]) == (progress, None)
