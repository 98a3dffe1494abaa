"""The installation's demo: two tenants with three agents each, who remember the same conversation and beat in seconds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from apps.agents.models import Agent
from apps.agents.services.creation import create_agent
from apps.agents.services.lifecycle import start_agent
from apps.memories.services.ingest import ingest
from apps.tenants.administration import admit_member, open_tenant
from apps.tenants.models import Role, Tenant
from apps.tenants.scope import OPS, tenant_transaction

ACTOR = "cli:demo"
CONVERSATION = Path(__file__).with_name("conversation.jsonl")
#: Often enough to be watched, seldom enough to be read.
INTERVAL = timedelta(seconds=30)


@dataclass(frozen=True, kw_only=True)
class DemoTenant:
    """A tenant of the demo, and its agents' templates by name."""

    slug: str
    name: str
    agents: dict[str, str]


TENANTS = (
    DemoTenant(
        slug="harbour",
        name="Harbour Museum",
        agents={"Mira": "Researcher", "Tam": "Odalys", "Wren": "Scout"},
    ),
    DemoTenant(
        slug="orchard",
        name="Orchard Works",
        agents={"Bram": "Alder", "Lark": "Kestrel", "Sol": "Monitor"},
    ),
)


def make_demo(*, operator: str) -> int:
    """Make the demo's tenants and agents, with the operator as owner of both; return how many agents are new.

    Only an installation without any tenant gets them, so what was deleted does not come back.
    """
    if Tenant.objects.using(OPS).exists():
        return 0
    return sum(_make_tenant(tenant, operator) for tenant in TENANTS)


def _make_tenant(demo: DemoTenant, operator: str) -> int:
    tenant = open_tenant(slug=demo.slug, name=demo.name, actor=ACTOR)
    admit_member(slug=demo.slug, username=operator, role=Role.OWNER, actor=ACTOR)
    agents: list[Agent] = []
    for name, template in demo.agents.items():
        with tenant_transaction(tenant.id):
            agents.append(create_agent(name=name, template_name=template, actor=ACTOR, interval=INTERVAL))
        ingest(tenant_id=tenant.id, agent_id=agents[-1].id, path=CONVERSATION, actor=ACTOR)
    with tenant_transaction(tenant.id):
        for agent in agents:
            start_agent(agent_id=agent.id, actor=ACTOR)
    return len(agents)
