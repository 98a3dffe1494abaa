"""The two clients, which drive the same exchanges: one blocks, one awaits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any, Self

import httpx

from arbor_client.calls import Call, PagedCall
from arbor_client.catalogue import Catalogue
from arbor_client.errors import Unreachable
from arbor_client.exchange import Send, Sent, Wait, check, exchange
from arbor_client.streams import Event, EventReader, StreamCall

PATH = "/api/v1"
TIMEOUT = httpx.Timeout(60.0, connect=5.0)
# httpx reads the address of a redirect also where it does not follow it.
_NO_ADDRESS = (httpx.InvalidURL, UnicodeError)


def _options(base_url: str, token: str, timeout: httpx.Timeout | float) -> dict[str, Any]:
    return {
        "base_url": base_url.rstrip("/") + PATH,
        "headers": {"Authorization": f"Bearer {token}", "User-Agent": "arbor-client/0.1"},
        "timeout": timeout,
    }


class Arbor(Catalogue["Arbor"]):
    """A client that blocks. Thread-safe; close it, or use it as a context manager."""

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        timeout: httpx.Timeout | float = TIMEOUT,
        retries: int = 2,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        super().__init__(self)
        self._http = httpx.Client(**_options(base_url, token, timeout), transport=transport)
        self._retries = retries

    def send[T](self, call: Call[T]) -> T:
        """Execute a call and return its value."""
        steps = exchange(call, retries=self._retries)
        answer: Sent = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                value: T = end.value
                return value
            answer = None
            match step:
                case Send(sent_call):
                    answer = self._attempt(sent_call)
                case Wait(seconds):
                    time.sleep(seconds)

    def iterate[T](self, call: PagedCall[T]) -> Iterator[T]:
        """Yield the rows of all pages of a list."""
        cursor: str | None = None
        while True:
            rows, cursor = self.send(call.page(cursor))
            yield from rows
            if cursor is None:
                return

    def stream(self, call: StreamCall) -> Iterator[Event]:
        """Yield the events of a stream until it ends."""
        reader = EventReader()
        try:
            response = self._http.send(call.request(self._http), stream=True)
            try:
                if response.is_error:
                    response.read()
                    check(response)
                for text in response.iter_text():
                    yield from reader.feed(text)
            finally:
                response.close()
        except (httpx.RequestError, *_NO_ADDRESS) as error:
            raise Unreachable(f"the stream {call.path} ended: {error}") from error

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _attempt(self, call: Call[Any]) -> httpx.Response | httpx.RequestError:
        try:
            return self._http.send(call.request(self._http))
        except httpx.RequestError as error:
            return error
        except _NO_ADDRESS as error:
            return httpx.RemoteProtocolError(f"a redirect to no address: {error}")


class AsyncArbor(Catalogue["AsyncArbor"]):
    """The same client for asyncio."""

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        timeout: httpx.Timeout | float = TIMEOUT,
        retries: int = 2,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__(self)
        self._http = httpx.AsyncClient(**_options(base_url, token, timeout), transport=transport)
        self._retries = retries

    async def send[T](self, call: Call[T]) -> T:
        """Execute a call and return its value."""
        steps = exchange(call, retries=self._retries)
        answer: Sent = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                value: T = end.value
                return value
            answer = None
            match step:
                case Send(sent_call):
                    answer = await self._attempt(sent_call)
                case Wait(seconds):
                    await asyncio.sleep(seconds)

    async def iterate[T](self, call: PagedCall[T]) -> AsyncIterator[T]:
        """Yield the rows of all pages of a list."""
        cursor: str | None = None
        while True:
            rows, cursor = await self.send(call.page(cursor))
            for row in rows:
                yield row
            if cursor is None:
                return

    async def stream(self, call: StreamCall) -> AsyncIterator[Event]:
        """Yield the events of a stream until it ends."""
        reader = EventReader()
        try:
            response = await self._http.send(call.request(self._http), stream=True)
            try:
                if response.is_error:
                    await response.aread()
                    check(response)
                async for text in response.aiter_text():
                    for event in reader.feed(text):
                        yield event
            finally:
                await response.aclose()
        except (httpx.RequestError, *_NO_ADDRESS) as error:
            raise Unreachable(f"the stream {call.path} ended: {error}") from error

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _attempt(self, call: Call[Any]) -> httpx.Response | httpx.RequestError:
        try:
            return await self._http.send(call.request(self._http))
        except httpx.RequestError as error:
            return error
        except _NO_ADDRESS as error:
            return httpx.RemoteProtocolError(f"a redirect to no address: {error}")
