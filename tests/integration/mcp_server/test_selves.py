"""The self of an agent over MCP: a model reads it, and never rolls it back."""

from __future__ import annotations

from apps.agents.models import Agent
from apps.selves.services.aspects import add_aspect
from apps.tenants.scope import tenant_transaction
from arbor.selves.values import AspectKind, NewAspect
from tests.integration.mcp_server.conftest import InProcessClient


def test_a_self_is_shown_with_its_versions(client: InProcessClient, agent: Agent) -> None:
    before = client.tool("show_self")
    trait = NewAspect(content="stubborn", kind=AspectKind.TRAIT, strength=0.8)
    with tenant_transaction(agent.tenant_id):
        add_aspect(agent_id=agent.id, aspect=trait, actor="user:ann")

    shown = client.tool("show_self")

    assert {"name": "stubborn", "strength": 0.8, "questioned": False} in shown["traits"]
    assert shown["version"] == before["version"] + 1
    assert shown["drift"] > before["drift"]
    latest = shown["versions"][0]
    assert (latest["number"], latest["decided_by"]) == (shown["version"], "user:ann")
    assert latest["changes"] == ["added trait stubborn"]
