"""Create tenants and agents for benchmarks, by the services that operators use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import batched
from uuid import UUID

from apps.fleet.creation import NewAgent, create_agents
from apps.fleet.lifecycle import start_agent
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import create_tenant
from bench.support.figures import print_progress

#: Kinds of agents with different characters, goals and actions.
TEMPLATES = ("Researcher", "Scout", "Monitor", "Diagnostician", "CodeReviewer")
ACTOR = "bench"
#: Long enough that agents are due only when a benchmark makes them due.
_INTERVAL = timedelta(hours=1)
#: Agents created in one transaction, because each commit waits for the disk.
_TOGETHER = 20


@dataclass(frozen=True, kw_only=True)
class BenchAgent:
    """An agent of the benchmark."""

    tenant_id: UUID
    agent_id: UUID


def populate(
    *,
    agents: int,
    tenants: int,
    templates: Sequence[str] = TEMPLATES,
) -> list[BenchAgent]:
    """Create a number of active agents, spread over the tenants, from these templates in turn."""
    print_progress(f"creating {agents} agents of {tenants} tenants")
    created: dict[int, BenchAgent] = {}
    for tenant in range(tenants):
        tenant_id = create_tenant(slug=f"bench-{tenant}", name=f"Bench {tenant}").id
        for numbers in batched(range(tenant, agents, tenants), _TOGETHER, strict=False):
            new_agents = [
                NewAgent(
                    name=f"Agent {number}",
                    template_name=templates[number % len(templates)],
                    interval=_INTERVAL,
                )
                for number in numbers
            ]
            with tenant_transaction(tenant_id):
                for number, agent in zip(
                    numbers, create_agents(new_agents=new_agents, actor=ACTOR), strict=True
                ):
                    start_agent(agent_id=agent.id, actor=ACTOR)
                    created[number] = BenchAgent(tenant_id=tenant_id, agent_id=agent.id)
    return [created[number] for number in range(agents)]
