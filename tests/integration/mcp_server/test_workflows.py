"""Workflows over MCP: listed, started once by a key, and shown."""

from __future__ import annotations

from uuid import UUID

import pytest

from apps.agents.models import Agent
from apps.tenants.scope import tenant_transaction
from apps.workflows.services.definitions import WorkflowRequest, create_workflow
from apps.workflows.services.legs import advance_run
from tests.factories.workflows import SOURCE
from tests.integration.mcp_server.conftest import InProcessClient, ToolFailed


@pytest.fixture(autouse=True)
def _review(agent: Agent) -> None:
    """Define the workflow `review`."""
    with tenant_transaction(agent.tenant_id):
        create_workflow(request=WorkflowRequest(name="review", source=SOURCE), actor="cli:eve")


def test_a_workflow_is_listed_started_and_shown(client: InProcessClient, agent: Agent) -> None:
    (listed,) = client.tool("list_workflows")["workflows"]
    assert (listed["name"], listed["inputs"]) == ("review", ["topic"])
    start = {"workflow": "review", "values": {"topic": "rain"}, "key": "7"}
    run = client.tool("start_workflow", **start)
    assert client.tool("start_workflow", **start)["id"] == run["id"]
    advance_run(run_id=UUID(run["id"]), tenant_id=agent.tenant_id)
    shown = client.tool("show_workflow_run", run=run["id"])
    assert (shown["status"], shown["steps"][0]["status"]) == ("waiting", "waiting")


def test_a_caller_of_one_agent_reaches_no_workflow(client: InProcessClient, agent: Agent) -> None:
    run = client.tool("start_workflow", workflow="review", values={"topic": "rain"})
    bound = InProcessClient(tenant=client.tenant, only_agent=agent.id)
    for tool, arguments in (
        ("list_workflows", {}),
        ("start_workflow", {"workflow": "review", "values": {"topic": "rain"}}),
        ("show_workflow_run", {"run": run["id"]}),
    ):
        with pytest.raises(ToolFailed, match=f"reaches the agent {agent.id} only"):
            bound.tool(tool, **arguments)
