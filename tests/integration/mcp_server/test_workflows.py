"""Workflows over MCP: listed, started once by a key, and shown."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from apps.agents.models import Agent
from apps.mcp_server.mcp_caller import McpCaller
from apps.mcp_server.tools.workflows import list_workflows
from apps.tenants.models import Role
from apps.tenants.scope import tenant_transaction
from apps.workflows.services.definitions import WorkflowRequest, create_workflow
from apps.workflows.services.legs import advance_run
from tests.factories.workflows import SOURCE
from tests.integration.mcp_server.conftest import InProcessClient, ToolFailed
from tests.integration.memories.conftest import statements

__all__ = ["statements"]


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


def test_workflows_are_listed_by_the_same_statements_for_any_number(
    agent: Agent, statements: list[str]
) -> None:
    caller = McpCaller(tenant_id=agent.tenant_id, actor="mcp:nora", role=Role.VIEWER)
    context: Any = SimpleNamespace(request_context=SimpleNamespace(request=None, lifespan_context=caller))
    counts = []
    for name in ("audit", "clean"):
        with tenant_transaction(agent.tenant_id):
            create_workflow(request=WorkflowRequest(name=name, source=SOURCE), actor="cli:eve")
        statements.clear()
        listed = list_workflows(context).workflows
        counts.append(len(statements))
    assert [(workflow.name, workflow.inputs) for workflow in listed] == [
        (name, ["topic"]) for name in ("audit", "clean", "review")
    ]
    assert counts[0] == counts[1]


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
