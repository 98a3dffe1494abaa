"""Streams of signals opened by a benchmark, against a small server."""

from __future__ import annotations

import asyncio
import threading
from asyncio import StreamReader, StreamWriter
from collections.abc import Iterator
from uuid import UUID

import pytest

from bench.support.streams import measure_streams


class FakeSignals:
    """Answers streams, and sends each of them a signal for each memory that is stored."""

    def __init__(self) -> None:
        self.streams: list[StreamWriter] = []
        self.status = "200 OK"

    async def answer(self, reader: StreamReader, writer: StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if head.startswith(b"GET"):
            writer.write(f"HTTP/1.1 {self.status}\r\n\r\nretry: 2000\n\n".encode())
            self.streams.append(writer)
            return
        for stream in self.streams:
            stream.write(b"id: 1\nevent: memory.indexed\ndata: {}\n\n")
        writer.write(b"HTTP/1.1 201 Created\r\n\r\n{}")
        writer.close()


@pytest.fixture
def served() -> Iterator[tuple[FakeSignals, str]]:
    signals, loop = FakeSignals(), asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(signals.answer, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield signals, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"

    async def close() -> None:
        server.close()
        for stream in signals.streams:
            stream.close()

    asyncio.run_coroutine_threadsafe(close(), loop).result(60)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_a_signal_is_delivered_when_all_streams_have_it(served: tuple[FakeSignals, str]) -> None:
    signals, url = served
    samples = iter([7.0, 9.0, 8.0, 6.0])
    figures = measure_streams(
        url=url, token="t", agent_id=UUID(int=1), streams=20, signals=3, sample=lambda: next(samples)
    )
    assert (figures.opened, figures.delivered, figures.peak) == (20, 3, 9.0)
    assert len(figures.delays_ms) == 3
    assert len(signals.streams) == 20


def test_a_refused_stream_ends_the_measurement(served: tuple[FakeSignals, str]) -> None:
    signals, url = served
    signals.status = "429 Too Many Requests"
    with pytest.raises(RuntimeError, match=r"signals/stream was answered HTTP/1\.1 429"):
        measure_streams(url=url, token="t", agent_id=UUID(int=1), streams=1, signals=1, sample=lambda: 0.0)
