"""A request to `/mcp` with its response: the request's id, the headers of every response, the line of the access log."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any

import structlog

from apps.access.services import TokenAccess
from apps.api.rates import RequestRate
from apps.api.requests import REQUEST_ID, valid_request_id

log = structlog.get_logger(__name__)

type Message = MutableMapping[str, Any]
type Send = Callable[[Message], Awaitable[None]]


class Exchange:
    """One request and its response."""

    def __init__(self, *, method: str, path: str, request_id: str, send: Send) -> None:
        """Begin with the request; `request_id` is the id that the client sent, if any."""
        self.request_id = valid_request_id(request_id)
        self.access: TokenAccess | None = None
        self.rate: RequestRate | None = None
        self._method = method
        self._path = path
        self._send = send
        self._status = 0
        self._started = time.perf_counter()

    async def send(self, message: Message) -> None:
        """Send a message of the response to the client, with the headers of every response."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            message = {**message, "headers": [*message.get("headers", []), *self._headers()]}
        await self._send(message)

    def _headers(self) -> list[tuple[bytes, bytes]]:
        headers = {REQUEST_ID: self.request_id, "X-Content-Type-Options": "nosniff"}
        if self.rate is not None:
            headers |= self.rate.headers()
        return [(name.lower().encode(), value.encode()) for name, value in headers.items()]

    def write_log(self) -> None:
        """Write the request's line of the access log."""
        log.info(
            "request_answered",
            method=self._method,
            route=self._path.strip("/"),
            status=self._status or int(HTTPStatus.INTERNAL_SERVER_ERROR),
            ms=round((time.perf_counter() - self._started) * 1000, 1),
            request_id=self.request_id,
            tenant=self.access.tenant_slug if self.access is not None else None,
            token_id=str(self.access.token_id) if self.access is not None else None,
        )
