"""A real MCP server, and heartbeats that call its tool."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings

from apps.agents.models import Agent
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from apps.tools import clients
from apps.tools.models import Tool
from apps.tools.services.servers import add_server, refresh_server
from apps.tools.services.tools import allow_tool, tool_by_action
from arbor.models.ports import ScriptedModel
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script, action_of, reply_of, text_of
from tests.support.tool_server import RunningServer, run_tool_server

type Run = Callable[..., ScriptedModel]

ACTION = "mcp.weather.forecast"


@pytest.fixture(scope="module")
def running_server() -> Iterator[RunningServer]:
    """Return a real server, which the tests of one module share."""
    with run_tool_server() as server:
        yield server


@pytest.fixture
def weather(
    running_server: RunningServer, monkeypatch: pytest.MonkeyPatch, database: None
) -> Iterator[RunningServer]:
    """Return the server as new, in a network that tools may reach."""
    monkeypatch.setattr(settings, "ARBOR_MCP_ALLOW_HTTP", True)
    monkeypatch.setattr(settings, "ARBOR_MCP_ALLOW_PRIVATE", True)
    clients.tool_client.cache_clear()
    running_server.offer()
    running_server.calls.clear()
    running_server.authorizations.clear()
    running_server.answer = "Gale from the west, 9 Beaufort."
    yield running_server
    clients.tool_client.cache_clear()


def allow_forecast(tenant: Tenant, weather: RunningServer, **choices: Any) -> Tool:
    """Add the server to a tenant, list its tools and allow `forecast`; return that tool."""
    with tenant_transaction(tenant.id):
        server = add_server(name="weather", url=weather.url, secret="s3cret", actor="test")
    refresh_server(server_id=server.id, tenant_id=tenant.id, actor="test")
    with tenant_transaction(tenant.id):
        return allow_tool(tool_id=tool_by_action(ACTION).id, actor="test", **choices)


def reply_calling(**params: Any) -> str:
    """Return a reply that calls the tool."""
    return reply_of(action_of(ACTION, **params))


@pytest.fixture
def run(fleet: Fleet, agent: Agent, scripted: Script) -> Run:
    """Return a function that runs one heartbeat of an agent with these replies, and returns its model."""

    def run_replies(*replies: Any, of: Agent = agent) -> ScriptedModel:
        model = scripted(*replies)
        fleet.claim(of)
        fleet.run()
        return model

    return run_replies


def prompt_of(model: ScriptedModel, number: int = 0) -> str:
    """Return a request of a model as one text."""
    return text_of(model.requests[number])
