"""Plans made and given up by a person."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from apps.goals.models import Plan
from apps.goals.services.backlog import Backlog
from arbor.errors import NotFound
from arbor.goals.plans import PlanDraft


def plans_of(goal_id: UUID) -> QuerySet[Plan]:
    """Return a goal's plans with their steps, latest first. Two queries."""
    found: QuerySet[Plan] = Plan.objects.filter(goal_id=goal_id).prefetch_related("steps")
    return found.order_by("-created_at", "-id")


@transaction.atomic
def add_plan(*, agent_id: UUID, goal_id: UUID, draft: PlanDraft, as_draft: bool = False) -> Plan:
    """Plan an agent's open goal, or extend its active plan; a draft waits until somebody starts it."""
    backlog = Backlog.lock(agent_id, now=datetime.now(UTC))
    plan, _ = backlog.plan(goal_id, draft, as_draft=as_draft)
    backlog.save()
    return plan


@transaction.atomic
def start_plan(*, plan_id: UUID) -> Plan:
    """Make a draft the active plan of its goal."""
    backlog = _backlog_of(plan_id)
    plan = backlog.steps.start(plan_id)
    backlog.save()
    return plan


@transaction.atomic
def abandon_plan(*, plan_id: UUID, reason: str) -> Plan:
    """Give a plan up, with the steps of it that are open; the agent is told."""
    backlog = _backlog_of(plan_id)
    plan = backlog.steps.abandon(plan_id, reason)
    goal = backlog.goal(plan.goal_id)
    backlog.steps.tell(f"Your plan for {goal.title!r} was given up by a person: {plan.reason}.", goal)
    backlog.save()
    return plan


def _backlog_of(plan_id: UUID) -> Backlog:
    agent_id = Plan.objects.filter(id=plan_id).values_list("agent_id", flat=True).first()
    if agent_id is None:
        raise NotFound(f"there is no plan {plan_id} in this tenant")
    return Backlog.lock(agent_id, now=datetime.now(UTC))
