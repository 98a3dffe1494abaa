"""Identities: agents created per second, one action authorized, and a seed exported and imported."""

from __future__ import annotations

import time
from typing import Any

from apps.agents.services.templates import seed_builtin_templates
from apps.fleet.creation import NewAgent, create_agents
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import create_tenant
from bench import authorization, seeds
from bench.support.figures import print_progress, quantile
from bench.support.installation import Installation
from bench.support.population import ACTOR, TEMPLATES


def measure(
    installation: Installation, *, agents: int, batch: int, rounds: int, memories: int
) -> dict[str, Any]:
    """Return the figures of the three benchmarks, run one after another."""
    return {
        **_measure_creation(agents=agents, batch=batch),
        **authorization.measure(rounds=rounds),
        **seeds.measure(installation, memories=memories),
    }


def _measure_creation(*, agents: int, batch: int) -> dict[str, Any]:
    """Create agents batch by batch, with keys, endorsements, grants, selves, goals and memories; return those per second."""
    seed_builtin_templates()
    tenant_id = create_tenant(slug="bench", name="Bench").id
    new_agents = [
        NewAgent(name=f"Agent {number}", template_name=TEMPLATES[number % len(TEMPLATES)])
        for number in range(agents + batch)
    ]
    print_progress(f"creating {agents} agents")
    ms: list[float] = []
    for start in range(0, len(new_agents), batch):
        begun = time.perf_counter()
        with tenant_transaction(tenant_id):
            create_agents(new_agents=new_agents[start : start + batch], actor=ACTOR)
        ms.append((time.perf_counter() - begun) * 1000)
    # The first batch opens the connection and plans the statements.
    return {
        "agents": agents,
        "batch": batch,
        "agents_per_s": round(agents / (sum(ms[1:]) / 1000), 1),
        "batch_ms_p50": quantile(ms[1:], 0.5),
    }
