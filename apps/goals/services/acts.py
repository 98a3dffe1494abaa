"""Change goals and plans for people and programs, with the same audit records for every caller."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.goals.models import Goal, Plan
from apps.goals.services.goals import (
    abandon_plan,
    add_plan,
    block_goal,
    create_goal,
    move_goal,
    place_goal,
    plans_of,
    record_met_dependency,
    record_progress,
    set_deadline,
    start_plan,
)
from arbor.errors import Invalid, NotFound
from arbor.goals.plans import PlanDraft, PlanStatus
from arbor.goals.values import DESCRIPTION_LENGTH, GoalState
from arbor.memory.content import check_line
from arbor.quotations import counted

#: The longest reason of people and programs for a new state of a goal, or for the end of a plan.
REASON_LENGTH = 500


class Unchanged(Enum):
    """The default of the fields of `GoalEdit` in which None removes the parent or the deadline."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED


@dataclass(frozen=True, kw_only=True)
class GoalEdit:
    """The changes of a goal; the defaults change nothing."""

    parent_id: UUID | Unchanged | None = UNCHANGED
    deadline: datetime | Unchanged | None = UNCHANGED
    #: Another open goal's id, or words; empty: nothing any more.
    blocked_by: str | None = None
    note: str = ""
    fraction: float | None = None
    state: GoalState | None = None
    #: The reason of a new state.
    reason: str = ""


@transaction.atomic
def add_goal(*, agent_id: UUID, title: str, actor: str, **details: Any) -> Goal:
    """Add a goal to an agent's backlog, audited; `details` as in `NewGoalRequest`.

    Raises NotFound for a foreign parent, and Invalid, also for a description of more than DESCRIPTION_LENGTH characters.
    """
    check_line("a goal's description", details.get("description", ""), DESCRIPTION_LENGTH)
    parent_id = details.get("parent_id")
    if parent_id is not None:
        _goal_of(agent_id, parent_id)
    goal = create_goal(agent_id=agent_id, title=title, **details)
    _record(goal, actor, f"added goal {goal.title!r}, {goal.state}")
    return goal


@transaction.atomic
def change_goal(*, agent_id: UUID, goal_id: UUID, change: GoalEdit, actor: str) -> Goal:
    """Change an agent's goal, with a line in the audit log for each part of the change.

    Raises NotFound, also for another agent's goal or parent, and Invalid for a change of nothing, or a reason without a new state.
    """
    check_line("a reason", change.reason, REASON_LENGTH)
    goal = _goal_of(agent_id, goal_id)
    change = replace(change, note=change.note.strip(), reason=change.reason.strip())
    if change == GoalEdit(reason=change.reason):
        raise Invalid(
            "there is nothing to change: give a state, note, fraction, parent, deadline or what it waits for"
        )
    completes = change.fraction == 1
    if change.reason and change.state is None and not completes:
        raise Invalid("a reason belongs to a new state; give a note instead")
    why = f": {change.reason}" if change.reason else ""
    if not isinstance(change.parent_id, Unchanged):
        above = None if change.parent_id is None else _goal_of(agent_id, change.parent_id)
        goal = place_goal(goal_id=goal_id, parent_id=change.parent_id)
        _record(goal, actor, f"made goal {goal.title!r} a part of {above or 'no goal'}")
    if not isinstance(change.deadline, Unchanged):
        goal = set_deadline(goal_id=goal_id, deadline=change.deadline)
        _record(goal, actor, f"goal {goal.title!r} is due {change.deadline or 'never'}")
    if change.blocked_by is not None:
        goal = block_goal(goal_id=goal_id, by=change.blocked_by)
        waits_for = goal.blocked_by_goal or change.blocked_by.strip() or "nothing any more"
        _record(goal, actor, f"goal {goal.title!r} waits for {waits_for}")
    if change.note or change.fraction is not None:
        goal = record_progress(goal_id=goal_id, note=change.note, fraction=change.fraction)
        is_moved = completes and change.state in (None, goal.state)
        _record(goal, actor, _progress_message(goal, change) + (why if is_moved else ""))
        if is_moved:
            return goal
    if change.state is not None:
        before = goal.state
        goal = move_goal(goal_id=goal_id, to=change.state, reason=change.reason)
        _record(goal, actor, f"moved goal {goal.title!r} from {before} to {goal.state}{why}")
    return goal


@transaction.atomic
def plan_goal(*, agent_id: UUID, goal_id: UUID, draft: PlanDraft, as_draft: bool, actor: str) -> Plan:
    """Plan an agent's goal, or extend its active plan, audited. Raises NotFound, Invalid, AlreadyExists for known steps."""
    goal = _goal_of(agent_id, goal_id)
    plan = add_plan(agent_id=agent_id, goal_id=goal_id, draft=draft, as_draft=as_draft)
    steps = counted(len(draft.steps), "step")
    return _record_plan(goal, plan, actor, f"planned goal {goal.title!r} in {steps}")


@transaction.atomic
def start_drafted_plan(*, agent_id: UUID, goal_id: UUID, actor: str) -> Plan:
    """Activate the latest draft of a goal's plan, audited. Raises NotFound, AlreadyExists for a goal with an active plan."""
    goal = _goal_of(agent_id, goal_id)
    plan = start_plan(plan_id=_latest(goal, PlanStatus.DRAFT).id)
    return _record_plan(goal, plan, actor, f"started the plan of goal {goal.title!r}")


@transaction.atomic
def meet_dependency(*, agent_id: UUID, goal_id: UUID, dependency: str, actor: str) -> Plan:
    """Record that a dependency of a goal's active plan is met, audited. Raises NotFound, Invalid."""
    goal = _goal_of(agent_id, goal_id)
    plan = record_met_dependency(goal_id=goal_id, dependency=dependency)
    return _record_plan(goal, plan, actor, f"the plan of goal {goal.title!r} has {dependency!r}")


@transaction.atomic
def abandon_latest_plan(
    *, agent_id: UUID, goal_id: UUID, reason: str, actor: str, status: PlanStatus = PlanStatus.ACTIVE
) -> Plan:
    """Abandon a goal's latest plan of a status with its open steps, audited. Raises NotFound, Invalid."""
    check_line("a reason", reason, REASON_LENGTH)
    goal = _goal_of(agent_id, goal_id)
    plan = abandon_plan(plan_id=_latest(goal, status).id, reason=reason)
    return _record_plan(goal, plan, actor, f"gave up the plan of goal {goal.title!r}: {plan.reason}")


def _goal_of(agent_id: UUID, goal_id: UUID) -> Goal:
    goal: Goal | None = Goal.objects.filter(agent_id=agent_id, id=goal_id).first()
    if goal is None:
        raise NotFound(f"the agent {agent_id} has no goal {goal_id}")
    return goal


def _progress_message(goal: Goal, change: GoalEdit) -> str:
    note = f"noted on goal {goal.title!r}: {change.note}" if change.note else ""
    if change.fraction is None:
        return note
    share = f"{change.fraction:.0%} done"
    return f"{note} ({share})" if note else f"goal {goal.title!r} is {share}"


def _latest(goal: Goal, status: PlanStatus) -> Plan:
    plan = plans_of(goal.id).filter(status=status).first()
    if plan is None:
        raise NotFound(f"{goal.title!r} has no plan that is {status}")
    return plan


def _record_plan(goal: Goal, plan: Plan, actor: str, message: str) -> Plan:
    """Audit a change of a plan, and return the plan with its steps."""
    _record(goal, actor, message, plan_id=str(plan.id))
    return plans_of(goal.id).get(id=plan.id)


def _record(goal: Goal, actor: str, message: str, **others: str) -> None:
    record(
        action=AuditAction.OPERATOR_ACT,
        actor=actor,
        agent_id=goal.agent_id,
        message=message,
        detail={"goal_id": str(goal.id), **others},
    )
