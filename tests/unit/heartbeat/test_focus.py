"""The mode of a heartbeat, and the query of its recall."""

from __future__ import annotations

from typing import Any

import pytest

from arbor.goals.intents import IntentStatus
from arbor.goals.values import GoalLayer, GoalState
from arbor.heartbeat.focus import choose_mode, explain_mode, focus_text, foremost_percept, mode_of
from arbor.heartbeat.situation import ClusterView, Environment, Mode
from arbor.heartbeat.working_memory import Thought, WorkingMemory
from tests.unit.heartbeat.builders import NOW, goal, intent, memory, percept, situation


@pytest.mark.parametrize(
    ("user_waiting", "heartbeat", "goals", "intents", "expected"),
    [
        (True, 1, 0, 0, Mode.CONVERSATION),
        (True, 5, 1, 0, Mode.CONVERSATION),
        (True, 1, 3, 3, Mode.CONVERSATION),
        (False, 5, 0, 0, Mode.CONSOLIDATION),
        (False, 5, 2, 2, Mode.CONSOLIDATION),
        (False, 10, 2, 0, Mode.CONSOLIDATION),
        (False, 0, 0, 0, Mode.REFLECTION),
        (False, 1, 1, 0, Mode.PLAN_EXECUTION),
        (False, 4, 3, 0, Mode.PLAN_EXECUTION),
        (False, 6, 1, 1, Mode.GOAL_PURSUIT),
        (False, 1, 3, 9, Mode.GOAL_PURSUIT),
        (False, 1, 0, 0, Mode.REFLECTION),
        (False, 1, 0, 2, Mode.REFLECTION),
    ],
)
def test_the_mode_is_the_first_that_applies(
    user_waiting: bool, heartbeat: int, goals: int, intents: int, expected: Mode
) -> None:
    mode = choose_mode(
        user_waiting=user_waiting, heartbeat_number=heartbeat, active_goals=goals, pending_intents=intents
    )

    assert mode is expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, Mode.REFLECTION),
        ({"goals": [goal()]}, Mode.PLAN_EXECUTION),
        ({"goals": [goal()], "intents": [intent()]}, Mode.GOAL_PURSUIT),
        ({"goals": [goal()], "intents": [intent(status=IntentStatus.LOCKED)]}, Mode.PLAN_EXECUTION),
        ({"goals": [goal()], "intents": [intent(goal_id="goal-gone")]}, Mode.PLAN_EXECUTION),
        ({"goals": [goal(state=GoalState.QUEUED)], "intents": [intent()]}, Mode.REFLECTION),
        ({"environment": Environment(now=NOW, user_waiting=True)}, Mode.CONVERSATION),
    ],
)
def test_only_pending_steps_of_active_goals_count(changes: dict[str, Any], expected: Mode) -> None:
    assert mode_of(situation(**changes)) is expected


MIND = WorkingMemory(
    thoughts=[Thought(text="old", at=NOW), Thought(text="the tide is out", at=NOW)],
    concerns=["the map is old"],
    curiosity=["who built it"],
)


ASPIRATION = goal(layer=GoalLayer.ASPIRATION)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"percepts": [percept("first"), percept("Where is\n the ferry?")], "goals": [goal()]},
            "Where is the ferry?",
        ),
        ({"goals": [goal()], "intents": [intent("look")]}, "First, look Map the harbour"),
        ({"goals": [goal()]}, "Map the harbour Every part of the harbour has a name"),
        # The most important goal, not the oldest step.
        (
            {
                "goals": [goal(), goal("reef", priority=9.0)],
                "intents": [intent("look"), intent("dive", goal_id="goal-reef")],
            },
            "First, dive Map the reef",
        ),
        (
            {"goals": [goal(), goal("reef", priority=9.0)], "intents": [intent("look")]},
            "Map the reef Every part of the reef has a name",
        ),
        (
            {
                "goals": [goal(), goal("reef", priority=9.0, blocked_by="the tide")],
                "intents": [intent("look"), intent("dive", goal_id="goal-reef")],
            },
            "First, look Map the harbour",
        ),
        ({"goals": [goal()], "heartbeat_number": 5, "working_memory": MIND}, "the tide is out"),
        ({"working_memory": MIND}, "who built it"),
        # An aspiration is no work, unless a step towards it is pending.
        ({"goals": [ASPIRATION], "working_memory": MIND}, "who built it"),
        (
            {"goals": [ASPIRATION], "intents": [intent("look")], "working_memory": MIND},
            "First, look Map the harbour",
        ),
        ({"working_memory": WorkingMemory(concerns=["the map is old"])}, "the map is old"),
        ({"working_memory": WorkingMemory(thoughts=MIND.thoughts)}, "the tide is out"),
        ({"recent": [memory("pier")]}, "The pier was rebuilt after the storm"),
        ({}, ""),
        ({"percepts": [percept("x" * 600)]}, "x" * 500),
    ],
)
def test_the_query_of_a_recall_is_the_most_pressing_matter(changes: dict[str, Any], expected: str) -> None:
    assert focus_text(situation(**changes)) == expected


def test_an_agent_without_a_question_turns_to_each_subject() -> None:
    queries = [
        focus_text(
            situation(
                goals=[ASPIRATION],
                clusters=[ClusterView(name="Ferries", keywords=["pier", "ebb"])],
                working_memory=WorkingMemory(thoughts=MIND.thoughts),
                heartbeat_number=number,
            )
        )
        for number in (2, 3, 4)
    ]
    aspiration = "Map the harbour Every part of the harbour has a name"
    assert queries == [aspiration, "Ferries pier ebb", aspiration]


def test_each_of_five_subjects_has_its_turn() -> None:
    clusters = [ClusterView(name=name, keywords=[]) for name in ("Reef", "Pier", "Crane", "Ebb", "Seals")]
    views = [situation(clusters=clusters, heartbeat_number=number) for number in range(1, 26)]
    queries = {focus_text(view) for view in views if mode_of(view) is Mode.REFLECTION}
    assert queries == {"Reef", "Pier", "Crane", "Ebb", "Seals"}


def test_many_turns_cause_consolidation_unless_a_user_waits() -> None:
    values: dict[str, Any] = {
        "heartbeat_number": 1,
        "active_goals": 1,
        "pending_intents": 1,
        "wants_consolidation": True,
    }

    assert choose_mode(user_waiting=False, **values) is Mode.CONSOLIDATION
    assert choose_mode(user_waiting=True, **values) is Mode.CONVERSATION
    assert mode_of(situation(working_memory=WorkingMemory(talked=10))) is Mode.CONSOLIDATION


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "nobody was waiting, and no active goal called for work"),
        ({"goals": [goal()]}, "a goal was active, and no step towards it was committed"),
        ({"goals": [goal()], "intents": [intent()]}, "1 committed step waited to be done"),
        ({"goals": [goal()], "intents": [intent("a"), intent("b")]}, "2 committed steps waited to be done"),
        ({"heartbeat_number": 5}, "every 5th heartbeat consolidates the memory"),
        (
            {"heartbeat_number": 5, "working_memory": WorkingMemory(talked=10)},
            "people had talked much with the agent since it last consolidated its memory",
        ),
        ({"environment": Environment(now=NOW, user_waiting=True)}, "a user was waiting for an answer"),
    ],
)
def test_the_reason_of_a_mode_is_stated_in_words(changes: dict[str, Any], expected: str) -> None:
    assert explain_mode(situation(**changes)) == expected


@pytest.mark.parametrize(
    ("kinds", "place"),
    [
        ([], None),
        (["environment", "error"], 1),
        (["user_message", "environment"], 0),
        (["user_message", "user_message", "environment"], 1),
    ],
)
def test_the_last_user_message_is_foremost(kinds: list[str], place: int | None) -> None:
    percepts = [percept(f"thing {number}", kind=kind) for number, kind in enumerate(kinds)]
    assert foremost_percept(percepts) is (None if place is None else percepts[place])


def test_the_query_of_a_recall_is_the_last_user_message() -> None:
    percepts = [percept("Where is the ferry?"), percept("It snows.", kind="environment")]
    assert focus_text(situation(percepts=percepts)) == "Where is the ferry?"
