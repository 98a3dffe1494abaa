"""The MCP servers of all roles, for HTTP. Loading this module takes a second and 40 MB, so `http` loads it at the first request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from apps.api.threads import in_thread
from apps.mcp_server.server import build_server
from apps.tenants.models import Role


@asynccontextmanager
async def run_servers() -> AsyncIterator[Mapping[Role, StreamableHTTPSessionManager]]:
    """Run the server of each role, and yield their session managers."""
    async with AsyncExitStack() as stack:
        managers = {role: await in_thread(_session_manager, role) for role in Role}
        for manager in managers.values():
            await stack.enter_async_context(manager.run())
        yield managers


def _session_manager(role: Role) -> StreamableHTTPSessionManager:
    server = build_server(role=role)
    # Only the session manager of this application is used: the application itself would check no token.
    server.streamable_http_app(stateless_http=True, json_response=True, host="")
    return server.session_manager
