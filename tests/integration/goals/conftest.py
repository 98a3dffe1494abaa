"""An agent whose backlog is empty."""

from __future__ import annotations

from uuid import UUID

import pytest

from apps.agents.models import Agent
from tests.factories.agents import AgentFactory


@pytest.fixture
def agent_id(in_tenant: UUID) -> UUID:
    """Return an agent's id, inside its tenant's transaction."""
    agent: Agent = AgentFactory()
    return agent.id
