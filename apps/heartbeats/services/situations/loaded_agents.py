"""Load an agent's full state for programs that embed Arbor."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from apps.agents.models import Agent
from apps.agents.services.energy import energy_terms
from apps.heartbeats.services.situations.self_situation import view_identity, view_self
from apps.heartbeats.services.situations.situation import load_situation
from apps.providers import default_model
from arbor.agents.energy import EnergyTerms
from arbor.agents.genome import AgentGenome
from arbor.agents.lifecycle import AgentStatus
from arbor.errors import NotFound
from arbor.heartbeat.goal_situation import view_goals
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
    columns, now = load_situation(agent_id), datetime.now(UTC)
    genome = (
        AgentGenome.model_validate_json(columns["genome"]) if columns["genome"] not in (None, "{}") else None
    )
    return LoadedAgent(
        id=agent_id,
        public_id=columns["public_id"],
        name=columns["name"],
        tenant=columns["tenant"],
        status=AgentStatus(status),
        genome=genome,
        allowed_actions=columns["allowed_actions"],
        model=columns["model"] or default_model(),
        energy=columns["energy"],
        energy_terms=energy_terms(tenant=columns["tenant_energy"], agent=columns["energy_policy"])
        or EnergyTerms(),
        ticks_left=ticks_left,
        beats=columns["beats"],
        nops=nops,
        working_memory=WorkingMemory.model_validate(columns["working_memory"]),
        **view_goals(columns, traits=genome.traits if genome else None, now=now),
        **view_identity(columns, about="", now=now),
        **view_self(columns, now=now),
        percepts=[PerceptView.model_validate(percept) for percept in columns["percepts"]],
    )
