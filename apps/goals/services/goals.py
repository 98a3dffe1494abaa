"""Goals changed one at a time: by a person, at the command line or in the console."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from apps.goals.models import Goal
from apps.goals.services.backlog import Backlog
from arbor.errors import NotFound
from arbor.goals.values import GoalState


@transaction.atomic
def create_goal(*, agent_id: UUID, title: str, **details: Any) -> Goal:
    """Add a goal to an agent's backlog; `details` as in `Backlog.add`."""
    backlog = Backlog.lock(agent_id, now=datetime.now(UTC))
    goal = backlog.add(title=title, **details)
    backlog.save()
    return goal


@transaction.atomic
def move_goal(*, goal_id: UUID, to: GoalState, reason: str = "") -> Goal:
    """Move a goal to another state of the backlog."""
    backlog = _backlog_of(goal_id)
    goal = backlog.move(goal_id, to, reason=reason)
    backlog.save()
    return goal


@transaction.atomic
def note_progress(*, goal_id: UUID, note: str = "", fraction: float | None = None) -> Goal:
    """Note how a goal is going."""
    backlog = _backlog_of(goal_id)
    goal = backlog.progress(goal_id, note=note, fraction=fraction)
    backlog.save()
    return goal


def _backlog_of(goal_id: UUID) -> Backlog:
    agent_id = Goal.objects.filter(id=goal_id).values_list("agent_id", flat=True).first()
    if agent_id is None:
        raise NotFound(f"there is no goal {goal_id} in this tenant")
    return Backlog.lock(agent_id, now=datetime.now(UTC))
