"""An agent without a self, and a belief to add."""

from __future__ import annotations

import pytest

from apps.agents.models import Agent
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.selves.values import BeliefCategory, NewBelief
from tests.factories.agents import AgentFactory

ACTOR = "user:ann"
ICE = NewBelief(statement="Ice holds after a week.", category=BeliefCategory.WORLD, confidence=0.8)


@pytest.fixture
def agent(tenant: Tenant) -> Agent:
    with tenant_transaction(tenant.id):
        created: Agent = AgentFactory()
        return created
