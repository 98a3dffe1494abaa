"""Parsing of the items about goals and plans."""

from __future__ import annotations

from typing import Any

import pytest

from arbor.heartbeat.params.outward import BrainstormGoalsParams
from tests.unit.heartbeat.replies.reply_checks import assert_parsed, parse

STEP: dict[str, Any] = {"precondition": None, "postcondition": None, "estimated_ticks": None, "follows": None}


@pytest.mark.parametrize(
    ("key", "item", "expected", "dropped"),
    [
        ("goal_updates", {"goal_id": "g", "note": "n", "state": "Completed"}, {"state": "completed"}, []),
        (
            "goal_updates",
            {"id": "g", "status": "abandoned", "reason": "x"},
            {"goal_id": "g", "state": "abandoned"},
            [],
        ),
        (
            "goal_updates",
            {"goal_id": "g", "note": "n", "state": "done"},
            {"state": None},
            ["goal_updates[0].state"],
        ),
        (
            "goal_updates",
            {"goal_id": "g", "note": "n", "state": 3},
            {"state": None},
            ["goal_updates[0].state"],
        ),
        ("goal_updates", {"goal_id": "g"}, None, ["goal_updates[0]"]),
        (
            "goal_updates",
            {"goal_id": "g", "progress": 200},
            None,
            ["goal_updates[0].progress", "goal_updates[0]"],
        ),
        ("goal_updates", {"progress": 0.5}, None, ["goal_updates[0]"]),
        ("goal_updates", "g", None, ["goal_updates[0]"]),
        (
            "goal_updates",
            {"goal_id": "g", "note": "n", "reason": "r"},
            {"note": "n", "reason": None},
            ["goal_updates[0].reason"],
        ),
        (
            "goal_updates",
            {"goal_id": "g", "progress": 1, "state": "queued", "blocked_by": "fog", "met": ["a boat"]},
            {"progress": 1, "state": None, "blocked_by": None, "met": []},
            ["goal_updates[0].state", "goal_updates[0].blocked_by", "goal_updates[0].met"],
        ),
        (
            "goal_updates",
            {"goal_id": "g", "progress": 1, "state": "completed", "reason": "r", "blocked_by": "nothing"},
            {"state": "completed", "reason": "r"},
            [],
        ),
        ("new_goals", "Sail", {"title": "Sail", "layer": "objective", "source": "curiosity"}, []),
        ("new_goals", {"title": " Sail \n out "}, {"title": "Sail out"}, []),
        ("new_goals", {"title": "Sail\x1b[31m out\x07"}, {"title": "Sail [31m out"}, []),
        ("new_goals", {"title": "\x1b\x07"}, None, ["new_goals[0]"]),
        (
            "new_goals",
            {"title": "S", "layer": "User Request"},
            {"layer": "objective"},
            ["new_goals[0].layer"],
        ),
        ("new_goals", {"title": "S", "source": "user request"}, {"source": "user_request"}, []),
        (
            "new_goals",
            {"title": "S", "parent_goal_id": "g"},
            {"source": "derived", "parent_goal_id": "g"},
            [],
        ),
        ("new_goals", {"title": "S", "parent_goal_id": "none"}, {"source": "curiosity"}, []),
        (
            "new_goals",
            {"title": "S", "parent_goal_id": "g", "source": "identity"},
            {"source": "identity"},
            [],
        ),
        ("new_goals", {"title": "S", "source": "boredom"}, {"source": "curiosity"}, ["new_goals[0].source"]),
        ("new_goals", {"title": "S" * 250}, {"title": "S" * 200}, ["new_goals[0].title"]),
        ("new_goals", {"description": "x"}, None, ["new_goals[0]"]),
        ("new_goals", {"title": ["S"]}, None, ["new_goals[0].title", "new_goals[0]"]),
        ("decompositions", {"goal_id": "g", "intentions": []}, None, ["decompositions[0]"]),
        (
            "decompositions",
            {"goal_id": "g", "intentions": ["recall"]},
            None,
            ["decompositions[0].intentions[0]", "decompositions[0]"],
        ),
        (
            "decompositions",
            {"intentions": [{"action": "recall", "description": "x"}]},
            None,
            ["decompositions[0]"],
        ),
        (
            "decompositions",
            {"goal_id": "g", "steps": [{"type": "recall", "description": "x"}]},
            {"intentions": [STEP | {"action": "recall", "description": "x"}]},
            [],
        ),
        (
            "decompositions",
            {
                "goal_id": "g",
                "intentions": [{"action": "rest", "description": "x", "estimated_ticks": "2"}],
                "risk_assessment": "20%",
                "estimated_cost": "3.5",
                "dependencies": "a boat",
            },
            {
                "intentions": [STEP | {"action": "rest", "description": "x", "estimated_ticks": 2}],
                "risk": 0.2,
                "estimated_cost": 3.5,
                "dependencies": ["a boat"],
            },
            [],
        ),
        (
            "decompositions",
            {
                "goal_id": "g",
                "intentions": [{"action": "rest", "description": "x", "estimated_ticks": -1}],
                "risk": 200,
                "estimated_ticks": 1.5,
                "estimated_cost": "much",
                "dependencies": [[]],
            },
            {
                "intentions": [STEP | {"action": "rest", "description": "x"}],
                "risk": None,
                "estimated_ticks": None,
                "estimated_cost": None,
                "dependencies": [],
            },
            [
                "decompositions[0].intentions[0].estimated_ticks",
                "decompositions[0].estimated_ticks",
                "decompositions[0].estimated_cost",
                "decompositions[0].risk",
                "decompositions[0].dependencies[0].text",
                "decompositions[0].dependencies[0]",
            ],
        ),
        ("goal_updates", {"goal_id": "g", "blocked_by": "no wind"}, {"blocked_by": "no wind"}, []),
        ("goal_updates", {"goal_id": "g", "blocked_by": "none"}, None, ["goal_updates[0]"]),
        ("goal_updates", {"goal_id": "g", "met": ["a calm day"]}, {"met": ["a calm day"]}, []),
        (
            "new_goals",
            {"title": "S", "deadline": "2026-02-01"},
            {"deadline": "2026-02-01T23:59:59.999999Z"},
            [],
        ),
        (
            "new_goals",
            {"title": "S", "deadline": "2026-02-01T10:00"},
            {"deadline": "2026-02-01T10:00:00Z"},
            [],
        ),
        (
            "new_goals",
            {"title": "S", "deadline": "2026-02-01T10:00+02:00"},
            {"deadline": "2026-02-01T08:00:00Z"},
            [],
        ),
        ("new_goals", {"title": "S", "deadline": "soon"}, {"deadline": None}, ["new_goals[0].deadline"]),
        ("new_goals", {"title": "S", "deadline": 7}, {"deadline": None}, ["new_goals[0].deadline"]),
        (
            "new_goals",
            {"title": "S", "deadline": "0001-01-01T00:00+10:00"},
            {"deadline": None},
            ["new_goals[0].deadline"],
        ),
        ("new_goals", {"title": "S", "expected_reward": 30}, {"expected_reward": 0.3}, []),
        (
            "new_goals",
            {"title": "S", "expected_reward": "nan"},
            {"expected_reward": None},
            ["new_goals[0].expected_reward"],
        ),
        (
            "decompositions",
            {"goal_id": "g", "intentions": [{"action": "recall"}, {"action": "rest", "description": "x"}]},
            {"intentions": [STEP | {"action": "rest", "description": "x"}]},
            ["decompositions[0].intentions[0]"],
        ),
    ],
)
def test_an_item_about_goals_is_parsed_leniently(
    key: str, item: Any, expected: dict[str, Any] | None, dropped: list[str]
) -> None:
    assert_parsed(key, item, expected, dropped)


def test_brainstormed_goals_have_titles_of_one_line() -> None:
    thought_up = BrainstormGoalsParams.model_validate(
        {"goals": [{"title": "Sail\x1b[31m\nout"}, {"title": "Rest\x07"}]}
    )

    assert [goal.title for goal in thought_up.goals] == ["Sail [31m out", "Rest"]


def test_a_single_value_is_reported_under_its_whole_key() -> None:
    step = {"action": "recall", "description": "look"}
    parsed = parse({"decompositions": [{"goal_id": "g", "intentions": [step], "dependencies": "a boat"}]})

    assert parsed.repairs == ("a single value under decompositions.dependencies was taken as a list of one",)
