"""A larger limit for requests that send a file, for clients who may send files."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus

from config.body_limit import Application, BodyRefused, Message, Receive, Send, declared_bytes, refuse

#: The seconds within which a file must arrive.
ARRIVES_WITHIN_S = 300.0
_BEARER = b"bearer "
_DISCONNECT: Message = {"type": "http.disconnect"}


class UploadLimit:
    """Passes on the file of a permitted client as it arrives, up to a limit; all other requests go to `others`.

    The permission is checked before the body is read, so that nobody else can fill the disk.
    """

    def __init__(
        self,
        application: Application,
        *,
        others: Application,
        may_upload: Callable[[str], Awaitable[bool]],
        most_bytes: int,
        within_s: float = ARRIVES_WITHIN_S,
    ) -> None:
        self._application = application
        self._others = others
        self._may_upload = may_upload
        self._most_bytes = most_bytes
        self._within_s = within_s

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request."""
        given: bytes = dict(scope["headers"]).get(b"authorization", b"")
        token = given[len(_BEARER) :].decode("latin-1").strip()
        if not given.lower().startswith(_BEARER) or not await self._may_upload(token):
            await self._others(scope, receive, send)
            return
        body = _LimitedBody(receive, most_bytes=self._most_bytes, within_s=self._within_s)
        if declared_bytes(scope) > self._most_bytes:
            await refuse(scope, send, body.too_large())
            return
        await self._application(scope, body.receive, send)
        if body.refused is not None:
            await refuse(scope, send, body.refused)


class _LimitedBody:
    """The body of one request; if it is refused, the application receives a disconnect."""

    def __init__(self, receive: Receive, *, most_bytes: int, within_s: float) -> None:
        self._receive = receive
        self._most_bytes = most_bytes
        self._within_s = within_s
        self._until = asyncio.get_running_loop().time() + within_s
        self._received = 0
        self._is_whole = False
        self.refused: BodyRefused | None = None

    async def receive(self) -> Message:
        """Return the next message."""
        if self._is_whole:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            self.refused = BodyRefused(
                HTTPStatus.REQUEST_TIMEOUT, f"the file did not arrive within {self._within_s:g} seconds"
            )
            return _DISCONNECT
        self._received += len(message.get("body", b""))
        self._is_whole = not message.get("more_body", False)
        if self._received > self._most_bytes:
            self.refused = self.too_large()
            return _DISCONNECT
        return message

    def too_large(self) -> BodyRefused:
        """Return the refusal of a file above the limit."""
        return BodyRefused(HTTPStatus.CONTENT_TOO_LARGE, f"a file has at most {self._most_bytes} bytes")
