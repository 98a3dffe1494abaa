"""The loading of the servers of `/mcp` by the first request; a failure neither hangs nor ends the process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from apps.access.services import TokenAccess
from apps.mcp_server import http
from apps.tenants.models import Role

ACCESS = TokenAccess(
    token_id=UUID(int=1),
    name="reader",
    tenant_id=UUID(int=2),
    tenant_slug="acme",
    role=Role.VIEWER,
    agent_id=None,
    suspended=False,
    agent_exists=True,
)


class Manager:
    """A session manager that answers each request with 200."""

    async def handle_request(self, _scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


@asynccontextmanager
async def run_servers() -> AsyncIterator[Mapping[Role, Manager]]:
    yield {Role.VIEWER: Manager()}


async def status_of(endpoint: http.McpEndpoint) -> int:
    statuses: list[int] = []

    async def send(message: Mapping[str, Any]) -> None:
        statuses.extend([message["status"]] if "status" in message else [])

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    await endpoint({"type": "http", "method": "POST", "headers": [(b"host", b"localhost")]}, receive, send)
    return statuses[0]


@pytest.mark.timeout(20)
def test_waiting_requests_are_answered_when_loading_fails(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    loads = iter([ImportError("no module named mcp"), SimpleNamespace(run_servers=run_servers)])

    async def load(_import: Any, *_: Any) -> Any:
        await asyncio.sleep(0)
        loaded = next(loads)
        if isinstance(loaded, Exception):
            raise loaded
        return loaded

    async def in_thread(function: Any, *arguments: Any) -> Any:
        return ACCESS if function is http._authenticate else await load(function, *arguments)

    monkeypatch.setattr(http, "in_thread", in_thread)
    monkeypatch.setattr(http, "count_request", lambda _: None)

    async def use() -> tuple[list[int], int]:
        endpoint = http.McpEndpoint()
        async with endpoint.running():
            waiting = list(await asyncio.gather(status_of(endpoint), status_of(endpoint)))
            return waiting, await status_of(endpoint)

    # Both waiting requests are refused; the next request loads the servers.
    assert asyncio.run(use()) == ([503, 503], 200)
    assert "mcp_servers_failed" in caplog.text
