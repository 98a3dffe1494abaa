"""Change single goals and plans without an audit record, for `acts` and for workflows; link memories to goals."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from apps.goals.models import Goal, GoalMemoryLink, Plan
from apps.goals.services.backlogs import lock_backlog, save_backlog
from apps.tenants.scope import current_tenant
from arbor.errors import Invalid, NotFound
from arbor.goals.backlog import Backlog
from arbor.goals.plans import MAX_DEPENDENCIES, GoalLink, PlanDraft, PlanStatus
from arbor.goals.values import GoalState, NewGoalRequest


@transaction.atomic
def create_goal(*, agent_id: UUID, title: str, **details: Any) -> Goal:
    """Add a goal to an agent's backlog; `details` as in `NewGoalRequest`."""
    backlog = lock_backlog(agent_id, now=datetime.now(UTC))
    goal = backlog.add(NewGoalRequest(title=title, **details))
    return _save_and_reload(Goal, backlog, goal.id)


@transaction.atomic
def move_goal(*, goal_id: UUID, to: GoalState, reason: str = "") -> Goal:
    """Move a goal to another state of the backlog."""
    backlog = _backlog_of(Goal, goal_id)
    backlog.move(goal_id, to, reason=reason)
    return _save_and_reload(Goal, backlog, goal_id)


@transaction.atomic
def end_goal(*, goal_id: UUID, abandoned: str = "", closer: str) -> Goal:
    """Close a goal whose cause has ended: abandoned for a reason, or completed."""
    backlog = _backlog_of(Goal, goal_id)
    backlog.end(goal_id, abandoned=abandoned, closer=closer)
    return _save_and_reload(Goal, backlog, goal_id)


@transaction.atomic
def record_progress(*, goal_id: UUID, note: str = "", fraction: float | None = None) -> Goal:
    """Record a goal's progress."""
    backlog = _backlog_of(Goal, goal_id)
    backlog.progress(goal_id, note=note, fraction=fraction)
    return _save_and_reload(Goal, backlog, goal_id)


@transaction.atomic
def block_goal(*, goal_id: UUID, by: str) -> Goal:
    """Set a goal's blocker: another open goal's id, or words; empty: none."""
    backlog = _backlog_of(Goal, goal_id)
    backlog.block(goal_id, by)
    return _save_and_reload(Goal, backlog, goal_id)


@transaction.atomic
def place_goal(*, goal_id: UUID, parent_id: UUID | None) -> Goal:
    """Make a goal a part of another one of its agent, or of none."""
    backlog = _backlog_of(Goal, goal_id)
    backlog.place(goal_id, parent_id)
    return _save_and_reload(Goal, backlog, goal_id)


@transaction.atomic
def set_deadline(*, goal_id: UUID, deadline: datetime | None) -> Goal:
    """Set a goal's deadline, or remove it."""
    backlog = _backlog_of(Goal, goal_id)
    backlog.set_deadline(goal_id, deadline)
    return _save_and_reload(Goal, backlog, goal_id)


def _backlog_of(model: type[Goal] | type[Plan], row_id: UUID) -> Backlog:
    agent_id = model.objects.filter(id=row_id).values_list("agent_id", flat=True).first()
    if agent_id is None:
        raise NotFound(f"there is no {model._meta.verbose_name} {row_id} in this tenant")
    return lock_backlog(agent_id, now=datetime.now(UTC))


def _save_and_reload[M: (Goal, Plan)](model: type[M], backlog: Backlog, row_id: UUID) -> M:
    save_backlog(backlog)
    row: M = model.objects.get(id=row_id)
    return row


def plans_of(goal_id: UUID) -> QuerySet[Plan]:
    """Return a goal's plans with their steps, latest first. Two queries."""
    plans: QuerySet[Plan] = Plan.objects.filter(goal_id=goal_id).prefetch_related("steps")
    return plans.order_by("-created_at", "-id")


@transaction.atomic
def add_plan(*, agent_id: UUID, goal_id: UUID, draft: PlanDraft, as_draft: bool = False) -> Plan:
    """Plan an agent's open goal, or extend its active plan; a draft waits to be started.

    Raises Invalid for dependencies that the plan cannot have, besides the errors of `Backlog.plan`.
    """
    backlog = lock_backlog(agent_id, now=datetime.now(UTC))
    plan, _ = backlog.plan(goal_id, draft, as_draft=as_draft)
    if left_out := [text for text in draft.dependencies if text not in plan.dependencies]:
        raise Invalid(
            f"a plan depends on at most {MAX_DEPENDENCIES} things, and not on its own goal; left out: {'; '.join(left_out)}"
        )
    return _save_and_reload(Plan, backlog, plan.id)


@transaction.atomic
def start_plan(*, plan_id: UUID) -> Plan:
    """Make a draft the active plan of its goal."""
    backlog = _backlog_of(Plan, plan_id)
    backlog.start(plan_id)
    return _save_and_reload(Plan, backlog, plan_id)


@transaction.atomic
def record_met_dependency(*, goal_id: UUID, dependency: str) -> Plan:
    """Record that a dependency of a goal's active plan is met. Raises NotFound, Invalid."""
    backlog = _backlog_of(Goal, goal_id)
    backlog.mark_dependency_met(goal_id, dependency)
    save_backlog(backlog)
    plan: Plan = Plan.objects.get(goal_id=goal_id, status=PlanStatus.ACTIVE)
    return plan


@transaction.atomic
def abandon_plan(*, plan_id: UUID, reason: str) -> Plan:
    """Abandon a plan with its open steps; the agent is notified."""
    backlog = _backlog_of(Plan, plan_id)
    backlog.abandon(plan_id, reason)
    return _save_and_reload(Plan, backlog, plan_id)


def link_memories(links: Sequence[GoalLink]) -> None:
    """Link memories to goals of any agents of the tenant. One statement, none without links."""
    wanted = list(dict.fromkeys(links))
    if not wanted:
        return
    tenant_id = current_tenant()
    rows = [
        GoalMemoryLink(tenant_id=tenant_id, goal_id=link.goal_id, memory_id=link.memory_id, kind=link.kind)
        # Sorted, so that transactions that link the same memories do not deadlock.
        for link in sorted(wanted, key=lambda link: (link.goal_id, link.memory_id, link.kind))
    ]
    GoalMemoryLink.objects.bulk_create(rows, ignore_conflicts=True)


def move_links(*, old_id: UUID, new_id: UUID) -> None:
    """Move the links of a revised memory to its revision, unless it has them already. One statement."""
    links = GoalMemoryLink.objects.filter(memory_id=old_id)
    known = GoalMemoryLink.objects.filter(
        memory_id=new_id, goal_id=OuterRef("goal_id"), kind=OuterRef("kind")
    )
    links.exclude(Exists(known)).update(memory_id=new_id)


def linked_memories(goal_id: UUID) -> QuerySet[GoalMemoryLink]:
    """Return the links of a goal to memories, latest first. One query."""
    links: QuerySet[GoalMemoryLink] = (
        GoalMemoryLink.objects.filter(goal_id=goal_id)
        .select_related("memory")
        .order_by("-created_at", "kind", "id")
    )
    return links
