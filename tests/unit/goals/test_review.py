"""What a look at the backlog notices, and what it suggests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from arbor.goals.plans import PlanStatus
from arbor.goals.review import Advice, GoalFlag, ReviewedGoal, flag_goal, relevance, review
from arbor.goals.values import MAX_ACTIVE, GoalLayer, GoalState

NOW = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


def seen(state: GoalState = GoalState.ACTIVE, *, idle: timedelta = timedelta(0), **of: Any) -> ReviewedGoal:
    return ReviewedGoal(
        **{"id": "g1", "title": "Map the river", "state": state, "touched_at": NOW - idle, **of}
    )


@pytest.mark.parametrize(
    ("goal", "expected"),
    [
        (seen(idle=timedelta(days=7)), ()),
        (seen(idle=timedelta(days=7, seconds=1)), (GoalFlag.STALE,)),
        (seen(GoalState.QUEUED, idle=timedelta(days=30)), ()),
        (seen(idle=timedelta(days=30), layer=GoalLayer.ASPIRATION), ()),
        (seen(idle=timedelta(days=30), layer=GoalLayer.TASK), (GoalFlag.STALE,)),
        (seen(GoalState.QUEUED, blocker="the survey"), (GoalFlag.BLOCKED,)),
        (seen(GoalState.BACKBURNER, blocker="  ", deadline=NOW - timedelta(hours=1)), (GoalFlag.OVERDUE,)),
        (seen(deadline=NOW + timedelta(hours=1)), ()),
        (
            seen(idle=timedelta(days=8), blocker="x", deadline=NOW - timedelta(days=1)),
            (GoalFlag.BLOCKED, GoalFlag.STALE, GoalFlag.OVERDUE),
        ),
        (seen(GoalState.COMPLETED, idle=timedelta(days=8), blocker="x", contradiction="y"), ()),
        (seen(contradiction="Rivers move."), (GoalFlag.CONTRADICTED,)),
        (seen(intents=3, intents_open=0, intents_done=0), (GoalFlag.DEAD_LETTERED,)),
        (seen(intents=3, intents_open=1, intents_done=0), ()),
        (seen(intents=3, intents_open=0, intents_done=1), ()),
        (seen(GoalState.QUEUED, intents=3), ()),
        (seen(plan=PlanStatus.ABANDONED, intents=2, intents_done=1), (GoalFlag.REPLAN,)),
        (seen(plan=PlanStatus.COMPLETED, intents=2, intents_done=2), (GoalFlag.CARRIED_OUT,)),
        (seen(plan=PlanStatus.ACTIVE), ()),
        (seen(plan=PlanStatus.ABANDONED, intents=2, intents_open=1), ()),
    ],
)
def test_a_review_flags_what_wants_attention(goal: ReviewedGoal, expected: tuple[GoalFlag, ...]) -> None:
    assert flag_goal(goal, NOW) == expected


@pytest.mark.parametrize(
    ("goal", "themes", "expected"),
    [
        (seen(GoalState.QUEUED), (), 0.0),
        (seen(GoalState.QUEUED, present_memories=2), (), 0.5),
        (seen(GoalState.QUEUED), ("rivers and fords",), 0.5),
        (seen(GoalState.QUEUED), ("the harbour",), 0.0),
        (seen(GoalState.QUEUED, deadline=NOW + timedelta(hours=20)), (), 1.0),
        (seen(GoalState.QUEUED, deadline=NOW + timedelta(days=3)), (), 0.0),
        (seen(GoalState.QUEUED, present_memories=1, deadline=NOW), ("river",), 2.0),
    ],
)
def test_a_goal_comes_nearer_by_memories_themes_and_deadline(
    goal: ReviewedGoal, themes: tuple[str, ...], expected: float
) -> None:
    assert relevance(goal, themes=themes, now=NOW) == expected


def advice(*goals: ReviewedGoal, themes: tuple[str, ...] = ()) -> list[tuple[Advice, str]]:
    return [(issue.advice, issue.goal_id) for issue in review(goals, themes=themes, now=NOW)]


def test_without_goals_it_suggests_to_think_of_some() -> None:
    assert advice() == [(Advice.BRAINSTORM, "")]


def test_without_an_active_goal_it_suggests_the_best_queued_one_that_nothing_blocks() -> None:
    blocked = seen(GoalState.QUEUED, id="b", blocker="rain")
    best, next_best = seen(GoalState.QUEUED, id="q1"), seen(GoalState.QUEUED, id="q2")
    assert advice(blocked, best, next_best) == [(Advice.ATTEND, "b"), (Advice.PROMOTE, "q1")]


def test_with_only_goals_for_some_day_it_suggests_to_queue_one() -> None:
    (issue,) = review([seen(GoalState.BACKBURNER)], themes=(), now=NOW)
    assert (issue.advice, issue.text) == (
        Advice.PROMOTE,
        "Map the river: make it queued, for nothing else is on your list.",
    )


def test_what_has_come_nearer_is_suggested_only_while_there_is_room() -> None:
    near = seen(GoalState.QUEUED, id="q", present_memories=1)
    active = [seen(id=f"a{number}") for number in range(MAX_ACTIVE)]
    assert advice(near, active[0]) == [(Advice.PROMOTE, "q")]
    assert advice(near, *active) == []


def test_a_goal_due_within_a_day_is_suggested_without_room_too() -> None:
    due = seen(GoalState.QUEUED, id="q", deadline=NOW + timedelta(hours=20))
    late = seen(GoalState.QUEUED, id="late", deadline=NOW + timedelta(days=3), present_memories=1)
    waits = seen(GoalState.QUEUED, id="w", deadline=NOW + timedelta(hours=20), blocker="rain")
    active = [seen(id=f"a{number}") for number in range(MAX_ACTIVE)]
    found = review([late, due, waits, *active], themes=("rivers",), now=NOW)
    assert [(issue.advice, issue.goal_id) for issue in found] == [
        (Advice.ATTEND, "w"),
        (Advice.PROMOTE, "q"),
    ]
    assert found[-1].text == (
        "Map the river: make it active, for its deadline presses; 3 goals are active, so queue one of them to make room."
    )


def test_what_goes_against_a_belief_is_suggested_to_be_given_up_and_says_against_what() -> None:
    (issue,) = review([seen(contradiction="The river is dry.")], themes=(), now=NOW)
    assert issue.advice is Advice.ABANDON
    assert "The river is dry." in issue.text


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        (seen(blocker="the survey"), "blocked by the survey"),
        (seen(idle=timedelta(days=9)), "nothing has happened to it for 9 days"),
        (seen(deadline=NOW - timedelta(days=1)), "deadline has passed"),
        (seen(intents=2), "all its 2 steps have ended, and none was done"),
        (
            seen(plan=PlanStatus.ABANDONED, plan_reason="no boat", intents=1, intents_done=1),
            "given up (no boat)",
        ),
        (seen(plan=PlanStatus.COMPLETED, intents=1, intents_done=1), "every step of its plan is done"),
    ],
)
def test_each_flag_is_told_in_words(goal: ReviewedGoal, words: str) -> None:
    (issue,) = review([goal], themes=(), now=NOW)
    assert (issue.advice, issue.goal_id) == (Advice.ATTEND, "g1")
    assert words in issue.text
