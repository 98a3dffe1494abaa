"""Views of goals, intents and plans from rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from arbor.agents.genome import AgentGenome, AgentRole, AgentTraits
from arbor.goals.goal_rules import BALANCED_RISK
from arbor.goals.plans import PlanStatus, StepStatus
from arbor.goals.review import Advice, GoalFlag
from arbor.goals.values import GoalLayer, GoalSource, GoalState, GoalType
from arbor.heartbeat.goal_situation import circumstances_of, read_priority_inputs, view_goals, view_plans

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
_GOAL: dict[str, Any] = {
    "id": "goal-1",
    "title": "Map",
    "description": "Every path.",
    "state": "active",
    "layer": "task",
    "source": "role",
    "fraction": 0.25,
    "deadline": None,
    "touched_at": "2026-05-01T11:00:00+00:00",
    "parent_id": "goal-0",
    "expected_reward": None,
    "effort": 3,
    "emotional_valence": -0.5,
    "rule": "role",
    "notes": ["last", "first"],
    "blocker": "no boat",
    "contradiction": None,
    "is_present": False,
    "intents": 2,
    "intents_open": 1,
    "intents_done": 1,
    "actions": ["recall"],
    "plan": None,
    "plan_reason": None,
    "type": "avoid",
    "priority": 50,
}


def goal_row(**changes: Any) -> list[Any]:
    """Return a goal as the query returns it: an array of values in the order of `_GOAL`."""
    return list({**_GOAL, **changes}.values())


def intent_row(**changes: Any) -> dict[str, Any]:
    return {
        "id": "intent-1",
        "goal_id": "goal-1",
        "action": "recall",
        "description": "Recall it.",
        "status": "pending",
        "attempts": 1,
        "ticks_used": 2,
        "tick_limit": None,
        "locked_at": None,
        "held": False,
        **changes,
    }


def test_the_view_of_a_goal_has_all_values_of_its_row() -> None:
    view = view_goals({"goals": [goal_row(deadline="2026-05-02T12:00:00+00:00")]}, traits=None, now=NOW)
    (goal,) = view["goals"]
    assert goal.model_dump(exclude={"priority"}) == {
        "id": "goal-1",
        "title": "Map",
        "description": "Every path.",
        "state": GoalState.ACTIVE,
        "layer": GoalLayer.TASK,
        "type": GoalType.AVOID,
        "source": GoalSource.ROLE,
        "fraction": 0.25,
        "notes": ["first", "last"],
        "deadline": NOW + timedelta(days=1),
        "flags": [GoalFlag.BLOCKED],
        "parent_id": "goal-0",
        "blocked_by": "no boat",
        "effort": 3,
        "emotional_valence": -0.5,
        "rule": "role",
    }
    assert goal.priority > 0
    assert [(issue.advice, issue.goal_id) for issue in view["issues"]] == [(Advice.ATTEND, "goal-1")]
    assert (view["intents"], view["plans"]) == ([], [])


def test_a_repeated_note_is_shown_once() -> None:
    rows = [goal_row(notes=["on it", "begun", "on it"])]
    assert view_goals({"goals": rows}, traits=None, now=NOW)["goals"][0].notes == ["begun", "on it"]


def test_a_stated_priority_orders_goals_otherwise_alike() -> None:
    rows = [goal_row(id=f"goal-{stated}", priority=stated) for stated in (20, 90, 50)]
    goals = view_goals({"goals": rows}, traits=None, now=NOW)["goals"]
    assert [goal.id for goal in goals] == ["goal-90", "goal-50", "goal-20"]


@pytest.mark.parametrize(
    ("changes", "flags"),
    [
        ({}, []),
        ({"touched_at": "2026-04-20T11:00:00+00:00"}, [GoalFlag.STALE]),
        ({"touched_at": "2026-04-20T11:00:00+00:00", "layer": "aspiration"}, []),
        ({"deadline": "2026-05-01T11:59:59+00:00"}, [GoalFlag.OVERDUE]),
        ({"contradiction": "It is dry."}, [GoalFlag.CONTRADICTED]),
        ({"intents_open": 0, "intents_done": 0}, [GoalFlag.DEAD_LETTERED]),
        ({"intents_open": 0, "plan": "abandoned", "plan_reason": "no boat"}, [GoalFlag.REPLAN]),
        ({"intents_open": 0, "plan": "completed"}, [GoalFlag.CARRIED_OUT]),
        ({"intents_open": 0, "intents_done": 0, "plan": "completed", "state": "queued"}, []),
    ],
)
def test_a_goal_is_flagged_by_the_values_of_its_row(changes: dict[str, Any], flags: list[GoalFlag]) -> None:
    (goal,) = view_goals({"goals": [goal_row(blocker="", **changes)]}, traits=None, now=NOW)["goals"]
    assert goal.flags == flags


def test_a_queued_goal_with_activated_memories_is_suggested() -> None:
    rows = [
        goal_row(id=f"goal-{is_present}", title=title, state="queued", blocker="", is_present=is_present)
        for title, is_present in (("Map the coast", False), ("Learn the stars", True))
    ]
    issues = view_goals({"goals": rows}, traits=None, now=NOW)["issues"]
    assert [(issue.advice, issue.goal_id) for issue in issues] == [(Advice.PROMOTE, "goal-True")]


def test_goals_are_sorted_by_priority() -> None:
    rows = [
        goal_row(id=f"goal-{number}", deadline=(NOW + timedelta(hours=hours)).isoformat())
        for number, hours in enumerate((400, 2, 60))
    ]
    view = view_goals({"goals": rows}, traits=None, now=NOW)
    assert [goal.id for goal in view["goals"]] == ["goal-1", "goal-2", "goal-0"]


@pytest.mark.parametrize(
    ("status", "age", "is_own", "expected"),
    [
        ("pending", None, False, "pending"),
        ("locked", 59, False, "locked"),
        ("locked", 60, False, "pending"),
        ("locked", 3600, True, "locked"),
        ("locked", None, False, "pending"),
    ],
)
def test_an_expired_lock_does_not_count(status: str, age: int | None, is_own: bool, expected: str) -> None:
    locked_at = None if age is None else (NOW - timedelta(seconds=age)).isoformat()
    row = intent_row(status=status, locked_at=locked_at, held=is_own)
    (intent,) = view_goals({"intents": [row]}, traits=None, now=NOW)["intents"]
    assert (intent.status, intent.attempts, intent.ticks_used) == (expected, 1, 2)


def test_plans_are_loaded_with_their_steps() -> None:
    step = {"position": 1, "action": "recall", "description": "a", "status": "waiting"}
    row = {"id": "plan-1", "goal_id": "goal-1", "status": "draft", "risk": 0.5, "steps": [step]}
    (plan,) = view_plans({"plans": [row]})
    assert (plan.status, plan.risk, plan.steps[0].status) == (PlanStatus.DRAFT, 0.5, StepStatus.WAITING)


def test_priority_inputs_are_read_from_the_row() -> None:
    priority_inputs = read_priority_inputs(
        {"learned": {"recall": [4, 3]}, "experienced": {"role": [0.5, 3]}}, traits=None, now=NOW
    )
    experienced = priority_inputs.experienced[GoalSource.ROLE]
    assert (experienced.mean, experienced.goals, priority_inputs.learned, priority_inputs.now) == (
        0.5,
        3,
        {"recall": [4, 3]},
        NOW,
    )
    assert read_priority_inputs({"learned": None}, traits=None, now=NOW).experienced == {}


def test_circumstances_are_those_of_the_row_and_the_genome() -> None:
    row = {"reputation": [3, 4], "stale_heartbeats": 5, "ended_rules": None}
    circumstances = circumstances_of(row, None, exhausted_heartbeats=2)
    assert (
        circumstances.role,
        circumstances.risk_tolerance,
        circumstances.reputation,
        circumstances.dealings,
    ) == (None, BALANCED_RISK, 0.75, 4)
    assert (circumstances.stale_heartbeats, circumstances.exhausted_heartbeats) == (5, 2)
    traits = AgentTraits(risk_tolerance=0.9, collaboration=0.4, depth_vs_breadth=0.5, quality_vs_speed=0.3)
    genome = AgentGenome(role=AgentRole.EXPLORER, traits=traits)
    without_dealings = circumstances_of({**row, "reputation": [0, 0]}, genome, exhausted_heartbeats=0)
    assert (without_dealings.role, without_dealings.risk_tolerance, without_dealings.reputation) == (
        AgentRole.EXPLORER,
        0.9,
        None,
    )
