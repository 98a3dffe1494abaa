"""Requests for approval over MCP: a model lists them, and never decides."""

from __future__ import annotations

from apps.agents.models import Agent
from apps.tenants.scope import tenant_transaction
from tests.factories.approvals import PARAMS, ActionApprovalFactory
from tests.factories.rows import minutes_ago
from tests.integration.mcp_server.conftest import InProcessClient


def test_requests_are_listed(client: InProcessClient, agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        ActionApprovalFactory(agent=agent)
        ActionApprovalFactory(agent=agent, status="denied", reason="no", decided_at=minutes_ago(2))

    (waiting,) = client.tool("list_approvals")["approvals"]
    assert (waiting["action"], waiting["params"]) == ("reach_out_public", PARAMS)
    (precedent,) = waiting["precedents"]
    assert precedent.endswith("denied reach_out_public “The reef is charted.”: no")
    assert len(client.tool("list_approvals", decided=True)["approvals"]) == 2
