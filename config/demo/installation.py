"""The installation's demo: two tenants with three agents each. All agents remember the same conversation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from django.db import transaction
from django.db.models.functions import Now

from apps.agents.models import Agent, HeartbeatSchedule
from apps.audit.models import AuditAction, AuditEvent, PlatformEvent
from apps.default_model import default_model
from apps.fleet.administration import open_tenant
from apps.fleet.creation import create_agent
from apps.fleet.lifecycle import start_agent
from apps.fleet.members import set_member_role
from apps.memories.services.store.ingest import ingest
from apps.tenants.models import Role, Tenant, TenantStatus
from apps.tenants.scope import OPS, tenant_transaction
from arbor.agents.lifecycle import AgentStatus
from arbor.models.handles import is_reflex

ACTOR = "cli:demo"
CONVERSATION = Path(__file__).with_name("conversation.jsonl")
#: The interval between heartbeats, short enough to watch; much longer where a model costs money.
INTERVAL = timedelta(seconds=30)
INTERVAL_WITH_MODEL = timedelta(minutes=10)


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
    """Create the demo's tenants and agents, with the operator as owner of both; return the number of agents made or completed.

    Only an installation without any tenant gets the demo. An interrupted creation is completed later, in tenants that are
    not suspended; destroyed agents are not created again.
    """
    has_begun = (
        PlatformEvent.objects.using(OPS).filter(action=AuditAction.TENANT_CREATED, actor=ACTOR).exists()
    )
    if Tenant.objects.using(OPS).exists() and not has_begun:
        return 0
    demo_agents = [(demo, name) for demo in TENANTS for name in demo.agents]
    created = 0
    for number, (demo, name) in enumerate(demo_agents):
        tenant = _open_tenant(demo, operator)
        if tenant.status != TenantStatus.ACTIVE:
            continue
        # The first agent's heartbeat is due at once, the others' follow at equal distances.
        created += _make_agent(tenant, name, demo.agents[name], wait=interval() * number / len(demo_agents))
    return created


def interval() -> timedelta:
    """Return the interval between heartbeats of the demo's agents, by the model of this installation."""
    return INTERVAL if is_reflex(default_model()) else INTERVAL_WITH_MODEL


def _open_tenant(demo: DemoTenant, operator: str) -> Tenant:
    tenant = Tenant.objects.using(OPS).filter(slug=demo.slug).first()
    if tenant is None:
        # In one transaction, because an existing tenant gets no owner later: its owners may have changed.
        with transaction.atomic(using=OPS):
            tenant = open_tenant(slug=demo.slug, name=demo.name, actor=ACTOR)
            set_member_role(slug=demo.slug, username=operator, role=Role.OWNER, actor=ACTOR)
    return tenant


def _make_agent(tenant: Tenant, name: str, template: str, *, wait: timedelta) -> bool:
    """Create an agent, or complete an interrupted creation; return whether anything was done."""
    with tenant_transaction(tenant.id):
        agent: Agent | None = Agent.objects.filter(name=name).first()
        if agent is None and _was_created(name):
            return False
        if agent is None:
            agent = create_agent(name=name, template_name=template, actor=ACTOR, interval=interval())
    if agent.status != AgentStatus.CREATED:
        return False
    ingest(tenant_id=tenant.id, agent_id=agent.id, path=CONVERSATION, actor=ACTOR)
    with tenant_transaction(tenant.id):
        start_agent(agent_id=agent.id, actor=ACTOR)
        HeartbeatSchedule.objects.filter(agent_id=agent.id).update(next_due_at=Now() + wait)
    return True


def _was_created(name: str) -> bool:
    """Return whether the audit log, which outlives the agent, has its creation."""
    created = AuditEvent.objects.filter(action=AuditAction.AGENT_CREATED, actor=ACTOR)
    return created.filter(message__startswith=f"created {name} from").exists()
