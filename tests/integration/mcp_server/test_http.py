"""`/mcp` with the official client, a real server and tokens."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from django.db import OperationalError
from mcp.client.streamable_http import streamable_http_client

from apps.agents.models import Agent
from apps.mcp_server import http
from apps.mcp_server.exchange import Message
from apps.mcp_server.http import McpEndpoint
from apps.tenants.models import Role, Tenant
from config.servers.postgres import EmbeddedPostgres
from tests.integration.api.test_server import api_process, server
from tests.integration.mcp_server.conftest import SessionCalls, ToolFailed, Use, in_session
from tests.support.api import caller_of

__all__ = ["server"]

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    },
}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.fixture
def limited_server(postgres: EmbeddedPostgres, tmp_path: Path) -> Iterator[str]:
    """Return the address of an API with an access log, whose tokens may make two requests a minute."""
    own = {"ARBOR_API_PER_MINUTE": "2", "ARBOR_LOG_LEVEL": "INFO"}
    with api_process(postgres, tmp_path, **own) as address:
        yield address


@asynccontextmanager
async def http_transport(server: str, token: str) -> AsyncIterator[Any]:
    """Connect to `/mcp` with a token."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as client,
        streamable_http_client(f"{server}/mcp", http_client=client) as streams,
    ):
        yield streams


def in_http_session(server: str, token: str, use: Use) -> Any:
    """Return the result of a use of a session with a token."""
    return in_session(http_transport(server, token), use)


def test_tokens_determine_tenants_agents_and_tools(
    server: str, agent: Agent, tenant: Tenant, other_tenant: Tenant, new_agent: Any
) -> None:
    bea = new_agent(tenant, name="Bea")
    new_agent(other_tenant, name="Eve")

    async def remember(session: SessionCalls) -> Any:
        stored = await session.tool("remember", agent="Ada", content="The ferry leaves at noon.")
        found = await session.tool("recall", agent="Ada", query="When does the ferry leave?")
        return stored["id"], found["memories"][0]["id"]

    async def read_lists(session: SessionCalls) -> Any:
        tools = [tool.name for tool in (await session.client.list_tools()).tools]
        resources = [resource.name for resource in (await session.client.list_resources()).resources]
        agents = [line["name"] for line in (await session.tool("list_agents"))["agents"]]
        with pytest.raises(ToolFailed):
            await session.tool("recall", agent="Ada", query="ferry")
        return "remember" in tools, agents, resources

    stored, recalled = in_http_session(server, caller_of(tenant, Role.OPERATOR).token, remember)
    assert stored == recalled
    foreign = in_http_session(server, caller_of(other_tenant, Role.VIEWER).token, read_lists)
    assert foreign == (False, ["Eve"], ["Eve: identity", "Eve: goals", "Eve: self"])
    token_for_bea = caller_of(tenant, Role.OPERATOR, agent_id=bea.id).token
    assert in_http_session(server, token_for_bea, read_lists)[:2] == (True, ["Bea"])


def test_requests_without_rights_are_refused(server: str, agent: Agent, tenant: Tenant) -> None:
    token = caller_of(tenant, Role.VIEWER).token
    with httpx.Client(base_url=server, headers=ACCEPT) as client:
        nobody = client.post("/mcp", json=INITIALIZE)
        assert (nobody.status_code, nobody.headers["www-authenticate"]) == (401, 'Bearer realm="Arbor"')
        assert "arbor token create" in nobody.json()["detail"]
        assert (
            client.post("/mcp", json=INITIALIZE, headers={"Authorization": "Bearer arbor_x"}).status_code
            == 401
        )
        client.headers["Authorization"] = f"Bearer {token}"
        origins = ("https://evil.example", "http://[", "http://[x]")
        for headers in (*({"Origin": origin} for origin in origins), {"Host": "evil.example"}):
            refused = client.post("/mcp", json=INITIALIZE, headers=headers)
            assert refused.status_code == 403, headers
        same = client.post("/mcp", json=INITIALIZE, headers={"Origin": server})
        assert same.json()["result"]["serverInfo"]["name"] == "arbor"
        assert "mcp-session-id" not in same.headers


def test_an_unreachable_database_is_a_503(monkeypatch: pytest.MonkeyPatch) -> None:
    def lose_connection(_token: str) -> Any:
        raise OperationalError("the connection is lost")

    async def receive() -> Message:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    sent: list[Message] = []
    monkeypatch.setattr(http, "authenticate", lose_connection)
    headers = [(b"host", b"localhost"), (b"authorization", b"Bearer arbor_x"), (b"x-request-id", b"mine-7")]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers}
    asyncio.run(McpEndpoint()(scope, receive, send))
    problem = json.loads(sent[1]["body"])
    assert (sent[0]["status"], problem["type"], problem["request_id"]) == (
        503,
        "urn:arbor:problem:database-away",
        "mine-7",
    )


def logged_mcp_requests(log: Path, *, count: int) -> list[tuple[str, int, str]]:
    """Return the logged requests with the test's id; wait until there are `count`, as a request is logged after its answer."""
    deadline = time.monotonic() + 30
    while True:
        lines = [json.loads(line) for line in log.read_text().splitlines() if "mine-7" in line]
        logged = [(line["route"], line["status"], line["tenant"]) for line in lines if line["route"] == "mcp"]
        if len(logged) >= count or time.monotonic() > deadline:
            return logged
        time.sleep(0.05)


def test_mcp_requests_count_against_the_limit_of_their_token(
    limited_server: str, agent: Agent, tenant: Tenant, tmp_path: Path
) -> None:
    token = caller_of(tenant, Role.VIEWER).token
    headers = {**ACCEPT, "Authorization": f"Bearer {token}", "X-Request-ID": "mine-7"}
    with httpx.Client(base_url=limited_server, headers=headers, timeout=60) as client:
        client.get("/api/v1/tenant")
        first, second = (client.post("/mcp", json=INITIALIZE) for _ in range(2))
    assert (first.status_code, first.headers["ratelimit-remaining"]) == (200, "0")
    assert (second.status_code, second.headers["ratelimit-limit"]) == (429, "2")
    assert 1 <= int(second.headers["retry-after"]) <= 60
    assert (second.json()["type"], second.json()["request_id"]) == (
        "urn:arbor:problem:rate-limited",
        "mine-7",
    )
    assert logged_mcp_requests(tmp_path / "log", count=2) == [("mcp", 200, "acme"), ("mcp", 429, "acme")]
    assert token not in (tmp_path / "log").read_text()
