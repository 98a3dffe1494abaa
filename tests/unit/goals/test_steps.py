"""Plans of a backlog, and the intents that heartbeats lock, try, defer and abandon."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import uuid4

import pytest

from arbor.errors import AlreadyExists, ArborError, Invalid, LimitReached, NotFound, TransitionIllegal
from arbor.goals.backlog import Backlog
from arbor.goals.commitments import require_active
from arbor.goals.intents import MAX_ATTEMPTS, STALE_LOCK, IntentStatus
from arbor.goals.plans import MAX_STEPS, PlanStatus, StepStatus
from arbor.goals.rows import IntentRow
from arbor.goals.values import FEELING_OF_FAILED_STEP, GoalState
from arbor.ids import uuid7
from tests.unit.goals.builders import (
    HEARTBEAT,
    NOW,
    backlog_of,
    commit_steps,
    draft_of,
    goal_row,
    intent_row,
    plan_rows,
)

P, L, C, F, X = (
    IntentStatus.PENDING,
    IntentStatus.LOCKED,
    IntentStatus.COMPLETED,
    IntentStatus.FAILED,
    IntentStatus.ABANDONED,
)


def new_intents(backlog: Backlog) -> list[IntentRow]:
    return list(backlog.changes().new_intents)


def test_a_plan_commits_three_steps_and_the_next_as_one_is_done() -> None:
    goal = goal_row()
    backlog = backlog_of(goal)
    plan, steps = backlog.plan(goal.id, draft_of("a", "b", "c", "d"))
    assert [intent.description for intent in new_intents(backlog)] == ["a", "b", "c"]
    assert [step.status for step in steps] == [*[StepStatus.COMMITTED] * 3, StepStatus.WAITING]
    backlog.record_attempt(new_intents(backlog)[0].id)
    assert [(intent.description, intent.status, intent.step_id) for intent in new_intents(backlog)] == [
        (step.description, status, step.id) for step, status in zip(steps, (C, P, P, P), strict=True)
    ]
    for intent in new_intents(backlog)[1:]:
        backlog.record_attempt(intent.id)
    assert (plan.status, plan.ended_at) == (PlanStatus.COMPLETED, NOW)
    assert goal.touched_at == NOW


def test_a_goal_has_one_active_plan_which_grows() -> None:
    goal = goal_row()
    plan, steps = plan_rows(goal, "a", estimated_ticks=2, risk=0.4, dependencies=["a boat"])
    backlog = backlog_of(goal, plans=[(plan, steps)])
    draft = draft_of(
        "A ", "b", estimated_ticks=3, estimated_cost=1.5, risk=0.2, dependencies=["a boat", "a net"]
    )
    grown, planned = backlog.plan(goal.id, draft)
    assert (grown, [(step.position, step.description) for step in planned]) == (plan, [(2, "b")])
    assert (plan.estimated_ticks, plan.estimated_cost, plan.risk) == (5, 1.5, 0.4)
    assert plan.dependencies == ["a boat", "a net"]
    assert backlog.changes().changed_plans == (plan,)


@pytest.mark.parametrize(
    ("texts", "error", "why"),
    [
        (("a",), AlreadyExists, "planned already"),
        (tuple(map(str, range(MAX_STEPS))), LimitReached, "at most 20 steps; this one would have 21"),
        ((), Invalid, "at least one step"),
    ],
)
def test_a_refused_extension_does_not_change_the_plan(
    texts: Sequence[str], error: type[ArborError], why: str
) -> None:
    goal = goal_row()
    backlog = backlog_of(goal, plans=[plan_rows(goal, "a")])
    with pytest.raises(error, match=why):
        backlog.plan(goal.id, draft_of(*texts))
    assert not backlog.changes()


def test_a_draft_waits_to_be_started_and_a_plan_for_its_goal() -> None:
    goal = goal_row(state=GoalState.QUEUED)
    backlog = backlog_of(goal)
    draft, _ = backlog.plan(goal.id, draft_of("a"), as_draft=True)
    assert (draft.status, new_intents(backlog)) == (PlanStatus.DRAFT, [])
    assert backlog.start(draft.id).status is PlanStatus.ACTIVE
    assert new_intents(backlog) == []
    backlog.move(goal.id, GoalState.ACTIVE)
    assert [intent.description for intent in new_intents(backlog)] == ["a"]
    other, _ = backlog.plan(goal.id, draft_of("b"), as_draft=True)
    with pytest.raises(AlreadyExists, match="'Map' has an active plan already"):
        backlog.start(other.id)
    with pytest.raises(NotFound, match="there is no open plan"):
        backlog.start(uuid4())


@pytest.mark.parametrize("by_person", [False, True])
def test_an_abandoned_plan_abandons_its_steps(by_person: bool) -> None:
    goal = goal_row()
    plan, steps = plan_rows(goal, "a", "b")
    intent = intent_row(
        goal, step_id=commit_steps(steps[:1])[0].id, status=L, locked_by=HEARTBEAT, locked_at=NOW
    )
    backlog = backlog_of(
        goal, intents=[intent], plans=[(plan, steps)], heartbeat_id=None if by_person else HEARTBEAT
    )
    with pytest.raises(Invalid, match="needs a reason"):
        backlog.abandon(plan.id, " ")
    backlog.abandon(plan.id, " The pilots moved away. ")
    assert (plan.status, plan.reason, plan.ended_at) == (PlanStatus.ABANDONED, "The pilots moved away.", NOW)
    assert {step.status for step in steps} == {StepStatus.ABANDONED}
    assert (intent.status, intent.locked_by, intent.ended_at) == (X, None, NOW)
    assert intent.last_error == "its plan is given up: The pilots moved away."
    contents = [percept.content for percept in backlog.changes().percepts]
    expected = "Your plan for 'Map' was given up by a person: The pilots moved away."
    assert contents == ([expected] if by_person else [])


def test_a_closed_goal_closes_its_plans_and_intents() -> None:
    goal = goal_row()
    plan, steps = plan_rows(goal, "a")
    draft, draft_steps = plan_rows(goal, "b", status=PlanStatus.DRAFT)
    of_plan = intent_row(goal, step_id=commit_steps(steps)[0].id)
    alone = intent_row(goal)
    backlog = backlog_of(
        goal, intents=[of_plan, alone], plans=[(plan, steps), (draft, draft_steps)], heartbeat_id=None
    )
    backlog.move(goal.id, GoalState.COMPLETED)
    assert {row.status for row in (plan, draft)} == {PlanStatus.ABANDONED}
    assert {row.reason for row in (plan, draft)} == {"its goal is completed"}
    assert {(intent.status, intent.last_error) for intent in (of_plan, alone)} == {
        (X, "its goal is completed")
    }
    (percept,) = backlog.changes().percepts
    assert percept.content.endswith("was completed by a person. 2 open steps towards it were dropped.")


@pytest.mark.parametrize("state", [GoalState.QUEUED, GoalState.BACKBURNER])
def test_only_an_active_goal_is_broken_into_intents(state: GoalState) -> None:
    goal = goal_row(state=state)
    with pytest.raises(TransitionIllegal, match=f"only an active goal .*; 'Map' is {state}"):
        require_active(goal)
    backlog = backlog_of(goal)
    backlog.plan(goal.id, draft_of("a"))
    assert new_intents(backlog) == []


def test_one_failure_does_not_end_a_step_that_is_done_in_parts() -> None:
    goal = goal_row()
    intent = intent_row(goal, tick_limit=30)
    backlog = backlog_of(goal, intents=[intent])
    for _ in range(4):
        backlog.record_attempt(intent.id, part=True)
    backlog.record_attempt(intent.id, error="fog")
    assert (intent.status, intent.attempts, intent.ticks_used) == (P, 1, 5)


@pytest.mark.parametrize(
    ("attempts", "ticks", "limit", "result", "status", "kind"),
    [
        (0, 1, None, {"error": "nothing"}, P, None),
        (1, 2, None, {"error": "nothing"}, P, None),
        (MAX_ATTEMPTS - 1, 3, None, {"error": "nothing"}, X, "action_result"),
        (0, 1, 1, {"error": "nothing"}, X, "timeout"),
        (MAX_ATTEMPTS - 1, 3, 3, {"error": "nothing"}, X, "action_result"),
        (0, 1, None, {"error": "no such action", "final": True}, F, "action_result"),
        (0, 3, 3, {"error": "no such action", "final": True}, F, "action_result"),
        (0, 1, None, {}, C, None),
        (0, 1, None, {"part": True}, C, None),
        (0, 1, 9, {"part": True}, P, None),
        (0, 3, 9, {"part": True}, C, None),
    ],
)
def test_an_attempt_updates_status_and_lock_of_its_intent(
    attempts: int,
    ticks: int,
    limit: int | None,
    result: dict[str, object],
    status: IntentStatus,
    kind: str | None,
) -> None:
    goal = goal_row()
    intent = intent_row(
        goal,
        status=L,
        attempts=attempts,
        ticks_used=ticks,
        tick_limit=limit,
        locked_by=HEARTBEAT,
        locked_at=NOW,
    )
    backlog = backlog_of(goal, intents=[intent])
    assert backlog.record_attempt(str(intent.id), **result) is intent  # type: ignore[arg-type]
    # A part within the estimate is no attempt of three.
    counted = "part" not in result or status is not P
    assert (intent.status, intent.attempts, intent.ticks_used) == (status, attempts + counted, ticks)
    assert (intent.locked_by, intent.locked_at) == (None, None)
    assert (intent.ended_at, intent.last_error) == (NOW if status is not P else None, result.get("error", ""))
    assert [percept.kind for percept in backlog.changes().percepts] == ([kind] if kind else [])
    assert goal.emotional_valence == (FEELING_OF_FAILED_STEP if "error" in result else 0.0)


def test_an_attempt_at_an_unlocked_intent_counts_the_heartbeat() -> None:
    goal = goal_row()
    intent = intent_row(goal)
    backlog = backlog_of(goal, intents=[intent])
    backlog.record_attempt(intent.id, error="nothing came to mind")
    assert (intent.status, intent.ticks_used, intent.attempts) == (P, 1, 1)


def test_a_permanently_failed_step_abandons_its_plan() -> None:
    goal = goal_row()
    plan, steps = plan_rows(goal, "a", "b")
    first, second = (
        intent_row(goal, step_id=step.id, description=step.description) for step in commit_steps(steps)
    )
    backlog = backlog_of(goal, intents=[first, second], plans=[(plan, steps)])
    backlog.record_attempt(first.id, error="no boat.", final=True)
    assert (first.status, second.status) == (F, X)
    assert (plan.status, plan.reason) == (PlanStatus.ABANDONED, "step 1 failed for good: no boat.")
    (percept,) = backlog.changes().percepts
    assert percept.content == (
        "You gave up the step 'a' (recall) towards 'Map': no boat."
        " Its plan is given up with it; the goal needs another."
    )
    assert percept.detail == {"goal": str(goal.id), "intent": str(first.id)}


OTHER_HEARTBEAT = uuid7()
OLD = NOW - STALE_LOCK
YOUNG = OLD + timedelta(seconds=1)


@pytest.mark.parametrize(
    ("status", "locked_by", "locked_at", "is_alive", "locks"),
    [
        (P, None, None, False, True),
        (L, OTHER_HEARTBEAT, OLD, False, True),
        (L, OTHER_HEARTBEAT, YOUNG, False, False),
        (L, OTHER_HEARTBEAT, OLD, True, False),
        (L, HEARTBEAT, OLD, False, False),
        (C, None, None, False, False),
        (X, None, None, False, False),
    ],
)
@pytest.mark.parametrize("again", [False, True])
def test_a_heartbeat_locks_pending_intents_and_expired_locks(
    status: IntentStatus, locked_by: object, locked_at: object, is_alive: bool, locks: bool, again: bool
) -> None:
    goal = goal_row()
    intent = intent_row(goal, status=status, locked_by=locked_by, locked_at=locked_at, ticks_used=2)
    backlog = backlog_of(goal, intents=[intent], running=[intent] if is_alive else [])
    backlog.lock_intents([intent.id, intent.id, uuid4()], again=[intent.id] if again else ())
    if locks:
        ticks = 2 if again else 3
        assert (intent.status, intent.locked_by, intent.locked_at, intent.ticks_used) == (
            L,
            HEARTBEAT,
            NOW,
            ticks,
        )
        assert backlog.changes().changed_intents == (intent,)
    else:
        assert (intent.status, intent.locked_by, intent.ticks_used) == (status, locked_by, 2)
        assert not backlog.changes()


def test_a_person_cannot_lock_an_intent() -> None:
    goal = goal_row()
    intent = intent_row(goal)
    with pytest.raises(Invalid, match="by a heartbeat"):
        backlog_of(goal, intents=[intent], heartbeat_id=None).lock_intents([intent.id])
    assert intent.status is P


@pytest.mark.parametrize(
    ("status", "counted", "expected"), [(L, True, 1), (L, False, 2), (P, True, 2), (P, False, 2)]
)
def test_a_deferred_intent_is_pending_without_an_attempt(
    status: IntentStatus, counted: bool, expected: int
) -> None:
    goal = goal_row()
    intent = intent_row(goal, status=status, locked_by=HEARTBEAT if status is L else None, ticks_used=2)
    backlog_of(goal, intents=[intent]).release_untried(intent.id, counted=counted)
    assert (intent.status, intent.ticks_used, intent.attempts, intent.locked_by) == (P, expected, 0, None)


@pytest.mark.parametrize("status", [C, F, X])
def test_an_intent_that_has_ended_is_not_found(status: IntentStatus) -> None:
    goal = goal_row()
    intent = intent_row(goal, status=status)
    backlog = backlog_of(goal, intents=[intent])
    for wrong in (str(intent.id), "not-an-id"):
        with pytest.raises(NotFound, match=f"there is no open intent {wrong}"):
            backlog.intent(wrong)
