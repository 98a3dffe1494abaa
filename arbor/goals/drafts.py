"""Rows of plans and steps, made from drafts."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from arbor.goals.plans import MAX_DEPENDENCIES, PlanDraft, PlanStatus, StepDraft
from arbor.goals.rows import PlanRow, StepRow
from arbor.goals.values import text_key
from arbor.ids import uuid7


def new_plan(agent_id: UUID, goal_id: UUID, draft: PlanDraft, status: PlanStatus) -> PlanRow:
    """Return a new plan of a goal, without its steps."""
    return PlanRow(
        id=uuid7(),
        agent_id=agent_id,
        goal_id=goal_id,
        status=status,
        dependencies=list(draft.dependencies),
        estimated_ticks=draft.estimated_ticks,
        estimated_cost=draft.estimated_cost,
        risk=draft.risk,
    )


def new_steps(plan_id: UUID, drafts: Iterable[StepDraft], *, first: int) -> list[StepRow]:
    """Return new steps of a plan, in order; `first` is the position of the first."""
    return [
        StepRow(
            id=uuid7(),
            plan_id=plan_id,
            position=position,
            action=draft.action,
            description=draft.description.strip(),
            precondition=draft.precondition.strip(),
            postcondition=draft.postcondition.strip(),
            estimated_ticks=draft.estimated_ticks,
            procedure_id=draft.procedure_id,
        )
        for position, draft in enumerate(drafts, start=first)
    ]


def unplanned_drafts(drafts: Iterable[StepDraft], planned: Iterable[StepRow]) -> list[StepDraft]:
    """Return the drafts that repeat no planned step."""
    planned_keys = {(step.action, text_key(step.description)) for step in planned}
    return [draft for draft in drafts if (draft.action, text_key(draft.description)) not in planned_keys]


def extend_plan(plan: PlanRow, draft: PlanDraft) -> None:
    """Add the estimates and dependencies of further steps to those of the plan; dependencies beyond the most are left out."""
    if draft.estimated_ticks is not None:
        plan.estimated_ticks = (plan.estimated_ticks or 0) + draft.estimated_ticks
    if draft.estimated_cost is not None:
        plan.estimated_cost = (plan.estimated_cost or 0) + draft.estimated_cost
    if draft.risk is not None:
        plan.risk = max(plan.risk or 0.0, draft.risk)
    dependencies = dict.fromkeys([*plan.dependencies, *draft.dependencies])
    plan.dependencies = list(dependencies)[:MAX_DEPENDENCIES]
