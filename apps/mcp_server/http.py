"""Serve MCP by streamable HTTP: the ASGI application of `/mcp`, with a token in each request."""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.http.request import split_domain_port, validate_host

from apps.access.services import TokenAccess, authenticate
from apps.api.problems import NO_TOKEN, kind_of, status_of
from apps.api.rates import count_request
from apps.api.requests import REQUEST_ID
from apps.api.threads import DATABASE_AWAY, in_thread
from apps.mcp_server.exchange import Exchange, Message, Send
from apps.mcp_server.mcp_caller import SCOPE_KEY, McpCaller
from apps.tenants.models import Role
from arbor.errors import ArborError, PermissionDenied, RateLimited, ServerError, TokenRefused

log = structlog.get_logger(__name__)

PATH = "/mcp"

type Receive = Callable[[], Awaitable[Message]]


class McpEndpoint:
    """Answers requests to `/mcp`. There are no sessions, so any process may answer the next request of a client.

    The token of a request decides its tenant, its role (and so its tools) and its agent.
    """

    def __init__(self) -> None:
        self._wanted = asyncio.Event()
        #: The session managers of the roles once the servers run; None if they did not start.
        self._managers: asyncio.Future[Mapping[Role, Any] | None]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the servers of all roles from the first request to the end of the process. Many processes get no request."""
        self._managers = asyncio.get_running_loop().create_future()
        async with asyncio.TaskGroup() as tasks:
            serving = tasks.create_task(self._run_servers())
            yield
            serving.cancel()

    async def _run_servers(self) -> None:
        while True:
            await self._wanted.wait()
            try:
                sessions = await in_thread(importlib.import_module, "apps.mcp_server.sessions")
                async with sessions.run_servers() as managers:
                    self._managers.set_result(managers)
                    await asyncio.get_running_loop().create_future()  # until cancelled
            except Exception:
                # The process also serves the API, so no error of a library may end it, or let clients wait for ever.
                log.exception("mcp_servers_failed")
            ended, self._managers = self._managers, asyncio.get_running_loop().create_future()
            self._wanted.clear()  # the next request tries again
            if not ended.done():
                ended.set_result(None)

    async def _manager_of(self, role: Role) -> Any:
        """Return the session manager of a role, once the servers run. Raises ServerError if they do not start."""
        self._wanted.set()
        managers = await asyncio.shield(self._managers)
        if managers is None:
            raise ServerError("the MCP servers did not start; the log of the API has the reason")
        return managers[role]

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        exchange = Exchange(
            method=scope["method"], path=PATH, request_id=headers.get(REQUEST_ID.lower(), ""), send=send
        )
        try:
            await self._answer({**scope}, headers, receive, exchange)
        finally:
            exchange.write_log()

    async def _answer(
        self, scope: Message, headers: MutableMapping[str, str], receive: Receive, exchange: Exchange
    ) -> None:
        try:
            _require_known_host(headers)
            exchange.access = await in_thread(_authenticate, headers.get("authorization", ""))
            caller = _caller_of(exchange.access)
            exchange.rate = count_request(exchange.access)
            if exchange.rate is not None:
                exchange.rate.require_allowed()
            manager = await self._manager_of(caller.role)
        except (TokenRefused, PermissionDenied, RateLimited, ServerError) as error:
            await _refuse(exchange, error)
            return
        except (OperationalError, InterfaceError) as error:
            log.error("database_failed", request_id=exchange.request_id, path=PATH, exc_info=error)
            await _refuse(exchange, ServerError(DATABASE_AWAY), kind="database-away")
            return
        scope[SCOPE_KEY] = caller
        await manager.handle_request(scope, receive, exchange.send)


def _require_known_host(headers: MutableMapping[str, str]) -> None:
    """Refuse pages of other sites: a browser sends the origin of its page, and a rebound DNS name as the host."""
    host, _ = split_domain_port(headers.get("host", ""))
    if not host or not validate_host(host, settings.ALLOWED_HOSTS):
        raise PermissionDenied(f"the host {host!r} is not in ALLOWED_HOSTS")
    origin = headers.get("origin")
    if origin is None or origin in settings.CSRF_TRUSTED_ORIGINS:
        return
    if _host_of(origin) != headers["host"]:
        raise PermissionDenied(
            f"pages of {origin} may not use the server; CSRF_TRUSTED_ORIGINS lists those that may"
        )


def _host_of(origin: str) -> str:
    """Return the host and port of an origin; empty for a text that is no address."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _authenticate(authorization: str) -> TokenAccess:
    """Return the rights of a token. Raises TokenRefused, and PermissionDenied for a token for tasks."""
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer":
        raise TokenRefused(NO_TOKEN)
    return authenticate(token.strip())


def _caller_of(access: TokenAccess) -> McpCaller:
    """Return the caller with a token's rights. Raises PermissionDenied for a suspended tenant."""
    if access.suspended:
        raise PermissionDenied(f"the tenant {access.tenant_slug} is suspended")
    return McpCaller(
        tenant_id=access.tenant_id, actor=access.actor, role=access.role, only_agent=access.agent_id
    )


async def _refuse(exchange: Exchange, error: ArborError, *, kind: str = "") -> None:
    status = status_of(error)
    problem = {
        "type": f"urn:arbor:problem:{kind or kind_of(type(error))}",
        "title": status.phrase,
        "status": int(status),
        "detail": str(error),
        "instance": PATH,
        "request_id": exchange.request_id,
    }
    headers = [(b"content-type", b"application/problem+json"), (b"cache-control", b"no-store")]
    if status == HTTPStatus.UNAUTHORIZED:
        headers.append((b"www-authenticate", b'Bearer realm="Arbor"'))
    if isinstance(error, RateLimited):
        headers.append((b"retry-after", str(error.retry_after_s).encode()))
    await exchange.send({"type": "http.response.start", "status": int(status), "headers": headers})
    await exchange.send({"type": "http.response.body", "body": json.dumps(problem).encode()})
