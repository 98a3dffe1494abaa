"""The pages of MCP servers and tools."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.console.operator import tools as tool_pages
from apps.tenants.scope import tenant_transaction
from apps.tools.models import Tool, ToolServer
from apps.tools.services.tools import agents_of_tool, allow_tool
from tests.factories.agents import AgentFactory
from tests.factories.tools import ToolFactory, ToolServerFactory
from tests.support.console import World, page_of, page_text


def store_tool(world: World, **values: object) -> Tool:
    """Store a tool of a server with a secret address."""
    with tenant_transaction(world.tenant.id):
        server = ToolServerFactory.create(
            tenant_id=world.tenant.id, name="weather", url="https://example.org/s3cret"
        )
        tool: Tool = ToolFactory.create(tenant_id=world.tenant.id, server=server, name="forecast", **values)
    return tool


def test_pages_show_tools_and_no_secret(viewer: Client, world: World) -> None:
    tool = store_tool(world, description="<b>Gives</b> the forecast.")
    pages = (
        reverse("admin:tools_tool_changelist"),
        reverse("admin:tools_toolserver_changelist"),
        page_of(tool),
        page_of(tool.server),
    )
    with CaptureQueriesContext(connection) as queries:
        shown = [page_text(viewer, address) for address in pages]
    assert not [query for query in queries.captured_queries if "sealed_secret" in query["sql"]]
    assert "mcp.weather.forecast" in shown[0]
    assert "https://example.org/…" in shown[1]
    assert "&lt;b&gt;Gives&lt;/b&gt; the forecast." in shown[2]
    assert "forecast" in shown[3]
    assert not [text for text in shown if "s3cret" in text or "<b>Gives" in text]
    assert "allow-tool" not in shown[2]


def test_an_operator_adds_a_server_and_allows_its_tool(
    operator: Client, viewer: Client, world: World
) -> None:
    new = reverse("admin:tools_toolserver_add")
    assert viewer.post(new, {}).status_code == 403
    payload = {"name": "tickets", "url": "https://example.org/mcp", "secret": "t0ken"}
    assert "tickets is added" in operator.post(new, payload).content.decode()
    assert "already" in operator.post(new, payload).content.decode()
    tool = store_tool(world)
    act = reverse("admin:tool-act", args=[tool.id])
    terms = {"act": "allow", "cost": "7", "fingerprint": tool.fingerprint, "for": "chosen"}
    assert viewer.post(act, terms).status_code == 403
    assert "choose at least one agent" in operator.post(act, terms, follow=True).content.decode()
    for whose in ({}, {"for": "some"}):
        refused = operator.post(act, {"act": "allow", **whose}, follow=True).content.decode()
        assert "for all or for chosen agents" in refused
    stale = {**terms, "for": "all", "fingerprint": "0" * 64}
    assert "has changed since you saw it" in operator.post(act, stale, follow=True).content.decode()
    page = operator.post(act, {**terms, "agent": [str(world.agent.id)]}, follow=True).content.decode()
    assert "7 energy" in page
    assert "Withdraw" in page
    with tenant_transaction(world.tenant.id):
        allowed = Tool.objects.get(id=tool.id)
        assert (allowed.status, allowed.cost, allowed.for_all) == ("allowed", 7, False)
    operator.post(act, {"act": "deny"})
    server_act = reverse("admin:tool-server-act", args=[tool.server_id])
    assert "being listed" in operator.post(server_act, {"act": "refresh"}, follow=True).content.decode()
    operator.post(server_act, {"act": "remove"})
    with tenant_transaction(world.tenant.id):
        assert not Tool.objects.filter(id=tool.id).exists()
        assert list(ToolServer.objects.values_list("name", flat=True)) != []


def test_a_suspended_tool_is_an_alarm(operator: Client, world: World) -> None:
    tool = store_tool(
        world, status="changed", before={"description": "It was kind.", "schema": {"properties": {}}}
    )
    assert "is suspended" in page_text(operator, reverse("admin:index"))
    page = page_text(operator, page_of(tool))
    assert "It was kind." in page
    assert "Allow it as it is" in page


def test_a_form_without_room_keeps_the_chosen_agents(
    operator: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = store_tool(world)
    with tenant_transaction(world.tenant.id):
        first = AgentFactory.create(tenant_id=world.tenant.id, name="Aa first")
        allow_tool(tool_id=tool.id, agent_ids=[world.agent.id], actor="test")
    monkeypatch.setattr(tool_pages, "_AGENTS_OFFERED", 1)
    shown = read_boxes(page_text(operator, page_of(tool)))
    assert shown == {str(first.id): False, str(world.agent.id): True}
    act = reverse("admin:tool-act", args=[tool.id])
    operator.post(act, {"act": "allow", "for": "chosen", "cost": "4", "agent": list(shown)}, follow=True)
    with tenant_transaction(world.tenant.id):
        assert agents_of_tool(Tool.objects.get(id=tool.id)) == sorted([first.name, world.agent.name])


def read_boxes(page: str) -> dict[str, bool]:
    """Return the agents that the form offers, and whether each is chosen."""
    found = re.findall(r'name="agent" value="([^"]+)"( checked)?', page)
    return {agent_id: bool(checked) for agent_id, checked in found}
