"""An agent's full state, as a program that embeds Arbor sees it: the same one statement by which a heartbeat sees."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from apps.agents.models import Agent
from apps.heartbeats.services.sight import load_situation
from apps.providers import default_model
from apps.selves.services.views import view_self
from arbor.agents.genome import AgentGenome
from arbor.agents.lifecycle import AgentStatus
from arbor.errors import NotFound
from arbor.heartbeat.goal_sight import view_goals
from arbor.heartbeat.self_views import AspectView, BeliefView
from arbor.heartbeat.situation import PerceptView
from arbor.heartbeat.working_memory import WorkingMemory
from arbor.runtime import LoadedAgent


def load_agent(agent_id: UUID) -> LoadedAgent:
    """Return an agent's full state. Two statements, in the tenant's open transaction; raises NotFound."""
    rows = Agent.objects.filter(id=agent_id).values_list("status", "state__nops", "state__ticks_left")
    row = rows.first()
    if row is None:
        raise NotFound(f"there is no agent {agent_id} in this tenant")
    status, nops, ticks_left = row
    seen, now = load_situation(agent_id), datetime.now(UTC)
    genome = AgentGenome.model_validate_json(seen["genome"]) if seen["genome"] not in (None, "{}") else None
    return LoadedAgent(
        id=agent_id,
        public_id=seen["public_id"],
        name=seen["name"],
        tenant=seen["tenant"],
        status=AgentStatus(status),
        genome=genome,
        allowed_actions=seen["allowed_actions"],
        model=seen["model"] or default_model(),
        energy=seen["energy"],
        ticks_left=ticks_left,
        beats=seen["beats"],
        nops=nops,
        working_memory=WorkingMemory.model_validate(seen["working_memory"]),
        **view_goals(seen, traits=genome.traits if genome else None, now=now),
        aspects=[AspectView.model_validate(aspect) for aspect in seen["aspects"]],
        beliefs=[BeliefView.model_validate(belief) for belief in seen["beliefs"]],
        **view_self(seen, now=now),
        percepts=[PerceptView.model_validate(percept) for percept in seen["percepts"]],
    )
