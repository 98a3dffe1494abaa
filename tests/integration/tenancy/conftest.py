"""Two tenants with one agent, memory and goal each, and statements that no model sends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from django.db import connection

from apps.agents.models import Agent
from apps.goals.models import Goal
from apps.memories.models import Memory
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from tests.factories.agents import AgentFactory
from tests.factories.goals import GoalFactory
from tests.factories.memories import MemoryFactory


@dataclass(frozen=True, kw_only=True)
class TenantRows:
    """A tenant with its agent, memory and goal."""

    id: UUID
    slug: str
    agent: Agent
    memory: Memory
    goal: Goal


def create_rows(tenant: Tenant) -> TenantRows:
    with tenant_transaction(tenant.id):
        agent = AgentFactory(name=f"scout of {tenant.slug}")
        return TenantRows(
            id=tenant.id,
            slug=tenant.slug,
            agent=agent,
            memory=MemoryFactory(agent=agent, content=f"the secret of {tenant.slug}"),
            goal=GoalFactory(agent=agent),
        )


def fetch_raw(statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a statement that is sent as it is, in any scope or none."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters or None)
        return list(cursor.fetchall())


@pytest.fixture
def ours(tenant: Tenant) -> TenantRows:
    return create_rows(tenant)


@pytest.fixture
def theirs(other_tenant: Tenant) -> TenantRows:
    return create_rows(other_tenant)
