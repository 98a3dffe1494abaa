"""Serve MCP by streamable HTTP: the ASGI application of `/mcp`, with a token in each request."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import AsyncExitStack, asynccontextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from apps.access.services import authenticate
from apps.api.threads import in_thread
from apps.mcp_server.callers import SCOPE_KEY, McpCaller
from apps.mcp_server.server import build_server
from apps.tenants.models import Role
from arbor.errors import PermissionDenied, TokenRefused

PATH = "/mcp"

type Message = MutableMapping[str, Any]
type Receive = Callable[[], Awaitable[Message]]
type Send = Callable[[Message], Awaitable[None]]

_NO_TOKEN = "the request needs a token: Authorization: Bearer arbor_…; `arbor token create` makes one"  # noqa: S105 (a message)


class McpEndpoint:
    """Answers requests to `/mcp`. Each request is complete in itself: no session, so any process may answer the next one.

    The token decides about the tenant, the role and with it the tools, and the agent.
    """

    def __init__(self) -> None:
        self._managers: dict[Role, StreamableHTTPSessionManager] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the servers of all roles, from the start of the process to its end."""
        async with AsyncExitStack() as stack:
            for role in Role:
                server = build_server(role=role)
                # The application itself is not served: it would check no token. Made for its session manager.
                server.streamable_http_app(stateless_http=True, json_response=True, host="")
                self._managers[role] = server.session_manager
                await stack.enter_async_context(server.session_manager.run())
            yield

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            _require_known_host(headers)
            caller = await in_thread(_authenticate, headers.get("authorization", ""))
        except TokenRefused as error:
            await _refuse(scope, send, HTTPStatus.UNAUTHORIZED, str(error))
            return
        except PermissionDenied as error:
            await _refuse(scope, send, HTTPStatus.FORBIDDEN, str(error))
            return
        await self._managers[caller.role].handle_request({**scope, SCOPE_KEY: caller}, receive, send)


def _require_known_host(headers: MutableMapping[str, str]) -> None:
    """Refuse pages of other sites: a browser sends its page's origin, and a rebound name as the host."""
    host, _ = split_domain_port(headers.get("host", ""))
    if not host or not validate_host(host, settings.ALLOWED_HOSTS):
        raise PermissionDenied(f"the host {host!r} is not in ALLOWED_HOSTS")
    origin = headers.get("origin")
    if origin is None or origin in settings.CSRF_TRUSTED_ORIGINS:
        return
    if urlsplit(origin).netloc != headers["host"]:
        raise PermissionDenied(
            f"pages of {origin} may not use the server; CSRF_TRUSTED_ORIGINS lists those that may"
        )


def _authenticate(authorization: str) -> McpCaller:
    """Return the caller of a token. Raises TokenRefused, and PermissionDenied for a suspended tenant."""
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer":
        raise TokenRefused(_NO_TOKEN)
    access = authenticate(token.strip())
    if access.suspended:
        raise PermissionDenied(f"the tenant {access.tenant_slug} is suspended")
    return McpCaller(
        tenant_id=access.tenant_id, actor=access.actor, role=access.role, only_agent=access.agent_id
    )


async def _refuse(scope: Message, send: Send, status: HTTPStatus, detail: str) -> None:
    found = {
        "type": f"urn:arbor:problem:{'token-refused' if status == HTTPStatus.UNAUTHORIZED else 'permission-denied'}",
        "title": status.phrase,
        "status": int(status),
        "detail": detail,
        "instance": scope["path"],
    }
    headers = [(b"content-type", b"application/problem+json"), (b"cache-control", b"no-store")]
    if status == HTTPStatus.UNAUTHORIZED:
        headers.append((b"www-authenticate", b'Bearer realm="Arbor"'))
    await send({"type": "http.response.start", "status": int(status), "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(found).encode()})
