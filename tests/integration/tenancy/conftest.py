"""Two tenants with one agent, memory and goal each."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

import pytest

from apps.agents.models import Agent
from apps.goals.models import Goal
from apps.memories.models import Memory
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from tests.factories.agents import AgentFactory
from tests.factories.goals import GoalFactory
from tests.factories.memories import MemoryFactory


@dataclass(frozen=True, kw_only=True)
class Home:
    """A tenant with its agent, memory and goal."""

    id: UUID
    slug: str
    agent: Agent
    memory: Memory
    goal: Goal


def create_rows(tenant: Tenant) -> Home:
    with tenant_transaction(tenant.id):
        agent = AgentFactory(name=f"scout of {tenant.slug}")
        return Home(
            id=tenant.id,
            slug=tenant.slug,
            agent=agent,
            memory=MemoryFactory(agent=agent, content=f"the secret of {tenant.slug}"),
            goal=GoalFactory(agent=agent),
        )


@pytest.fixture
def ours(tenant: Tenant) -> Home:
    return create_rows(tenant)


@pytest.fixture
def theirs(other_tenant: Tenant) -> Home:
    return create_rows(other_tenant)
