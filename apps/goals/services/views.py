"""An agent's goals and plans as a heartbeat sees them, for people and programs that look at them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.goals.services.sight import see_goals
from arbor.agents.genome import AgentGenome, AgentTraits
from arbor.goals.injection import BALANCED, Circumstances
from arbor.heartbeat.goal_sight import view_goals, view_plans
from arbor.heartbeat.goal_views import GoalView, PlanView


def goal_views(*, agent_id: UUID, traits: AgentTraits | None, now: datetime) -> list[GoalView]:
    """Return the open goals, most important first. One query."""
    return view_goals(see_goals([agent_id])[agent_id], traits=traits, now=now)["goals"]


def plan_views(*, agent_id: UUID) -> list[PlanView]:
    """Return the active plans and drafts. One query."""
    return view_plans(see_goals([agent_id])[agent_id])


def circumstances_of(seen: Mapping[str, Any], genome: AgentGenome | None) -> Circumstances:
    """Return what the rules of injection need besides what the situation shows."""
    well, dealings = seen["standing"]
    return Circumstances(
        role=genome.role if genome else None,
        risk_tolerance=genome.traits.risk_tolerance if genome else BALANCED,
        stale_beats=seen["stale_beats"],
        exhausted_beats=seen["exhausted_beats"],
        standing=well / dealings if dealings else None,
        dealings=dealings,
    )
