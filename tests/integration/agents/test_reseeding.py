"""Knowledge of the template that a start stores again: what the agent lost, never what a person removed."""

from __future__ import annotations

import pytest

from apps.agents.models import Agent
from apps.agents.services.templates import add_template, update_template
from apps.audit.models import AuditAction, AuditEvent
from apps.fleet.lifecycle import start_agent, stop_agent
from apps.memories.models import Memory
from apps.memories.services.retention.archive import archive, purge
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from tests.integration.agents.conftest import ACTOR, MakeAgent

TEMPLATE = """---
name: Pilot
version: "{version}"
character: {{name: Pilot, knowledge: [{knowledge}]}}
actions: [rest]
---
"""
REEF, FORD = "The reef is north of the harbour.", "The ford is deep in May."


def template(*facts: str, version: str = "1.0") -> str:
    knowledge = ", ".join(f"{{category: sea, content: {fact}}}" for fact in facts)
    return TEMPLATE.format(version=version, knowledge=knowledge)


@pytest.fixture
def pilot(make: MakeAgent, tenant: Tenant) -> Agent:
    """Return an agent that was started once."""
    with tenant_transaction(tenant.id):
        add_template(text=template(REEF, FORD), actor=ACTOR)
    agent = make(template_name="Pilot")
    with tenant_transaction(tenant.id):
        return start_agent(agent_id=agent.id, actor=ACTOR)


def restart(agent: Agent) -> list[str]:
    """Restart an agent, and return the facts that were stored again."""
    with tenant_transaction(agent.tenant_id):
        stop_agent(agent_id=agent.id, actor=ACTOR)
        start_agent(agent_id=agent.id, actor=ACTOR)
        event = AuditEvent.objects.filter(action=AuditAction.AGENT_STARTED).latest("at")
        ids = event.detail.get("reseeded", [])
        return list(Memory.objects.filter(id__in=ids).values_list("content", flat=True))


def test_a_complete_agent_gets_nothing_again(pilot: Agent) -> None:
    assert restart(pilot) == []
    with tenant_transaction(pilot.tenant_id):
        assert Memory.objects.filter(content__in=[REEF, FORD]).count() == 2


def test_knowledge_that_has_gone_comes_back_once(pilot: Agent) -> None:
    with tenant_transaction(pilot.tenant_id):
        Memory.objects.filter(content=FORD).delete()
    assert restart(pilot) == [FORD]
    assert restart(pilot) == []


def test_new_knowledge_of_the_template_is_stored(pilot: Agent) -> None:
    with tenant_transaction(pilot.tenant_id):
        update_template(text=template(REEF, FORD, "Ships wait for the tide.", version="1.1"), actor=ACTOR)
    assert restart(pilot) == ["Ships wait for the tide."]


@pytest.mark.parametrize("purged", [False, True], ids=["archived", "purged"])
def test_knowledge_that_a_person_removed_stays_away(pilot: Agent, purged: bool) -> None:
    with tenant_transaction(pilot.tenant_id):
        removed = Memory.objects.get(content=FORD)
        archive(memory_ids=[removed.id], reason="wrong", actor=ACTOR)
        if purged:
            purge(memory_ids=[removed.id], reason="wrong", actor=ACTOR)
    assert restart(pilot) == []
    with tenant_transaction(pilot.tenant_id):
        assert Memory.objects.filter(content=FORD, status="active").count() == 0


def test_an_agent_without_its_template_starts(pilot: Agent) -> None:
    with tenant_transaction(pilot.tenant_id):
        Agent.objects.filter(id=pilot.id).update(template_name="Gone")
    assert restart(pilot) == []
