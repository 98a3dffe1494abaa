"""Dependencies of plans, and preconditions and postconditions of their steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from uuid import UUID

import pytest

from arbor.errors import Invalid
from arbor.goals.backlog import Backlog
from arbor.goals.conditions import names_goal, unmet
from arbor.goals.intents import MAX_ATTEMPTS, IntentStatus
from arbor.goals.plans import PlanDraft, StepDraft
from arbor.goals.rows import GoalRow
from arbor.goals.values import GoalState
from arbor.quotations import line, shorten
from tests.unit.goals.builders import backlog_of, goal_row

REEF = goal_row("Sound the reef", id=UUID(int=1))
BOAT = goal_row("Buy a boat", id=UUID(int=2))


def plan(backlog: Backlog, *steps: StepDraft, needs: Sequence[str] = ()) -> None:
    backlog.plan(REEF.id, PlanDraft(steps=steps, dependencies=needs))


def step(description: str = "sound it", before: str = "", after: str = "") -> StepDraft:
    return StepDraft(action="recall", description=description, precondition=before, postcondition=after)


def committed_steps(backlog: Backlog) -> list[str]:
    return [intent.description for intent in backlog.changes().new_intents]


def backlog_of_copies(*goals: GoalRow) -> Backlog:
    """Return a backlog with copies of these goals."""
    return backlog_of(*map(copy, goals))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (str(BOAT.id), True),
        (f"[{BOAT.id}]", True),
        (BOAT.title.upper(), True),
        ("a boat", False),
        (str(REEF.id), False),
    ],
)
def test_a_condition_names_a_goal_by_id_or_title(text: str, named: bool) -> None:
    assert names_goal(text, goal_id=BOAT.id, title=BOAT.title) is named


def test_dependencies_are_met_in_any_case_and_spacing() -> None:
    assert unmet(["A boat", "a net"], ["a  BOAT"]) == ["a net"]


def test_a_plan_waits_until_all_it_depends_on_is_met() -> None:
    backlog = backlog_of_copies(REEF)
    plan(backlog, step(), needs=["a calm day", "a rope"])
    assert committed_steps(backlog) == []
    backlog.mark_dependency_met(REEF.id, "a calm day")
    assert committed_steps(backlog) == []
    with pytest.raises(Invalid, match="its plan does not wait for 'a net'; it waits for a rope"):
        backlog.mark_dependency_met(REEF.id, "a net")
    backlog.mark_dependency_met(REEF.id, "A  Rope")
    assert committed_steps(backlog) == ["sound it"]
    with pytest.raises(Invalid, match="it waits for nothing"):
        backlog.mark_dependency_met(REEF.id, "a rope")


@pytest.mark.parametrize("cut", [partial(shorten, longest=160), partial(line, longest=400)])
def test_a_dependency_is_met_in_the_words_that_a_prompt_shows(cut: Callable[[str], str]) -> None:
    long = f"a rope of {' or '.join(map(str, range(100)))} feet"
    backlog = backlog_of_copies(REEF)
    plan(backlog, step(), needs=["a calm day", long])
    for shown in ("a calm day", cut(long)):
        backlog.mark_dependency_met(REEF.id, shown)
    assert committed_steps(backlog) == ["sound it"]


@pytest.mark.parametrize("text", ["a…", "…", "a net…"])
def test_a_beginning_of_no_or_two_dependencies_names_none(text: str) -> None:
    backlog = backlog_of_copies(REEF)
    plan(backlog, step(), needs=["a calm day", "a rope"])
    with pytest.raises(Invalid, match="it waits for a calm day; a rope"):
        backlog.mark_dependency_met(REEF.id, text)


def test_a_goal_without_a_plan_has_no_dependency_to_meet() -> None:
    with pytest.raises(Invalid, match="has no active plan that could wait for 'a rope'"):
        backlog_of_copies(REEF).mark_dependency_met(REEF.id, "a rope")


@pytest.mark.parametrize("by_title", [True, False])
def test_a_completed_goal_is_met_in_plans_that_depend_on_it(by_title: bool) -> None:
    backlog = backlog_of_copies(REEF, BOAT)
    plan(backlog, step(), needs=[BOAT.title if by_title else str(BOAT.id)])
    assert committed_steps(backlog) == []
    backlog.move(BOAT.id, GoalState.COMPLETED)
    assert committed_steps(backlog) == ["sound it"]


def test_an_abandoned_goal_meets_no_dependency() -> None:
    backlog = backlog_of_copies(REEF, BOAT)
    plan(backlog, step(), needs=[BOAT.title])
    backlog.move(BOAT.id, GoalState.ABANDONED, reason="too dear")
    assert committed_steps(backlog) == []


@pytest.mark.parametrize("ended", [GoalState.COMPLETED, GoalState.ABANDONED])
def test_a_step_waits_for_the_goal_that_its_precondition_names(ended: GoalState) -> None:
    backlog = backlog_of_copies(REEF, BOAT)
    plan(backlog, step("read the table"), step("go out", before=BOAT.title), step("look"))
    assert committed_steps(backlog) == ["read the table"]
    backlog.record_attempt(backlog.changes().new_intents[0].id)
    assert committed_steps(backlog) == ["read the table"]
    backlog.move(BOAT.id, ended, reason="so")
    assert committed_steps(backlog) == ["read the table", "go out", "look"]


def test_a_plan_does_not_depend_on_its_own_goal() -> None:
    backlog = backlog_of_copies(REEF)
    plan(backlog, step(), needs=[REEF.title])
    assert committed_steps(backlog) == ["sound it"]


def test_a_part_of_a_step_does_not_bring_about_its_postcondition() -> None:
    backlog = backlog_of_copies(REEF)
    plan(backlog, step("a"), step("b", after="the depth is known"))
    plain, with_postcondition = backlog.changes().new_intents
    backlog.record_attempt(plain.id, part=True)
    assert plain.status == IntentStatus.COMPLETED
    for number in range(MAX_ATTEMPTS):
        assert with_postcondition.status == IntentStatus.PENDING, number
        backlog.record_attempt(with_postcondition.id, part=True)
    assert with_postcondition.status == IntentStatus.COMPLETED


def test_steps_of_a_plan_that_waits_are_not_locked() -> None:
    backlog = backlog_of_copies(REEF)
    plan(backlog, step())
    (intent,) = backlog.changes().new_intents
    plan(backlog, step("more"), needs=["a boat"])
    backlog.lock_intents([intent.id])
    assert (intent.status, intent.ticks_used) == (IntentStatus.PENDING, 0)
    assert backlog.unmet_dependencies(intent.id) == ["a boat"]
    backlog.mark_dependency_met(REEF.id, "a boat")
    backlog.lock_intents([intent.id])
    assert intent.status == IntentStatus.LOCKED
