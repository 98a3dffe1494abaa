"""The energy policies of agents and their tenants, as stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.agents.models import Agent, AgentPolicy
from arbor.agents.energy import EnergyPolicy, EnergyTerms, terms_of


def energy_terms(*, tenant: Mapping[str, Any] | None, agent: Mapping[str, Any] | None) -> EnergyTerms | None:
    """Return the terms of stored policies, of which the agent's own takes precedence; None: the defaults."""
    stored = [policy for policy in (tenant, agent) if policy]
    return terms_of(*map(EnergyPolicy.model_validate, stored)) if stored else None


def energy_terms_of(agent: Agent) -> EnergyTerms:
    """Return the terms of an agent's energy; reads its policy and its tenant unless they are joined."""
    policy: AgentPolicy | None = getattr(agent, "policy", None)
    return energy_terms(tenant=agent.tenant.energy, agent=policy.energy if policy else None) or EnergyTerms()
