"""Resources of the MCP server: the core of an agent."""

from __future__ import annotations

from typing import Any

from apps.agents.models import Agent
from apps.fleet.identities import suspend_identity
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from tests.integration.mcp_server.conftest import InProcessClient, SessionCalls


def test_the_core_of_an_agent_is_read(client: InProcessClient, agent: Agent) -> None:
    async def use(session: SessionCalls) -> Any:
        listed = (await session.client.list_resources()).resources
        return {resource.name: await session.resource(str(resource.uri)) for resource in listed}

    core = client.run(use)
    assert set(core) == {"Ada: identity", "Ada: goals", "Ada: self"}
    assert "Ada" in core["Ada: identity"]["character"]
    endorsement = core["Ada: identity"]["endorsement"]
    assert (endorsement["status"], endorsement["refusal"]) == ("active", "")
    with tenant_transaction(agent.tenant_id):
        suspend_identity(agent_id=agent.id, reason="its key leaked", actor="test")
    endorsement = client.run(use)["Ada: identity"]["endorsement"]
    assert (endorsement["status"], endorsement["refusal"]) == (
        "suspended",
        "the identity is suspended: its key leaked",
    )
    assert core["Ada: goals"]["goals"]


def test_names_are_quoted_in_addresses(tenant: Tenant, client: InProcessClient, new_agent: Any) -> None:
    new_agent(tenant, name="Old Tom's cat")

    async def use(session: SessionCalls) -> Any:
        listed = (await session.client.list_resources()).resources
        uris = [str(resource.uri) for resource in listed if "Tom" in resource.name]
        return [await session.resource(uri) for uri in uris]

    assert [core["agent"] for core in client.run(use)] == ["Old Tom's cat"] * 3
