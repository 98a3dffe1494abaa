"""Read an agent's memories of each type with the quotas, and the facts nearest to a proposal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from apps.agents.models import Agent
from apps.console.forms import agent_choices, chosen_agent
from apps.heartbeats.services.reports.promotion_candidates import PromotionCandidate, promotion_candidates
from apps.memories.services.retention.quotas import QuotaUsage, read_quotas

#: Facts shown at most.
CANDIDATES_SHOWN = 50


@dataclass(frozen=True, kw_only=True)
class MemoryQuotasPage:
    """The page: the choice of an agent, and the figures of the chosen agent."""

    agents: Sequence[tuple[str, str]]
    agent: Agent | None
    quotas: Sequence[QuotaUsage] = ()
    candidates: Sequence[PromotionCandidate] = ()


def read_memory_quotas(parameters: Mapping[str, str]) -> MemoryQuotasPage:
    """Read the page for the parameters of its address. Reading changes nothing."""
    agent = chosen_agent(parameters)
    agents = agent_choices()
    if agent is None:
        return MemoryQuotasPage(agents=agents, agent=None)
    return MemoryQuotasPage(
        agents=agents,
        agent=agent,
        quotas=read_quotas(agent_id=agent.id),
        candidates=promotion_candidates(agent_id=agent.id, limit=CANDIDATES_SHOWN),
    )
