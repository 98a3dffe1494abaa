"""The console's server, which answers everybody while other clients send half a request, or none."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pytest

from config.cli.installation import web
from config.cli.installation.web import MAX_BODY_BYTES, MAX_HEAD_BYTES, THREADS, RequestRefused, missing_bytes
from config.servers.ports import free_port

ROOT = Path(__file__).parents[3]
#: An application that returns the length of a body, served by the console's worker, which waits a short time for requests.
SERVER = """
import sys, time
from config.cli.installation import web
web.ARRIVES_WITHIN_S = 3.0
web.MAX_ARRIVING = 40
web.MAX_BUFFERED_BYTES = 1_000_000
web.WORKER_TIMEOUT_S = 4

def application(environ, start_response):
    if environ["PATH_INFO"] == "/hang":
        time.sleep(600)
    body = environ["wsgi.input"].read()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(len(body)).encode()]

web.Console.load = lambda self: application
web.serve(host="127.0.0.1", port=int(sys.argv[1]), processes=1)
"""


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", ("127.0.0.1", 8000)),
        ("localhost", ("localhost", 8000)),
        ("::1", ("::1", 8000)),
        ("[::1]", ("::1", 8000)),
    ],
)
def test_the_console_listens_on_addresses_of_both_kinds(
    host: str, address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[list[tuple[str, int]]] = []
    monkeypatch.setattr(web.Console, "run", lambda console: served.append(console.cfg.address))
    web.serve(host=host, port=8000, processes=1)
    assert served == [[address]]


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=20)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Return the port of a running server."""
    port = free_port()
    server = subprocess.Popen([sys.executable, "-c", SERVER, str(port)], cwd=ROOT, env=os.environ)
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                connect(port).close()
                break
            except OSError:
                assert server.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.05)
        yield port
    finally:
        server.terminate()
        server.wait(20)


def post(port: int, body: bytes = b"") -> bytes:
    """Return the answer to a request; the answer must come before the slow clients time out."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=2.5)) as connection:
        connection.request("POST", "/", body=body)
        return connection.getresponse().read()


def wait_for_end(client: socket.socket) -> None:
    """Read until the server ends the connection; one that it ends before it read all of the request is reset."""
    with suppress(ConnectionResetError):
        while client.recv(4096):
            pass


UNFINISHED = {
    "nothing": b"",
    "a part of the head": b"GET / HTTP/1.1\r\nHost: a\r\n",
    "a part of the body": b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nabc",
    "a part of the next request": b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n",
}


def test_half_open_connections_keep_nobody_waiting(port: int) -> None:
    with ExitStack() as stack:
        # As many of each kind as there are threads: a kind that occupied a thread would occupy them all.
        slow = [(name, stack.enter_context(connect(port))) for name in UNFINISHED for _ in range(THREADS)]
        for name, client in slow:
            client.sendall(UNFINISHED[name])
        time.sleep(0.2)
        assert post(port, b"x" * 70_000) == b"70000"
        # The server ends the slow connections.
        for _, client in slow:
            wait_for_end(client)


def test_a_body_within_its_own_limit_ends_no_request(port: int) -> None:
    assert post(port, b"x" * 3_000_000) == b"3000000"


def test_beyond_the_limit_the_oldest_connections_end(port: int) -> None:
    with ExitStack() as stack:
        slow = [stack.enter_context(connect(port)) for _ in range(80)]
        for client in slow:
            client.sendall(b"GET")
        assert post(port, b"abc") == b"3"
        started = time.monotonic()
        wait_for_end(slow[0])
        assert time.monotonic() - started < 2.5


def test_pages_that_hang_in_every_thread_end(port: int) -> None:
    with ExitStack() as stack:
        for _ in range(THREADS):
            stack.enter_context(connect(port)).sendall(b"GET /hang HTTP/1.1\r\nHost: a\r\n\r\n")
        with pytest.raises(TimeoutError):
            post(port)
        deadline = time.monotonic() + 60
        answer = b""
        while not answer:
            assert time.monotonic() < deadline, "the process was not replaced"
            with suppress(OSError, http.client.HTTPException):
                answer = post(port, b"abc")
    assert answer == b"3"


def test_a_request_in_many_parts_is_answered(port: int) -> None:
    with connect(port) as client:
        for part in (b"POST / HTTP/1.1\r\nHo", b"st: a\r\nContent-Length: 6\r\n\r", b"\nabc", b"def"):
            client.sendall(part)
            time.sleep(0.05)
        answer = client.recv(4096)
        while b"\r\n\r\n" not in answer or not answer.endswith((b"6", b"0\r\n\r\n")):
            answer += client.recv(4096)
    assert answer.startswith(b"HTTP/1.1 200")


def test_requests_follow_each_other_on_a_connection(port: int) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        for number in range(3):
            connection.request("POST", "/", body=b"x" * number)
            assert connection.getresponse().read() == str(number).encode()


def test_a_client_that_expects_a_continue_receives_one(port: int) -> None:
    with connect(port) as client:
        client.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
        assert client.recv(4096).startswith(b"HTTP/1.1 100")
        client.sendall(b"abc")
        assert b"200 OK" in client.recv(4096) + client.recv(4096)


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"411"),
        (b"POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", b"413"),
    ],
)
def test_a_body_that_cannot_be_buffered_is_refused(port: int, head: bytes, status: bytes) -> None:
    with connect(port) as client:
        client.sendall(head)
        assert client.recv(4096).split()[1] == status


@pytest.mark.parametrize(
    ("received", "missing"),
    [
        (b"", None),
        (b"GET / HTTP/1.1\r\n", None),
        (b"GET / HTTP/1.1\r\n\r\n", 0),
        (b"POST / HTTP/1.1\r\nCONTENT-LENGTH:  5 \r\n\r\nab", 3),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\nabc", 0),
        (b"POST / HTTP/1.1\r\nContent-Length: many\r\n\r\n", 0),
    ],
)
def test_the_missing_bytes_of_a_request_are_counted(received: bytes, missing: int | None) -> None:
    assert missing_bytes(received) == missing


def test_a_request_that_is_too_long_is_refused() -> None:
    with pytest.raises(RequestRefused, match="431"):
        missing_bytes(b"x" * (MAX_HEAD_BYTES + 1))
    with pytest.raises(RequestRefused, match="413"):
        missing_bytes(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY_BYTES + 1))


def test_the_form_of_documents_takes_larger_files(settings: Any) -> None:
    settings.ARBOR_DOCUMENT_MB = 20
    head = b"POST %s HTTP/1.1\r\nContent-Length: %d\r\n\r\n"
    upload = b"/admin/knowledge/document/add/"
    assert missing_bytes(head % (upload, 20 * 2**20)) == 20 * 2**20
    for path, size in ((upload, 21 * 2**20), (b"/admin/x?/knowledge/document/add/", 20 * 2**20)):
        with pytest.raises(RequestRefused, match="413"):
            missing_bytes(head % (path, size))
