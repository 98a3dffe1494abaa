"""Plans and steps as rows, made from drafts; nothing is stored here."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from apps.goals.models import Goal, Plan, PlanStep
from apps.tenants.scope import current_tenant
from arbor.goals.plans import MAX_DEPENDENCIES, PlanDraft, PlanStatus, StepDraft


def plan_row(agent_id: UUID, goal: Goal, draft: PlanDraft, status: PlanStatus) -> Plan:
    """Return a new plan of a goal, without its steps."""
    return Plan(
        tenant_id=current_tenant(),
        agent_id=agent_id,
        goal=goal,
        status=status,
        dependencies=list(draft.dependencies),
        estimated_ticks=draft.estimated_ticks,
        estimated_cost=draft.estimated_cost,
        risk=draft.risk,
    )


def step_rows(plan: Plan, drafts: Iterable[StepDraft], *, first: int) -> list[PlanStep]:
    """Return new steps of a plan, in order; `first` is the place of the first."""
    return [
        PlanStep(
            tenant_id=current_tenant(),
            plan=plan,
            position=position,
            action=draft.action,
            description=draft.description.strip(),
            precondition=draft.precondition.strip(),
            postcondition=draft.postcondition.strip(),
            estimated_ticks=draft.estimated_ticks,
        )
        for position, draft in enumerate(drafts, start=first)
    ]


def not_planned_yet(drafts: Iterable[StepDraft], planned: Iterable[PlanStep]) -> list[StepDraft]:
    """Return the drafts that say something else than every step that is planned already."""
    known = {(step.action, _key(step.description)) for step in planned}
    return [draft for draft in drafts if (draft.action, _key(draft.description)) not in known]


def extend(plan: Plan, draft: PlanDraft) -> None:
    """Add what further steps may take to what the plan may take already."""
    if draft.estimated_ticks is not None:
        plan.estimated_ticks = (plan.estimated_ticks or 0) + draft.estimated_ticks
    if draft.estimated_cost is not None:
        plan.estimated_cost = (plan.estimated_cost or 0) + draft.estimated_cost
    if draft.risk is not None:
        plan.risk = max(plan.risk or 0.0, draft.risk)
    known = dict.fromkeys([*plan.dependencies, *draft.dependencies])
    plan.dependencies = list(known)[:MAX_DEPENDENCIES]


def _key(description: str) -> str:
    return " ".join(description.split()).casefold()
