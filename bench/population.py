"""Tenants and agents for benchmarks, made as an operator makes them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from itertools import cycle
from uuid import UUID

from apps.agents.services.creation import create_agent
from apps.agents.services.lifecycle import start_agent
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import create_tenant
from bench.progress import say

#: Kinds of agents with different characters, goals and actions.
TEMPLATES = ("Researcher", "Scout", "Monitor", "Diagnostician", "CodeReviewer")
ACTOR = "bench"


@dataclass(frozen=True, kw_only=True)
class Inhabitant:
    """An agent of the benchmark."""

    tenant_id: UUID
    agent_id: UUID


def populate(
    *, agents: int, tenants: int, interval: timedelta = timedelta(hours=1), template: str | None = None
) -> list[Inhabitant]:
    """Make that many active agents, spread over the tenants, from that template or from several in turn."""
    say(f"making {agents} agents of {tenants} tenants")
    owners = cycle([create_tenant(slug=f"bench-{n}", name=f"Bench {n}").id for n in range(tenants)])
    made: list[Inhabitant] = []
    for number, name in zip(range(agents), cycle([template] if template else TEMPLATES), strict=False):
        tenant_id = next(owners)
        with tenant_transaction(tenant_id):
            agent = create_agent(name=f"Agent {number}", template_name=name, actor=ACTOR, interval=interval)
            start_agent(agent_id=agent.id, actor=ACTOR)
        made.append(Inhabitant(tenant_id=tenant_id, agent_id=agent.id))
    return made
