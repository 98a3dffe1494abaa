"""Call tools of MCP servers by streamable HTTP, at public addresses only, within limits of time and size."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import httpcore
import httpx2
from mcp import MCPError, types
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, EmbeddedResource, TextContent, TextResourceContents
from pydantic import ValidationError

from arbor.adapters.deadline import resolve_addresses
from arbor.errors import ToolFailed
from arbor.tools.ports import MAX_TOOLS, RESULT_LENGTH, Listing, ToolAnswer, ToolServerAddress
from arbor.tools.texts import clean, one_line
from arbor.version import VERSION
from arbor.web.addresses import is_public

CONNECT_S = 5.0
#: Pages of a server's listing that are read.
_MAX_PAGES = 20
_ERROR_LENGTH = 300


class ResponseRefused(httpx2.TransportError):
    """The server sent a response that is not read: too large, or compressed."""


class _Session(ClientSession):
    """A session that does not validate results.

    The library would check a result by the server's own schema: it proves nothing about the text, and a hostile schema could
    keep the thread busy beyond every deadline.
    """

    async def validate_tool_result(self, name: str, result: CallToolResult) -> None:
        """Check nothing."""


class McpClient:
    """Lists and calls tools. `permits` checks the IP address that is connected to."""

    def __init__(self, *, max_bytes: int, permits: Callable[[str], bool] = is_public) -> None:
        self._max_bytes = max_bytes
        self._permits = permits

    def list_tools(self, server: ToolServerAddress, *, deadline_s: float) -> Listing:
        """Return the tools of a server. Raises ToolFailed."""
        return self._run(server, _list, deadline_s)

    def call_tool(
        self,
        server: ToolServerAddress,
        *,
        name: str,
        arguments: Mapping[str, Any],
        fingerprint: str,
        deadline_s: float,
    ) -> ToolAnswer | Listing:
        """Call a tool that is listed with this fingerprint; return the listing where it is not. Raises ToolFailed."""

        async def call(session: ClientSession) -> ToolAnswer | Listing:
            listing = await _list(session)
            tool = listing.tool(name)
            if tool is None or tool.fingerprint != fingerprint:
                return listing
            return _answer(await session.call_tool(name, dict(arguments)), server)

        return self._run(server, call, deadline_s)

    def _run[T](
        self, server: ToolServerAddress, use: Callable[[ClientSession], Awaitable[T]], deadline_s: float
    ) -> T:
        """Use a session with the server in an event loop of this thread. Raises ToolFailed."""
        host = httpx2.URL(server.url).host
        try:
            return anyio.run(partial(self._use, server, use, deadline_s))
        except Exception as error:
            # The library, its transport and task groups raise errors of many classes; for the caller all of them mean that the tool failed.
            reason = _reason(error, server, host=host, deadline_s=deadline_s)
            raise ToolFailed(reason) from error

    async def _use[T](
        self, server: ToolServerAddress, use: Callable[[ClientSession], Awaitable[T]], deadline_s: float
    ) -> T:
        with anyio.fail_after(deadline_s):
            async with self._session(server, deadline_s) as session:
                return await use(session)

    @asynccontextmanager
    async def _session(self, server: ToolServerAddress, deadline_s: float) -> AsyncIterator[ClientSession]:
        headers = {"Accept-Encoding": "identity", "User-Agent": "Arbor"}
        if server.secret:
            headers["Authorization"] = f"Bearer {server.secret}"
        async with (
            httpx2.AsyncClient(
                transport=_GuardedTransport(permits=self._permits, max_bytes=self._max_bytes),
                headers=headers,
                timeout=httpx2.Timeout(deadline_s, connect=min(CONNECT_S, deadline_s)),
                follow_redirects=False,
                trust_env=False,
            ) as client,
            streamable_http_client(
                server.url, http_client=client, max_sse_event_size=self._max_bytes
            ) as streams,
            _Session(*streams, client_info=types.Implementation(name="arbor", version=VERSION)) as session,
        ):
            await session.initialize()
            yield session


async def _list(session: ClientSession) -> Listing:
    listed: list[dict[str, Any]] = []
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        params = types.PaginatedRequestParams(cursor=cursor)
        page = await session.list_tools(params=params)
        listed += [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in page.tools]
        cursor = page.next_cursor
        if not cursor or len(listed) > MAX_TOOLS:
            break
    return Listing.of(listed, is_whole=not cursor)


def _answer(result: CallToolResult, server: ToolServerAddress) -> ToolAnswer:
    text = "\n".join(_content_text(part) for part in result.content)
    if not text.strip() and result.structured_content is not None:
        text = json.dumps(result.structured_content, ensure_ascii=False)
    return ToolAnswer(text=clean(server.scrub(text), RESULT_LENGTH), is_error=bool(result.is_error))


def _content_text(part: types.ContentBlock) -> str:
    """Return the text of a part of a result; other parts are named by their kind."""
    if isinstance(part, TextContent):
        return part.text
    if isinstance(part, EmbeddedResource) and isinstance(part.resource, TextResourceContents):
        return part.resource.text
    if isinstance(part, types.ResourceLink):
        return f"(a link to {part.name}: {part.uri})"
    return f"({part.type}, which is not shown)"


def _reason(error: BaseException, server: ToolServerAddress, *, host: str, deadline_s: float) -> str:
    """Return why a session failed. Network errors leave out the address, which may be a private one of the operator."""
    errors = list(_leaves(error))
    for found in errors:
        if isinstance(found, ResponseRefused):
            return f"{host} {found}"
        if isinstance(found, httpx2.UnsupportedProtocol):
            return f"{host} leads to an address that is not permitted; ARBOR_MCP_ALLOW_PRIVATE=true permits addresses of one's own network"
    for found in errors:
        if isinstance(found, httpx2.ConnectTimeout):
            return f"{host} did not accept a connection in time"
        if isinstance(found, TimeoutError | httpx2.TimeoutException):
            return f"{host} did not answer within {deadline_s:g} s"
        if isinstance(found, httpx2.HTTPStatusError):
            return f"{host} answered {found.response.status_code}"
        if isinstance(found, httpx2.TransportError):
            return f"{host} cannot be reached"
    for found in errors:
        if isinstance(found, MCPError):
            # Scrubbed before it is shortened, which could cut the secret in two.
            return f"{host} reports an error: {one_line(server.scrub(found.error.message), _ERROR_LENGTH)}"
        # The library has no error class of its own for a version or a kind of answer that it does not know.
        if isinstance(found, ValidationError | RuntimeError):
            return f"{host} did not answer by the protocol"
    return f"{host} could not be used: {type(errors[0]).__name__}"


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors of nested groups, each with its causes."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
        return
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__


class _GuardedTransport(httpx2.AsyncBaseTransport):
    """Sends requests to permitted addresses only, by no proxy, and reads a bounded number of bytes of all responses."""

    def __init__(self, *, permits: Callable[[str], bool], max_bytes: int) -> None:
        self._inner = httpx2.AsyncHTTPTransport(trust_env=False)
        self._permits = permits
        self._left = max_bytes
        self._max_bytes = max_bytes

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request to the first permitted address of its host that answers.

        Connects to the address that was checked; the certificate must be the host's.
        """
        url = request.url
        failure: httpx2.TransportError = httpx2.ConnectError("the host has no address", request=request)
        for address in await self._addresses(request):
            request.url = url.copy_with(host=address)
            request.extensions = {**request.extensions, "sni_hostname": url.host}
            try:
                response = await self._inner.handle_async_request(request)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = error
                continue
            finally:
                request.url = url
            if response.headers.get("content-encoding", "identity").lower() != "identity":
                await response.aclose()
                # A few compressed bytes could expand to very many.
                raise ResponseRefused("sent a compressed answer, which was not asked for")
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _BoundedStream(response.stream, self._count)
            return response
        raise failure

    async def _addresses(self, request: httpx2.Request) -> list[str]:
        host, port = request.url.host, request.url.port or (443 if request.url.scheme == "https" else 80)
        try:
            addresses = await anyio.to_thread.run_sync(
                resolve_addresses, host, port, CONNECT_S, abandon_on_cancel=True
            )
        except httpcore.NetworkError as error:
            raise httpx2.ConnectError("the name does not resolve", request=request) from error
        except httpcore.TimeoutException as error:
            raise httpx2.ConnectTimeout("the name was not resolved in time", request=request) from error
        permitted = [address for address in addresses if self._permits(address)]
        if addresses and not permitted:
            raise httpx2.UnsupportedProtocol(f"{host} leads to an address that is not permitted")
        return permitted

    def _count(self, read: int) -> None:
        self._left -= read
        if self._left < 0:
            raise ResponseRefused(f"sent more than {self._max_bytes:,} bytes")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    """The body of a response, each part counted."""

    def __init__(self, inner: httpx2.AsyncByteStream, count: Callable[[int], None]) -> None:
        self._inner = inner
        self._count = count

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._inner:
            self._count(len(part))
            yield part

    async def aclose(self) -> None:
        """Close the body."""
        await self._inner.aclose()
