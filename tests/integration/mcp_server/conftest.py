"""Clients of the MCP server: in memory, and over a real process."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from django.db import connections
from mcp import Client, StdioServerParameters, stdio_client
from mcp.types import CallToolResult, TextContent, TextResourceContents

from apps.agents.models import Agent
from apps.audit.models import AuditEvent
from apps.mcp_server.mcp_caller import McpCaller
from apps.mcp_server.server import build_server
from apps.tenants.models import Role, Tenant
from apps.tenants.scope import SERVING, tenant_transaction
from config.environment import with_user
from config.servers.postgres import EmbeddedPostgres
from tests.integration.cli.conftest import arbor
from tests.integration.heartbeats.conftest import agent, fleet, new_agent, scripted

__all__ = ["agent", "arbor", "fleet", "new_agent", "scripted"]

ROOT = Path(__file__).parents[3]
ACTOR = "mcp:nora"
_ROLE_URLS = {
    "default": "ARBOR_APP_DATABASE_URL",
    "ops": "ARBOR_OPS_DATABASE_URL",
    "accounts": "ARBOR_ACCOUNTS_DATABASE_URL",
}


class ToolFailed(Exception):
    """A tool answered with an error."""


@dataclass(frozen=True, kw_only=True)
class SessionCalls:
    """Calls by one client session; each returns plain values."""

    client: Client

    async def tool(self, name: str, /, **arguments: Any) -> Any:
        """Call a tool; return its structured result. Raises ToolFailed."""
        result = await self.client.call_tool(name, arguments)
        assert isinstance(result, CallToolResult)
        if result.is_error:
            raise ToolFailed(text_of(result))
        return result.structured_content

    async def resource(self, uri: str) -> Any:
        """Read a resource as JSON."""
        (content,) = (await self.client.read_resource(uri)).contents
        assert isinstance(content, TextResourceContents)
        return json.loads(content.text)


def text_of(result: CallToolResult) -> str:
    """Return the texts of a result."""
    return "".join(block.text for block in result.content if isinstance(block, TextContent))


type Use = Callable[[SessionCalls], Awaitable[Any]]


def in_session(target: Any, use: Use) -> Any:
    """Connect to a server object or a transport; return the result of `use` for the session."""

    async def run() -> Any:
        async with Client(target) as client:
            try:
                return await use(SessionCalls(client=client))
            except ToolFailed as failure:
                # The session would wrap it into groups of exceptions.
                return failure

    result = anyio.run(run)
    if isinstance(result, ToolFailed):
        raise result
    return result


@dataclass(frozen=True, kw_only=True)
class InProcessClient:
    """A client of a server in this process, with a role in one tenant."""

    tenant: Tenant
    role: Role = Role.OPERATOR
    only_agent: Any = None
    calls_models: bool = True

    def run(self, use: Use) -> Any:
        """Return the result of `use` for a session."""
        caller = McpCaller(
            tenant_id=self.tenant.id,
            actor=ACTOR,
            role=self.role,
            only_agent=self.only_agent,
            calls_models=self.calls_models,
        )
        return in_session(build_server(role=self.role, caller=caller), use)

    def tool(self, name: str, /, **arguments: Any) -> Any:
        """Call one tool in a session of its own."""
        return self.run(lambda session: session.tool(name, **arguments))


@pytest.fixture
def client(tenant: Tenant, agent: Agent) -> InProcessClient:
    """Return an operator's client of a tenant with one agent."""
    return InProcessClient(tenant=tenant)


@pytest.fixture
def process_client(postgres: EmbeddedPostgres, tmp_path: Path) -> Callable[..., Any]:
    """Return a function that starts a command and returns the result of a use of its session."""

    def run(arguments: Sequence[str], use: Use) -> Any:
        urls = {
            _ROLE_URLS[alias]: with_user(
                postgres.owner_url,
                connections.settings[alias]["USER"],
                connections.settings[alias]["PASSWORD"],
            )
            for alias in SERVING
        }
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "config.cli", *arguments],
            cwd=ROOT,
            env={**os.environ, **urls, "CELERY_BROKER_URL": "redis://127.0.0.1:1/0"},
        )
        with (tmp_path / "errors").open("w+") as errors:
            try:
                return in_session(stdio_client(server, errlog=errors), use)
            finally:
                errors.seek(0)
                assert errors.read() == ""

    return run


def audited_messages(tenant: Tenant) -> list[str]:
    """Return the messages that the audit log has about the client's acts."""
    with tenant_transaction(tenant.id):
        return list(AuditEvent.objects.filter(actor=ACTOR).order_by("id").values_list("message", flat=True))
