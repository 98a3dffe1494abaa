"""The client of MCP servers against servers that fail."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx2
import pytest

from arbor.adapters import mcp_client
from arbor.adapters.mcp_client import McpClient
from arbor.errors import ToolFailed
from arbor.tools.ports import ToolServerAddress

SECRET = "s3cret-token"


def message_of(request: dict[str, Any], **fields: Any) -> bytes:
    """Return the answer to a request by JSON-RPC."""
    return json.dumps({"jsonrpc": "2.0", "id": request.get("id"), **fields}).encode()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Yield the address of a web server that answers by its path, never by the protocol."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            kind = {"Content-Type": "application/json"}
            about = {"capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
            old = {**about, "protocolVersion": "1"}
            tool = {"name": "echo", "inputSchema": {"type": "object"}}
            endless = {
                "initialize": {**about, "protocolVersion": "2025-06-18"},
                "tools/list": {"tools": [tool], "nextCursor": "more"},
            }.get(request["method"], {})
            echo = {"code": -32000, "message": f"unknown: {self.headers['Authorization']}"}
            # Its first 300 characters end inside the secret.
            cut = {"code": -32000, "message": f"{'x' * 290}{SECRET}"}
            answers = {
                "/old": (200, kind, message_of(request, result=old)),
                "/endless": (200, kind, message_of(request, result=endless)),
                "/echo": (200, kind, message_of(request, error=echo)),
                "/cut": (200, kind, message_of(request, error=cut)),
                "/busy": (503, {}, b""),
                "/away": (307, {"Location": "http://127.0.0.1:1/mcp"}, b""),
                "/large": (200, {"Content-Type": "application/json"}, b'{"x": "' + b"x" * 3_000 + b'"}'),
                "/packed": (200, {"Content-Type": "application/json", "Content-Encoding": "gzip"}, b"x"),
                "/page": (200, {"Content-Type": "text/html"}, b"<p>Hello</p>"),
            }
            status, headers, body = answers[self.path]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=[0.02], daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/busy", "127.0.0.1 "),
        ("/away", "127.0.0.1 reports an error: Redirect"),
        ("/large", "127.0.0.1 sent more than 2,000 bytes"),
        ("/packed", "127.0.0.1 sent a compressed answer"),
        ("/page", "127.0.0.1 "),
        ("/old", "127.0.0.1 did not answer by the protocol"),
        ("/echo", "127.0.0.1 reports an error: unknown: Bearer ***"),
        ("/cut", f"127.0.0.1 reports an error: {'x' * 290}***"),
    ],
)
def test_a_failure_names_the_server_and_no_secret(address: str, path: str, message: str) -> None:
    client = McpClient(max_bytes=2_000, permits=lambda _: True)
    with pytest.raises(ToolFailed) as failure:
        client.list_tools(ToolServerAddress(url=address + path, secret=SECRET), deadline_s=20)
    assert str(failure.value).startswith(message)
    assert SECRET not in str(failure.value)


def test_a_list_without_an_end_is_read_in_part(address: str) -> None:
    client = McpClient(max_bytes=20_000, permits=lambda _: True)
    listing = client.list_tools(ToolServerAddress(url=f"{address}/endless"), deadline_s=10)
    assert [tool.name for tool in listing.tools] == ["echo"]
    assert listing.skipped[0] == "echo: listed twice; the first one counts"
    assert listing.skipped[-1].endswith("the tools after number 20 are not read")


def test_private_addresses_are_refused_before_a_request(address: str) -> None:
    with pytest.raises(ToolFailed, match="an address that is not permitted"):
        McpClient(max_bytes=2_000).list_tools(ToolServerAddress(url=f"{address}/busy"), deadline_s=20)


def test_a_server_that_is_down_cannot_be_reached() -> None:
    client = McpClient(max_bytes=2_000, permits=lambda _: True)
    with pytest.raises(ToolFailed, match="cannot be reached"):
        client.list_tools(ToolServerAddress(url="http://127.0.0.1:1/mcp"), deadline_s=20)


def test_a_server_that_accepts_no_connection_is_named_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    async def time_out(_: httpx2.AsyncHTTPTransport, request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectTimeout("silent", request=request)

    monkeypatch.setattr(httpx2.AsyncHTTPTransport, "handle_async_request", time_out)
    client = McpClient(max_bytes=2_000, permits=lambda _: True)
    with pytest.raises(ToolFailed, match=r"^127\.0\.0\.1 did not accept a connection in time$"):
        client.list_tools(ToolServerAddress(url="http://127.0.0.1:1/mcp"), deadline_s=20)


def test_an_address_that_times_out_is_followed_by_the_next(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = httpx2.AsyncHTTPTransport.handle_async_request

    async def time_out_at_first(
        transport: httpx2.AsyncHTTPTransport, request: httpx2.Request
    ) -> httpx2.Response:
        if request.url.host == "192.0.2.1":
            raise httpx2.ConnectTimeout("silent", request=request)
        return await send(transport, request)

    monkeypatch.setattr(httpx2.AsyncHTTPTransport, "handle_async_request", time_out_at_first)
    monkeypatch.setattr(mcp_client, "resolve_addresses", lambda *_: ["192.0.2.1", "127.0.0.1"])
    client = McpClient(max_bytes=2_000, permits=lambda _: True)
    with pytest.raises(ToolFailed, match=r"tools\.test reports an error: Redirect"):
        client.list_tools(
            ToolServerAddress(url=address.replace("127.0.0.1", "tools.test") + "/away"), deadline_s=20
        )
