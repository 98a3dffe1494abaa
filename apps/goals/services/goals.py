"""Change single goals, for commands and pages."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from apps.goals.models import Goal
from apps.goals.services.backlogs import lock_backlog, save_backlog
from arbor.errors import NotFound
from arbor.goals.backlog import Backlog
from arbor.goals.requests import NewGoalRequest
from arbor.goals.values import GoalState


@transaction.atomic
def create_goal(*, agent_id: UUID, title: str, **details: Any) -> Goal:
    """Add a goal to an agent's backlog; `details` as in `NewGoalRequest`."""
    backlog = lock_backlog(agent_id, now=datetime.now(UTC))
    goal = backlog.add(NewGoalRequest(title=title, **details))
    return _saved(backlog, goal.id)


@transaction.atomic
def move_goal(*, goal_id: UUID, to: GoalState, reason: str = "") -> Goal:
    """Move a goal to another state of the backlog."""
    backlog = _backlog_of(goal_id)
    backlog.move(goal_id, to, reason=reason)
    return _saved(backlog, goal_id)


@transaction.atomic
def note_progress(*, goal_id: UUID, note: str = "", fraction: float | None = None) -> Goal:
    """Record a goal's progress."""
    backlog = _backlog_of(goal_id)
    backlog.progress(goal_id, note=note, fraction=fraction)
    return _saved(backlog, goal_id)


@transaction.atomic
def block_goal(*, goal_id: UUID, by: str) -> Goal:
    """Set a goal's blocker: another open goal's id, or words; empty: none."""
    backlog = _backlog_of(goal_id)
    backlog.block(goal_id, by)
    return _saved(backlog, goal_id)


@transaction.atomic
def place_goal(*, goal_id: UUID, parent_id: UUID | None) -> Goal:
    """Make a goal a part of another one of its agent, or of none."""
    backlog = _backlog_of(goal_id)
    backlog.place(goal_id, parent_id)
    return _saved(backlog, goal_id)


@transaction.atomic
def set_deadline(*, goal_id: UUID, deadline: datetime | None) -> Goal:
    """Set a goal's deadline, or remove it."""
    backlog = _backlog_of(goal_id)
    backlog.due(goal_id, deadline)
    return _saved(backlog, goal_id)


def _backlog_of(goal_id: UUID) -> Backlog:
    agent_id = Goal.objects.filter(id=goal_id).values_list("agent_id", flat=True).first()
    if agent_id is None:
        raise NotFound(f"there is no goal {goal_id} in this tenant")
    return lock_backlog(agent_id, now=datetime.now(UTC))


def _saved(backlog: Backlog, goal_id: UUID) -> Goal:
    save_backlog(backlog)
    goal: Goal = Goal.objects.get(id=goal_id)
    return goal
