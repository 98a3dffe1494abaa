"""Create, start and abandon plans, for commands."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from apps.goals.models import Plan
from apps.goals.services.backlogs import lock_backlog, save_backlog
from arbor.errors import NotFound
from arbor.goals.backlog import Backlog
from arbor.goals.plans import PlanDraft


def plans_of(goal_id: UUID) -> QuerySet[Plan]:
    """Return a goal's plans with their steps, latest first. Two queries."""
    found: QuerySet[Plan] = Plan.objects.filter(goal_id=goal_id).prefetch_related("steps")
    return found.order_by("-created_at", "-id")


@transaction.atomic
def add_plan(*, agent_id: UUID, goal_id: UUID, draft: PlanDraft, as_draft: bool = False) -> Plan:
    """Plan an agent's open goal, or extend its active plan; a draft waits to be started."""
    backlog = lock_backlog(agent_id, now=datetime.now(UTC))
    plan, _ = backlog.plan(goal_id, draft, as_draft=as_draft)
    return _saved(backlog, plan.id)


@transaction.atomic
def start_plan(*, plan_id: UUID) -> Plan:
    """Make a draft the active plan of its goal."""
    backlog = _backlog_of(plan_id)
    backlog.start(plan_id)
    return _saved(backlog, plan_id)


@transaction.atomic
def abandon_plan(*, plan_id: UUID, reason: str) -> Plan:
    """Abandon a plan with its open steps; the agent is notified."""
    backlog = _backlog_of(plan_id)
    backlog.abandon(plan_id, reason)
    return _saved(backlog, plan_id)


def _backlog_of(plan_id: UUID) -> Backlog:
    agent_id = Plan.objects.filter(id=plan_id).values_list("agent_id", flat=True).first()
    if agent_id is None:
        raise NotFound(f"there is no plan {plan_id} in this tenant")
    return lock_backlog(agent_id, now=datetime.now(UTC))


def _saved(backlog: Backlog, plan_id: UUID) -> Plan:
    save_backlog(backlog)
    plan: Plan = Plan.objects.get(id=plan_id)
    return plan
