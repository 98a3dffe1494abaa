"""Reviews of a backlog: flags and advice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from arbor.goals.plans import PlanStatus
from arbor.goals.review import Advice, GoalFlag, ReviewedGoal, flag_goal, relevance, review
from arbor.goals.values import MAX_ACTIVE, MAX_QUEUED, GoalLayer, GoalState

NOW = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


def reviewed_goal(
    state: GoalState = GoalState.ACTIVE, *, idle: timedelta = timedelta(0), **changes: Any
) -> ReviewedGoal:
    return ReviewedGoal(
        **{"id": "g1", "title": "Map the river", "state": state, "touched_at": NOW - idle, **changes}
    )


@pytest.mark.parametrize(
    ("goal", "expected"),
    [
        (reviewed_goal(idle=timedelta(days=7)), ()),
        (reviewed_goal(idle=timedelta(days=7, seconds=1)), (GoalFlag.STALE,)),
        (reviewed_goal(GoalState.QUEUED, idle=timedelta(days=30)), ()),
        (reviewed_goal(idle=timedelta(days=30), layer=GoalLayer.ASPIRATION), ()),
        (reviewed_goal(idle=timedelta(days=30), layer=GoalLayer.TASK), (GoalFlag.STALE,)),
        (reviewed_goal(GoalState.QUEUED, blocker="the survey"), (GoalFlag.BLOCKED,)),
        (
            reviewed_goal(GoalState.BACKBURNER, blocker="  ", deadline=NOW - timedelta(hours=1)),
            (GoalFlag.OVERDUE,),
        ),
        (reviewed_goal(deadline=NOW + timedelta(hours=1)), ()),
        (
            reviewed_goal(idle=timedelta(days=8), blocker="x", deadline=NOW - timedelta(days=1)),
            (GoalFlag.BLOCKED, GoalFlag.STALE, GoalFlag.OVERDUE),
        ),
        (reviewed_goal(GoalState.COMPLETED, idle=timedelta(days=8), blocker="x", contradiction="y"), ()),
        (reviewed_goal(contradiction="Rivers move."), (GoalFlag.CONTRADICTED,)),
        (reviewed_goal(intents=3, intents_open=0, intents_done=0), (GoalFlag.DEAD_LETTERED,)),
        (reviewed_goal(intents=3, intents_open=1, intents_done=0), ()),
        (reviewed_goal(intents=3, intents_open=0, intents_done=1), ()),
        (reviewed_goal(GoalState.QUEUED, intents=3), ()),
        (reviewed_goal(plan=PlanStatus.ABANDONED, intents=2, intents_done=1), (GoalFlag.REPLAN,)),
        (reviewed_goal(plan=PlanStatus.COMPLETED, intents=2, intents_done=2), (GoalFlag.CARRIED_OUT,)),
        (reviewed_goal(plan=PlanStatus.ACTIVE), ()),
        (reviewed_goal(plan=PlanStatus.ABANDONED, intents=2, intents_open=1), ()),
    ],
)
def test_a_review_flags_goals_that_need_attention(goal: ReviewedGoal, expected: tuple[GoalFlag, ...]) -> None:
    assert flag_goal(goal, NOW) == expected


@pytest.mark.parametrize(
    ("goal", "clusters", "expected"),
    [
        (reviewed_goal(GoalState.QUEUED), (), 0.0),
        (reviewed_goal(GoalState.QUEUED, present_memories=2), (), 0.5),
        (reviewed_goal(GoalState.QUEUED), ("rivers and fords",), 0.5),
        (reviewed_goal(GoalState.QUEUED), ("the harbour",), 0.0),
        (reviewed_goal(GoalState.QUEUED, deadline=NOW + timedelta(hours=20)), (), 1.0),
        (reviewed_goal(GoalState.QUEUED, deadline=NOW + timedelta(days=3)), (), 0.0),
        (reviewed_goal(GoalState.QUEUED, present_memories=1, deadline=NOW), ("river",), 2.0),
    ],
)
def test_memories_clusters_and_deadlines_raise_the_relevance(
    goal: ReviewedGoal, clusters: tuple[str, ...], expected: float
) -> None:
    assert relevance(goal, cluster_names=clusters, now=NOW) == expected


def advice(*goals: ReviewedGoal, clusters: tuple[str, ...] = ()) -> list[tuple[Advice, str]]:
    return [(issue.advice, issue.goal_id) for issue in review(goals, cluster_names=clusters, now=NOW)]


def test_a_review_without_goals_suggests_new_ones() -> None:
    assert advice() == [(Advice.BRAINSTORM, "")]


def test_without_an_active_goal_the_best_unblocked_one_is_suggested() -> None:
    blocked = reviewed_goal(GoalState.QUEUED, id="b", blocker="rain")
    best, next_best = reviewed_goal(GoalState.QUEUED, id="q1"), reviewed_goal(GoalState.QUEUED, id="q2")
    assert advice(blocked, best, next_best) == [(Advice.ATTEND, "b"), (Advice.PROMOTE, "q1")]


def test_a_blocked_goal_of_the_back_burner_is_not_suggested() -> None:
    blocked = reviewed_goal(GoalState.BACKBURNER, id="b", blocker="rain")
    assert advice(blocked) == [(Advice.ATTEND, "b")]
    free = reviewed_goal(GoalState.BACKBURNER, id="f")
    assert (Advice.PROMOTE, "f") in advice(blocked, free)


def test_a_review_of_back_burner_goals_suggests_to_queue_one() -> None:
    (issue,) = review([reviewed_goal(GoalState.BACKBURNER)], cluster_names=(), now=NOW)
    assert (issue.advice, issue.text) == (
        Advice.PROMOTE,
        "Map the river: make it queued, for nothing else is on your list.",
    )


def test_a_goal_is_not_suggested_for_a_queue_without_room() -> None:
    blocked = [
        reviewed_goal(GoalState.QUEUED, id=f"q{number}", blocker="rain") for number in range(MAX_QUEUED)
    ]
    free = reviewed_goal(GoalState.BACKBURNER, id="f")
    *_, issue = review([*blocked[1:], free], cluster_names=(), now=NOW)
    assert (issue.goal_id, issue.text) == (
        "f",
        "Map the river: make it queued, for all that is queued is blocked.",
    )
    assert (Advice.PROMOTE, "f") not in advice(*blocked, free)


def test_a_goal_in_mind_is_suggested_only_while_there_is_room() -> None:
    near = reviewed_goal(GoalState.QUEUED, id="q", present_memories=1)
    active = [reviewed_goal(id=f"a{number}") for number in range(MAX_ACTIVE)]
    assert advice(near, active[0]) == [(Advice.PROMOTE, "q")]
    assert advice(near, *active) == []


def test_a_goal_due_within_a_day_is_suggested_without_room_too() -> None:
    due = reviewed_goal(GoalState.QUEUED, id="q", deadline=NOW + timedelta(hours=20))
    late = reviewed_goal(GoalState.QUEUED, id="late", deadline=NOW + timedelta(days=3), present_memories=1)
    waits = reviewed_goal(GoalState.QUEUED, id="w", deadline=NOW + timedelta(hours=20), blocker="rain")
    active = [reviewed_goal(id=f"a{number}") for number in range(MAX_ACTIVE)]
    issues = review([late, due, waits, *active], cluster_names=("rivers",), now=NOW)
    assert [(issue.advice, issue.goal_id) for issue in issues] == [
        (Advice.ATTEND, "w"),
        (Advice.PROMOTE, "q"),
    ]
    assert issues[-1].text == (
        "Map the river: make it active, for its deadline presses; 3 goals are active, so queue one of them to make room."
    )


def test_a_task_is_suggested_where_only_aspirations_are_active() -> None:
    task = reviewed_goal(GoalState.QUEUED, id="q", layer=GoalLayer.TASK)
    dream = reviewed_goal(GoalState.QUEUED, id="d", layer=GoalLayer.ASPIRATION)
    active = [reviewed_goal(id=f"a{number}", layer=GoalLayer.ASPIRATION) for number in range(MAX_ACTIVE)]
    (issue,) = review([dream, task, *active], cluster_names=(), now=NOW)
    assert (issue.advice, issue.goal_id) == (Advice.PROMOTE, "q")
    assert issue.text == (
        "Map the river: make it active, for no active goal calls for work; 3 aspirations are active, so queue one of them to"
        " make room."
    )


def test_a_goal_against_a_belief_is_suggested_to_be_abandoned() -> None:
    (issue,) = review([reviewed_goal(contradiction="The river is dry.")], cluster_names=(), now=NOW)
    assert issue.advice is Advice.ABANDON
    assert "The river is dry." in issue.text


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        (reviewed_goal(blocker="the survey"), "blocked by the survey"),
        (reviewed_goal(idle=timedelta(days=9)), "nothing has happened to it for 9 days"),
        (reviewed_goal(deadline=NOW - timedelta(days=1)), "deadline has passed"),
        (reviewed_goal(intents=2), "all its 2 steps have ended, and none was done"),
        (reviewed_goal(intents=1), "its only step has ended, and was not done"),
        (
            reviewed_goal(plan=PlanStatus.ABANDONED, plan_reason="no boat", intents=1, intents_done=1),
            "given up (no boat)",
        ),
        (
            reviewed_goal(plan=PlanStatus.COMPLETED, intents=1, intents_done=1),
            "every step of its plan is done",
        ),
    ],
)
def test_each_flag_is_described_in_words(goal: ReviewedGoal, words: str) -> None:
    (issue,) = review([goal], cluster_names=(), now=NOW)
    assert (issue.advice, issue.goal_id) == (Advice.ATTEND, "g1")
    assert words in issue.text


def test_goals_on_the_back_burner_are_flagged_last() -> None:
    passed = NOW - timedelta(days=1)
    shelved = reviewed_goal(title="old", state=GoalState.BACKBURNER, deadline=passed)
    current = reviewed_goal(title="new", state=GoalState.ACTIVE, deadline=passed)
    issues = review([shelved, current], cluster_names=[], now=NOW)
    assert [issue.text.partition(":")[0] for issue in issues] == ["new", "old"]
