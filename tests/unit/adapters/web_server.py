"""A web server on this machine, for tests of fetching and searching."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import pytest

#: The one address that is permitted here, instead of the public network.
PUBLIC = "127.0.0.1"


class Server(ThreadingHTTPServer):
    """A server that answers by its routes and records requests."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__((PUBLIC, 0), _Handler)
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.routes: dict[str, Callable[[_Handler], None]] = {}

    @property
    def url(self) -> str:
        """Return the base URL of the server."""
        return f"http://{PUBLIC}:{self.server_port}"

    def serve(self, path: str, body: bytes = b"", *, status: int = 200, **headers: str) -> str:
        """Serve a response at a path, and return its URL."""

        def answer(handler: _Handler) -> None:
            handler.send_response(status)
            all_headers = {"Content_Length": str(len(body)), "Content_Type": "text/html", **headers}
            for name, value in all_headers.items():
                handler.send_header(name.replace("_", "-"), value)
            handler.end_headers()
            handler.wfile.write(body)

        self.routes[path] = answer
        return self.url + path


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.requests.append((self.path, dict(self.headers)))
        self.server.routes[urlsplit(self.path).path](self)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@contextmanager
def run_server() -> Iterator[Server]:
    """Run a server on this machine."""
    running = Server()
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield running
    running.shutdown()
    running.server_close()
    thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    """Yield a server on this machine."""
    with run_server() as running:
        yield running
