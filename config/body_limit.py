"""A limit of size and time for the bodies of requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any

type Message = MutableMapping[str, Any]
type Receive = Callable[[], Awaitable[Message]]
type Send = Callable[[Message], Awaitable[None]]
type Application = Callable[[Message, Receive, Send], Awaitable[None]]

#: The seconds within which a body must arrive.
ARRIVES_WITHIN_S = 30.0


class BodyLimit:
    """Passes on requests whose body is small enough and arrives in time; refuses all others before anything stores them."""

    def __init__(self, application: Application, *, most_bytes: int) -> None:
        self._application = application
        self._most_bytes = most_bytes

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        try:
            body = await self._read(scope, receive)
        except BodyRefused as error:
            await refuse(scope, send, error)
            return
        if body is None:
            return
        sent = False

        async def receive_body() -> Message:
            nonlocal sent
            if sent:
                return await receive()
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._application(scope, receive_body, send)

    async def _read(self, scope: Message, receive: Receive) -> bytes | None:
        """Return the whole body; None if the client has disconnected. Raises BodyRefused."""
        if declared_bytes(scope) > self._most_bytes:
            raise self._too_large()
        body = bytearray()
        try:
            async with asyncio.timeout(ARRIVES_WITHIN_S):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    body += message.get("body", b"")
                    if len(body) > self._most_bytes:
                        raise self._too_large()
                    if not message.get("more_body", False):
                        return bytes(body)
        except TimeoutError:
            raise BodyRefused(
                HTTPStatus.REQUEST_TIMEOUT, f"the body did not arrive within {ARRIVES_WITHIN_S:g} seconds"
            ) from None

    def _too_large(self) -> BodyRefused:
        return BodyRefused(HTTPStatus.CONTENT_TOO_LARGE, f"a body has at most {self._most_bytes} bytes")


def declared_bytes(scope: Message) -> int:
    """Return the length of the body that the client declares; 0 without one."""
    return int(dict(scope["headers"]).get(b"content-length", b"0"))


class BodyRefused(Exception):
    """A body that is not read to its end."""

    def __init__(self, status: HTTPStatus, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


async def refuse(scope: Message, send: Send, error: BodyRefused) -> None:
    """Answer a refused body with a problem document (RFC 9457)."""
    problem = {
        "type": f"urn:arbor:problem:{error.status.phrase.lower().replace(' ', '-')}",
        "title": error.status.phrase,
        "status": int(error.status),
        "detail": error.detail,
        "instance": scope["path"],
        "request_id": "",
    }
    headers = [(b"content-type", b"application/problem+json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": int(error.status), "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(problem).encode()})
