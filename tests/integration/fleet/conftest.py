"""A tenant with an agent, and job runs without pauses."""

from __future__ import annotations

from typing import Any

import pytest

from apps.agents.models import Agent
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from tests.factories.agents import AgentStateFactory


@pytest.fixture(autouse=True)
def _no_pauses(settings: Any) -> None:
    """Run jobs without the pauses between their steps."""
    settings.ARBOR_MAINTENANCE_SHARE = 1.0


@pytest.fixture
def agent(tenant: Tenant) -> Agent:
    """Return an agent of the tenant."""
    with tenant_transaction(tenant.id):
        agent: Agent = AgentStateFactory().agent
    return agent
