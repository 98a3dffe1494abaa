"""Delete the history of goals by age: ended plans, progress notes, and the links of closed goals to memories."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce

from apps.goals.models import Goal, GoalMemoryLink, Intent, Plan, ProgressNote
from apps.tenants.scope import tenant_transaction
from arbor.goals.plans import PlanStatus
from arbor.goals.values import GoalState

#: The latest progress notes of an open goal, which stay, whatever their age.
RETAINED_NOTES = 20
_STEP = 50
_CLOSED = [GoalState.COMPLETED, GoalState.ABANDONED]

#: Part: a plan `r` is of a closed goal, or older than the latest plan of its goal that is no draft, which the goal's review shows.
PLAN_IS_OLD = """
(r.created_at < (
    SELECT max(latest.created_at) FROM goals_plan latest
    WHERE latest.tenant_id = t.id AND latest.goal_id = r.goal_id AND latest.status <> 'draft'
) OR EXISTS (
    SELECT FROM goals_goal g WHERE g.tenant_id = t.id AND g.id = r.goal_id AND g.state IN ('completed', 'abandoned')
))
"""

# Part: a goal `g` was closed before the time.
_CLOSED_BEFORE = "g.state IN ('completed', 'abandoned') AND coalesce(g.completed_at, g.abandoned_at, g.touched_at) < '{before}'"
# Agents with a goal that was closed long ago and still has notes or links, or an open one with too many old notes.
AGENTS_WITH_OLD_PROGRESS = f"""
SELECT a.id AS agent_id FROM agents_agent a WHERE a.tenant_id = t.id AND EXISTS (
    SELECT FROM goals_goal g WHERE g.tenant_id = t.id AND g.agent_id = a.id AND CASE WHEN {_CLOSED_BEFORE} THEN
        EXISTS (SELECT FROM goals_progressnote n WHERE n.tenant_id = t.id AND n.goal_id = g.id)
        OR EXISTS (SELECT FROM goals_goalmemorylink l WHERE l.tenant_id = t.id AND l.goal_id = g.id)
    ELSE g.state NOT IN ('completed', 'abandoned') AND EXISTS (
        SELECT FROM goals_progressnote n WHERE n.tenant_id = t.id AND n.goal_id = g.id AND n.at < '{{before}}' AND n.at < (
            SELECT latest.at FROM goals_progressnote latest WHERE latest.tenant_id = t.id AND latest.goal_id = g.id
            ORDER BY latest.at DESC OFFSET {RETAINED_NOTES - 1} LIMIT 1
        )
    ) END
)
"""  # noqa: S608 (no external input)


def delete_plans(tenant_id: UUID, agent_id: UUID, before: datetime) -> int:
    """Delete some of an agent's plans that ended before a time, with their steps and intents; return their number."""
    with tenant_transaction(tenant_id):
        later = Plan.objects.filter(goal_id=OuterRef("goal_id"), created_at__gt=OuterRef("created_at"))
        closed = Q(goal__state__in=_CLOSED)
        old = Plan.objects.filter(
            closed | Exists(later.exclude(status=PlanStatus.DRAFT)), agent_id=agent_id, ended_at__lt=before
        )
        locked = old.order_by("ended_at").select_for_update(skip_locked=True, of=("self",))
        ids = list(locked.values_list("id", flat=True)[:_STEP])
        Intent.objects.filter(step__plan_id__in=ids).delete()
        # Their steps go with them.
        Plan.objects.filter(id__in=ids).delete()
        return len(ids)


def delete_progress(tenant_id: UUID, agent_id: UUID, before: datetime) -> int:
    """Delete old progress of some of an agent's goals; return the number of rows.

    Of a goal that was closed before a time, its notes and its links to memories; of an open goal the notes of that age, except
    the latest RETAINED_NOTES. Links of open goals stay, because they protect memories from being forgotten.
    """
    with tenant_transaction(tenant_id):
        goals = Goal.objects.filter(agent_id=agent_id)
        times = ("completed_at", "abandoned_at", "touched_at")
        closed = (
            goals.filter(state__in=_CLOSED).annotate(closed_at=Coalesce(*times)).filter(closed_at__lt=before)
        )
        has_rows = Exists(ProgressNote.objects.filter(goal_id=OuterRef("id"))) | Exists(
            GoalMemoryLink.objects.filter(goal_id=OuterRef("id"))
        )
        ids = list(closed.filter(has_rows).values_list("id", flat=True)[:_STEP])
        count = ProgressNote.objects.filter(goal_id__in=ids).delete()[0]
        count += GoalMemoryLink.objects.filter(goal_id__in=ids).delete()[0]
        open_goals = goals.exclude(state__in=_CLOSED)
        latest = ProgressNote.objects.filter(goal_id=OuterRef("goal_id")).order_by("-at").values("at")
        old = ProgressNote.objects.filter(goal__in=open_goals, at__lt=before)
        oldest_retained = Subquery(latest[RETAINED_NOTES - 1 : RETAINED_NOTES])
        notes = list(old.filter(at__lt=oldest_retained).values_list("id", flat=True)[:_STEP])
        return count + ProgressNote.objects.filter(id__in=notes).delete()[0]
