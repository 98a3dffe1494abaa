"""Events of moods and drives that follow from the actions and goal changes of a heartbeat."""

from __future__ import annotations

from typing import Any

import pytest

from arbor.heartbeat.replies.reply import Reply
from arbor.heartbeat.results import ActionOutcome, ActionResult, GoalChange, GoalChangeKind
from arbor.heartbeat.steps.inner_state import (
    causes,
    events_of,
    learned_after,
    met_something_new,
    satisfactions,
)
from arbor.heartbeat.views import ActionTallyView
from arbor.selves.drives import Drive
from arbor.selves.emotions import Event
from tests.unit.heartbeat.builders import goal, percept, situation


def result(action: str, outcome: ActionOutcome = ActionOutcome.SUCCESS, cost: int = 1) -> ActionResult:
    return ActionResult(index=0, action=action, outcome=outcome, summary="so", cost=cost)


def change(kind: GoalChangeKind) -> GoalChange:
    return GoalChange(kind=kind, title="Map", change="")


def test_events_follow_from_actions_and_goal_changes() -> None:
    events = events_of(
        Reply(concerns=["the fog"]),
        [
            result("rest"),
            result("reach_out_user"),
            result("recall", ActionOutcome.FAILURE),
            result("recall", ActionOutcome.PARTIAL),
        ],
        [change(GoalChangeKind.COMPLETED), change(GoalChangeKind.MOVED)],
    )
    assert events == [Event.REST, Event.REACH_OUT, Event.FAILURE, Event.GOAL_DONE, Event.CONCERN]


@pytest.mark.parametrize("kind", [GoalChangeKind.COMPLETED, GoalChangeKind.ABANDONED, GoalChangeKind.CREATED])
def test_goal_changes_by_rule_are_no_achievement(kind: GoalChangeKind) -> None:
    changes = [change(kind).model_copy(update={"by_rule": True})]
    assert events_of(Reply(), [], changes) == []
    assert satisfactions(situation(), [], changes) == []


def test_successful_actions_satisfy_drives() -> None:
    view = situation(percepts=[percept("hello", kind="peer_message")])
    results = [result("recall"), result("reflect", ActionOutcome.FAILURE), result("rest")]
    assert satisfactions(view, results, [change(GoalChangeKind.COMPLETED)]) == [
        (Drive.CURIOSITY, 0.2),
        (Drive.REST, 0.4),
        (Drive.COMPETENCE, 0.4),
        (Drive.CONNECTION, 0.3),
    ]


@pytest.mark.parametrize(
    ("view", "results", "changes", "new"),
    [
        (situation(), [], [], False),
        (situation(), [result("recall")], [], True),
        (
            situation(capabilities=[ActionTallyView(action="recall", attempts=1, successes=0)]),
            [result("recall")],
            [],
            False,
        ),
        (situation(percepts=[percept("hello")]), [], [], True),
        (situation(), [], [change(GoalChangeKind.CREATED)], True),
        (situation(), [], [change(GoalChangeKind.CREATED).model_copy(update={"by_rule": True})], False),
        (situation(), [result("rest", cost=0)], [change(GoalChangeKind.PROGRESSED)], False),
    ],
)
def test_only_new_encounters_and_results_satisfy_curiosity(
    view: Any, results: list[ActionResult], changes: list[GoalChange], new: bool
) -> None:
    assert met_something_new(view, results, changes) is new
    assert causes(view, results, changes, met_new=new)[Drive.CURIOSITY] is not new


@pytest.mark.parametrize(
    ("view", "results", "changes", "builds"),
    [
        (situation(goals=[goal(fraction=0.1)]), [result("recall")], [], False),
        (situation(), [result("recall", ActionOutcome.FAILURE)], [], True),
        (situation(goals=[goal(flags=["stale"])]), [], [], True),
        (situation(goals=[goal(flags=["blocked"])]), [], [], True),
        (situation(), [], [GoalChange(kind=GoalChangeKind.REFUSED, title="x", change="y")], True),
    ],
)
def test_competence_builds_when_effort_fails_or_lags(
    view: Any, results: list[ActionResult], changes: list[GoalChange], builds: bool
) -> None:
    assert causes(view, results, changes, met_new=False)[Drive.COMPETENCE] is builds


def test_resting_is_no_work_whatever_it_costs() -> None:
    resting = [result("rest").model_copy(update={"cost": 1})]

    assert not causes(situation(), resting, [], met_new=False)[Drive.REST]
    assert not met_something_new(situation(), resting, [])


def test_refused_actions_do_not_count_as_attempts() -> None:
    results = [
        result("recall"),
        result("recall", ActionOutcome.FAILURE),
        result("reflect", ActionOutcome.BLOCKED),
    ]
    assert learned_after({"recall": [3, 2], "rest": [1, 1]}, results) == {"recall": [5, 3], "rest": [1, 1]}
