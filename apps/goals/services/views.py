"""Views of an agent's goals and plans, as in its situation."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from apps.goals.services.sight import see_goals
from arbor.agents.genome import AgentTraits
from arbor.heartbeat.goal_situation import view_goals, view_plans
from arbor.heartbeat.views import GoalView, PlanView


def goal_views(*, agent_id: UUID, traits: AgentTraits | None, now: datetime) -> list[GoalView]:
    """Return the open goals, most important first. One query."""
    return view_goals(see_goals([agent_id])[agent_id], traits=traits, now=now)["goals"]


def plan_views(*, agent_id: UUID) -> list[PlanView]:
    """Return the active plans and drafts. One query."""
    return view_plans(see_goals([agent_id])[agent_id])
