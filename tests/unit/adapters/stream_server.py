"""Server-sent events of providers, and a local server that sends them."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import httpx


def events(*data: Any, done: bool = True) -> bytes:
    """Return events of OpenAI's protocol."""
    lines = [f"data: {json.dumps(item)}\n\n" for item in data]
    return "".join([*lines, "data: [DONE]\n\n" if done else ""]).encode()


def typed_events(*data: dict[str, Any]) -> bytes:
    """Return events of Anthropic's protocol."""
    return "".join(f"event: {item['type']}\ndata: {json.dumps(item)}\n\n" for item in data).encode()


def chunk(content: str | None = None, *, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """Return a chunk of the Chat Completions protocol."""
    delta = {"content": content} if content is not None else {}
    return {
        "model": "gpt-4o-mini-2024-07-18",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    } | fields


USAGE_CHUNK = {
    "model": "gpt-4o-mini-2024-07-18",
    "choices": [],
    "usage": {
        "prompt_tokens": 1000,
        "completion_tokens": 200,
        "prompt_tokens_details": {"cached_tokens": 400},
    },
}


def stream(content: bytes) -> httpx.Response:
    """Return a response whose body is a stream of events."""
    return httpx.Response(200, headers={"content-type": "text/event-stream; charset=utf-8"}, content=content)


@contextmanager
def raw_server(*parts: bytes, stays_open: bool = False) -> Iterator[str]:
    """Serve one request on a real socket with the head of a stream and the parts; yield the base URL.

    Without `stays_open` the connection is closed after the parts, in the middle of a chunked body.
    """
    released = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=_serve_once, args=[listening, parts, stays_open, released])
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        finally:
            released.set()
            thread.join()


def _serve_once(
    listening: socket.socket, parts: Sequence[bytes], stays_open: bool, released: threading.Event
) -> None:
    connection, _ = listening.accept()
    with connection:
        connection.recv(65536)
        connection.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        for part in parts:
            connection.sendall(f"{len(part):x}\r\n".encode() + part + b"\r\n")
        if stays_open:
            released.wait(30)
