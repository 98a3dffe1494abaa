"""A real MCP server of the official SDK on this machine, whose tools a test changes while it runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from mcp.server.mcpserver import MCPServer
from starlette.types import ASGIApp, Receive, Scope, Send

DESCRIPTION = "Gives the forecast for a harbour."


@dataclass(kw_only=True)
class RunningServer:
    """A running server, with the calls of `forecast` and the Authorization headers of all requests."""

    url: str = ""
    server: MCPServer = field(default_factory=lambda: MCPServer("weather"))
    calls: list[tuple[str, int]] = field(default_factory=list)
    authorizations: set[str] = field(default_factory=set)
    #: The answer of `forecast`, or the error that it raises.
    answer: str | Exception = "Gale from the west, 9 Beaufort."

    def offer(self, description: str = DESCRIPTION) -> None:
        """Offer the tool `forecast` with a description, instead of an earlier one."""

        def forecast(harbour: str, days: int = 1) -> str:
            self.calls.append((harbour, days))
            if isinstance(self.answer, Exception):
                raise self.answer
            return self.answer

        if any(tool.name == "forecast" for tool in self.server._tool_manager.list_tools()):
            self.withdraw()
        self.server.add_tool(forecast, description=description, structured_output=False)

    def withdraw(self) -> None:
        """Offer `forecast` no longer."""
        self.server.remove_tool("forecast")


def _recording(application: ASGIApp, running: RunningServer) -> ASGIApp:
    async def record(scope: Scope, receive: Receive, send: Send) -> None:
        headers: dict[bytes, bytes] = dict(scope.get("headers", ()))
        running.authorizations.add(headers.get(b"authorization", b"").decode())
        await application(scope, receive, send)

    return record


@contextmanager
def run_tool_server(**settings: Any) -> Iterator[RunningServer]:
    """Run a server on the loopback."""
    running = RunningServer()
    running.offer()
    application = running.server.streamable_http_app(stateless_http=True, json_response=True, **settings)
    server = uvicorn.Server(
        uvicorn.Config(_recording(application, running), port=0, log_config=None, ws="none", lifespan="on")
    )
    thread = threading.Thread(target=server.run, daemon=True)
    started = threading.Event()
    startup = server.startup

    async def start(*arguments: Any, **named: Any) -> None:
        await startup(*arguments, **named)
        started.set()

    server.startup = start  # type: ignore[method-assign]
    thread.start()
    assert started.wait(20)
    port = server.servers[0].sockets[0].getsockname()[1]
    running.url = f"http://127.0.0.1:{port}/mcp"
    try:
        yield running
    finally:
        server.should_exit = True
        thread.join(20)
