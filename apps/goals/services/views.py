"""An agent's goals and intents as a heartbeat sees them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef

from apps.goals.models import Goal, Intent, ProgressNote
from apps.goals.services.backlog import OPEN_INTENTS, OPEN_STATES
from arbor.agents.genome import AgentTraits
from arbor.goals.intents import IntentStatus
from arbor.goals.priority import PriorityWeights, estimate_terms, priority
from arbor.goals.review import flag_goal
from arbor.goals.values import GoalLayer, GoalSource, GoalState
from arbor.heartbeat.situation import GoalView, IntentView

#: Of each goal, an agent sees the last so many notes.
NOTES_SHOWN = 3
GOAL_FIELDS = (
    "id",
    "title",
    "description",
    "state",
    "layer",
    "source",
    "fraction",
    "deadline",
    "blocked_by",
    "touched_at",
)


def goal_views(*, agent_id: UUID, traits: AgentTraits | None, now: datetime) -> list[GoalView]:
    """Return the open goals, most important first. One query."""
    latest = ProgressNote.objects.filter(goal_id=OuterRef("id")).order_by("-at").values("text")[:NOTES_SHOWN]
    rows = Goal.objects.filter(agent_id=agent_id, state__in=OPEN_STATES).annotate(
        latest=ArraySubquery(latest)
    )
    seen = ({**row, "notes": row["latest"]} for row in rows.values(*GOAL_FIELDS, "latest"))
    return view_goals(seen, traits=traits, now=now)


def view_goals(
    rows: Iterable[Mapping[str, Any]], *, traits: AgentTraits | None, now: datetime
) -> list[GoalView]:
    """Return goals, given by `GOAL_FIELDS` and their notes, newest first; the most important goal first."""
    weights = PriorityWeights.of(traits) if traits else PriorityWeights()
    views = [_view(row, weights, now) for row in rows]
    return sorted(views, key=lambda view: (-view.priority, view.id))


def intent_views(*, agent_id: UUID) -> list[IntentView]:
    """Return the open intents, oldest first. One query."""
    rows = Intent.objects.filter(agent_id=agent_id, status__in=OPEN_INTENTS).order_by("id")
    return [
        IntentView(
            id=str(row.id),
            goal_id=str(row.goal_id),
            action=row.action,
            description=row.description,
            status=IntentStatus(row.status),
            attempts=row.attempts,
        )
        for row in rows
    ]


def _view(row: Mapping[str, Any], weights: PriorityWeights, now: datetime) -> GoalView:
    source, state = GoalSource(row["source"]), GoalState(row["state"])
    terms = estimate_terms(source, fraction=row["fraction"], deadline=row["deadline"], now=now)
    flags = flag_goal(
        state,
        touched_at=row["touched_at"],
        blocked_by=row["blocked_by"],
        deadline=row["deadline"],
        now=now,
    )
    return GoalView(
        id=str(row["id"]),
        title=row["title"],
        description=row["description"],
        state=state,
        layer=GoalLayer(row["layer"]),
        source=source,
        priority=round(priority(terms, weights), 4),
        fraction=row["fraction"],
        notes=row["notes"][::-1],
        deadline=row["deadline"],
        flags=[str(flag) for flag in flags],
    )
