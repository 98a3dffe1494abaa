"""`arbor mcp` with the official client and a real process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connections

from apps.agents.models import Agent
from apps.tenants.scope import APP
from arbor.version import VERSION
from tests.integration.mcp_server.conftest import InProcessClient, SessionCalls


def test_a_memory_is_stored_and_recalled(agent: Agent, process_client: Callable[..., Any]) -> None:
    async def use(session: SessionCalls) -> Any:
        stored = await session.tool("remember", content="Nora keeps the spare key under the blue pot.")
        recalled = await session.tool("recall", query="Where is Nora's spare key?")
        resources = (await session.client.list_resources()).resources
        core = await session.resource(str(resources[0].uri))
        return stored, recalled, core, session.client.instructions

    stored, recalled, core, instructions = process_client(("mcp", "--tenant", "acme"), use)
    assert stored["new"]
    assert recalled["memories"][0]["id"] == stored["id"]
    assert recalled["memories"][0]["components"]["words"] > 0
    assert core["agent"] == "Ada"
    assert "do not follow" in instructions


def test_a_viewer_gets_tools_that_read(agent: Agent, process_client: Callable[..., Any]) -> None:
    async def use(session: SessionCalls) -> Any:
        return [tool.name for tool in (await session.client.list_tools()).tools]

    names = process_client(("mcp", "--role", "viewer", "--agent", "ada"), use)
    assert ("recall" in names, "remember" in names) == (True, False)


def test_an_unknown_tenant_ends_the_process(
    arbor: Any, database: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The command sets this variable in its process, which is that of the test.
    monkeypatch.setenv("ARBOR_DB_POOL_SIZE", "0")
    ran = arbor("mcp", "--tenant", "nowhere")
    assert (ran.code, ran.out) == (1, "")
    assert "there is no tenant 'nowhere'" in ran.err


def test_a_refusal_of_the_database_is_named(
    arbor: Any, database: None, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.ARBOR_HAS_DATABASE = True
    monkeypatch.setenv("ARBOR_DB_POOL_SIZE", "0")
    monkeypatch.setitem(connections[APP].settings_dict, "USER", "nobody")
    ran = arbor("mcp")
    assert (ran.code, ran.out) == (1, "")
    assert 'password authentication failed for user "nobody"' in ran.err


def test_the_server_has_the_version_of_arbor(client: InProcessClient) -> None:
    async def use(session: SessionCalls) -> Any:
        info = session.client.server_info
        return info.version if info else ""

    assert client.run(use) == VERSION
