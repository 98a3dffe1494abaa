"""The limit of files that are sent to the API."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from config.upload_limit import UploadLimit

CHUNK = b"x" * 10


class Client:
    """A client that sends chunks of ten bytes, and the applications that answer it."""

    def __init__(self, *, chunks: int, headers: dict[str, str], hangs: bool = False) -> None:
        self.left = chunks
        self.hangs = hangs
        self.answers: list[Any] = []
        self.read: bytes | None = None
        encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
        self.scope = {"type": "http", "path": "/api/v1/seeds", "headers": encoded}

    async def receive(self) -> dict[str, Any]:
        self.left -= 1
        if self.left < 0 and self.hangs:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": CHUNK, "more_body": self.left > 0 or self.hangs}

    async def send(self, message: Any) -> None:
        self.answers.append(message)

    async def application(self, _scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body, more = body + message["body"], message["more_body"]
        self.read = body
        await send({"type": "http.response.start", "status": 201})

    async def others(self, _scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 401})

    def ask(self, *, within_s: float = 5) -> int:
        async def may_upload(token: str) -> bool:
            return token == "owner"

        limit = UploadLimit(
            self.application, others=self.others, may_upload=may_upload, most_bytes=50, within_s=within_s
        )
        asyncio.run(limit(self.scope, self.receive, self.send))
        return int(self.answers[0]["status"])


OWNER = {"authorization": "Bearer owner"}


def test_a_file_up_to_the_limit_is_passed_on_as_it_arrives() -> None:
    client = Client(chunks=5, headers=OWNER)

    assert client.ask() == 201
    assert client.read == CHUNK * 5


@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer thief"}, {"authorization": "Basic owner"}])
def test_a_file_of_others_is_not_read(headers: dict[str, str]) -> None:
    client = Client(chunks=5, headers=headers)

    assert client.ask() == 401
    assert client.left == 5


def test_a_file_above_the_limit_is_refused() -> None:
    client = Client(chunks=6, headers=OWNER)

    assert client.ask() == 413
    assert client.read is None


def test_a_file_that_is_declared_too_large_is_not_read() -> None:
    client = Client(chunks=6, headers=OWNER | {"content-length": "60"})

    assert client.ask() == 413
    assert client.left == 6


def test_a_file_that_does_not_arrive_is_refused() -> None:
    client = Client(chunks=2, headers=OWNER, hangs=True)

    assert client.ask(within_s=0.05) == 408
