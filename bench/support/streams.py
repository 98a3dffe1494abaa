"""Open many streams of signals, and measure when all of them have received a signal."""

from __future__ import annotations

import asyncio
import json
import time
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit
from uuid import UUID

#: Streams opened at once.
_TOGETHER = 50
_OPEN_WITHIN_S = 120.0
_ARRIVES_WITHIN_S = 60.0
_SIGNAL = b"event: memory."


@dataclass(kw_only=True)
class StreamFigures:
    """The streams that were opened, and the delays of the signals."""

    opened: int = 0
    #: Signals that all streams received.
    delivered: int = 0
    #: From the answer to the change until the last stream has its signal.
    delays_ms: list[float] = field(default_factory=list)
    #: The highest sample.
    peak: float = 0.0


@dataclass(frozen=True, kw_only=True)
class _Client:
    host: str
    port: int
    token: str
    #: All connections, which are closed at the end.
    connections: list[StreamWriter] = field(default_factory=list)

    async def ask(self, method: str, path: str, body: bytes = b"", *, wanted: str) -> StreamReader:
        """Send a request, and return its answer after the headers. Raises RuntimeError for another status."""
        reader, writer = await asyncio.open_connection(self.host, self.port)
        self.connections.append(writer)
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\nAuthorization: Bearer {self.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        await writer.drain()
        answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        if not answer.startswith(f"HTTP/1.1 {wanted} "):
            raise RuntimeError(f"{method} {path} was answered {answer.splitlines()[0]}")
        return reader


def measure_streams(
    *, url: str, token: str, agent_id: UUID, streams: int, signals: int, sample: Callable[[], float]
) -> StreamFigures:
    """Open streams of a tenant's signals, store memories of its agent, and return the delays until all streams have each.

    `sample` is called while the streams are open. Raises TimeoutError if a signal does not arrive everywhere.
    """
    address = urlsplit(url)
    client = _Client(host=address.hostname or "", port=address.port or 0, token=token)
    return asyncio.run(_measure_and_close(client, agent_id, streams, signals, sample))


async def _measure_and_close(
    client: _Client, agent_id: UUID, streams: int, signals: int, sample: Callable[[], float]
) -> StreamFigures:
    try:
        return await _measure(client, agent_id, streams, signals, sample)
    finally:
        for connection in client.connections:
            connection.close()


async def _measure(
    client: _Client, agent_id: UUID, streams: int, signals: int, sample: Callable[[], float]
) -> StreamFigures:
    figures = StreamFigures()
    turns = asyncio.Semaphore(_TOGETHER)

    async def open_stream() -> StreamReader:
        async with turns:
            reader = await client.ask("GET", "/api/v1/signals/stream", wanted="200")
            await reader.readuntil(b"retry:")
            return reader

    async with asyncio.timeout(_OPEN_WITHIN_S):
        opened = await asyncio.gather(*(open_stream() for _ in range(streams)))
    figures.opened, figures.peak = len(opened), sample()
    for number in range(signals):
        arrivals = [asyncio.create_task(reader.readuntil(_SIGNAL)) for reader in opened]
        await _store_memory(client, agent_id, f"The harbour has {number} ships.")
        started = time.perf_counter()
        async with asyncio.timeout(_ARRIVES_WITHIN_S):
            await asyncio.gather(*arrivals)
        figures.delays_ms.append((time.perf_counter() - started) * 1000)
        figures.delivered += 1
        figures.peak = max(figures.peak, sample())
    return figures


async def _store_memory(client: _Client, agent_id: UUID, text: str) -> None:
    path = f"/api/v1/agents/{agent_id}/memories"
    await client.ask("POST", path, json.dumps({"text": text}).encode(), wanted="201")
