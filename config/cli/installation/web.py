"""Run the console with gunicorn, whose worker gives a thread only requests that have arrived whole.

gunicorn's own worker of threads reads a request in one of its few threads. A client that opens a connection and sends nothing, or a
part of a request, would keep that thread; eight such clients would keep the console from everybody.
"""

from __future__ import annotations

import os
import re
import selectors
import socket
import struct
import time
from functools import partial
from typing import Any

from django.conf import settings
from gunicorn import http
from gunicorn.app.base import BaseApplication
from gunicorn.util import import_app
from gunicorn.workers.gthread import ThreadWorker

from config.cli.installation.serving_role import refuse_unsafe_role
from config.process_secrets import remove_foreign_secrets, secrets_of

#: Threads per process. Pages mostly wait for the database, so a second process only adds a second CPU core.
THREADS = 8
#: The seconds after which gunicorn replaces a process that does not report itself as alive.
WORKER_TIMEOUT_S = 60
#: The seconds in which open requests can finish when the console stops.
GRACEFUL_TIMEOUT_S = 4


class Console(BaseApplication):  # type: ignore[misc]
    """A gunicorn server with settings from the command's options instead of a file."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        super().__init__()

    def load_config(self) -> None:
        """Pass the settings to gunicorn."""
        for name, value in self._settings.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        """Import the WSGI application, in the process that serves it."""
        return import_app("config.wsgi:application")


def web(host: str, port: int, processes: int) -> None:
    """Run the console."""
    remove_foreign_secrets(secrets_of("web"))
    os.environ["ARBOR_PROCESS_NAME"] = "arbor web"
    refuse_unsafe_role()
    serve(host=host, port=port, processes=processes)


def serve(*, host: str, port: int, processes: int) -> None:
    """Run gunicorn until a signal ends it."""
    Console(
        {
            # gunicorn reads an IPv6 address in brackets only.
            "bind": f"[{host.strip('[]')}]:{port}" if ":" in host else f"{host}:{port}",
            "workers": processes,
            "worker_class": BufferingWorker,
            "threads": THREADS,
            "timeout": WORKER_TIMEOUT_S,
            "graceful_timeout": GRACEFUL_TIMEOUT_S,
            "loglevel": "warning",
            "control_socket_disable": True,
        }
    ).run()


#: The seconds within which a request must arrive: the first from the start of its connection, a further one from its first byte.
ARRIVES_WITHIN_S = 10.0
#: The seconds that a read or a write of a socket may block a thread: a client that does not take its response loses it.
BLOCKS_AT_MAX_S = 10
MAX_HEAD_BYTES = 65_536
#: Above Django's limit of a form, whose answer explains itself.
MAX_BODY_BYTES = 4 * 1024 * 1024
#: The bytes and the number of all requests that are arriving. Above either limit, the oldest request ends. There is always room
#: for two of the largest requests.
MAX_BUFFERED_BYTES = 64 * 1024 * 1024
MAX_ARRIVING = 500
_CHUNK = 65_536

_END_OF_HEAD = b"\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,18})[ \t]*\r\n", re.IGNORECASE)
_UNKNOWN_LENGTH = re.compile(rb"\r\ntransfer-encoding:", re.IGNORECASE)
_ASKS_FIRST = re.compile(rb"\r\nexpect:[ \t]*100-continue", re.IGNORECASE)
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


#: The form of new documents, which sends files.
_UPLOAD = re.compile(rb"POST [^ ?\r\n]*/knowledge/document/add/[ ?]")
#: The most bytes of such a form beside its files.
_FORM_BYTES = 256 * 1024


class RequestRefused(Exception):
    """A request that the worker does not read to its end; the message is the status line."""


def missing_bytes(received: bytes | bytearray) -> int | None:
    """Return how many bytes of a request are missing after these; None while its head is incomplete.

    Raises RequestRefused for a head or a body that is too long, and for a body of unknown length.
    """
    end = received.find(_END_OF_HEAD)
    if end < 0:
        if len(received) > MAX_HEAD_BYTES:
            raise RequestRefused("431 Request Header Fields Too Large")
        return None
    head = bytes(received[: end + len(_END_OF_HEAD)])
    if _UNKNOWN_LENGTH.search(head):
        raise RequestRefused("411 Length Required")
    length = _LENGTH.search(head)
    body = int(length[1]) if length else 0
    if body > (_max_upload_bytes() if _UPLOAD.match(head) else MAX_BODY_BYTES):
        raise RequestRefused("413 Content Too Large")
    return max(0, len(head) + body - len(received))


def _max_upload_bytes() -> int:
    """Return the limit of a request with files."""
    limit: int = max(MAX_BODY_BYTES, settings.ARBOR_DOCUMENT_MB * 2**20 + _FORM_BYTES)
    return limit


def _max_buffered_bytes() -> int:
    """Return the limit of all requests that are arriving."""
    return max(MAX_BUFFERED_BYTES, 2 * _max_upload_bytes())


class BufferingWorker(ThreadWorker):  # type: ignore[misc]
    """Receives requests in its event loop, and answers each in a thread once it is whole."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._buffered = 0
        #: The start of each request that a thread is answering.
        self._answering: dict[Any, float] = {}

    def enqueue_req(self, conn: Any) -> None:
        """Receive a request of the connection, then answer it in a thread."""
        if conn.parser is None:
            _limit_blocking(conn.sock)
            conn.parser = http.get_parser(conn.cfg, conn.sock, conn.client)
            conn.initialized = True
        conn.arriving = True
        conn.received = bytearray()
        conn.continued = False
        conn.timeout = time.monotonic() + ARRIVES_WITHIN_S
        conn.sock.setblocking(False)
        self.pending_conns.append(conn)
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(self._receive, conn))
        # The connection's last read may have gone beyond the request before.
        self._append(conn, conn.parser.unreader.take_buffered())
        self._make_room()

    def _receive(self, conn: Any, client: Any) -> None:
        """Read what has arrived; the event loop calls this."""
        if not conn.arriving:
            # Ended to make room, by an event of the same round.
            return
        try:
            data = client.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._append(conn, data)
            self._make_room()
        else:
            self._end(conn)

    def _append(self, conn: Any, data: bytes) -> None:
        conn.received += data
        self._buffered += len(data)
        try:
            missing = missing_bytes(conn.received)
        except RequestRefused as refusal:
            self._end(
                conn, answer=f"HTTP/1.1 {refusal}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".encode()
            )
            return
        if missing == 0:
            self._forget(conn)
            conn.parser.unreader.unread(bytes(conn.received))
            del conn.received[:]
            super().enqueue_req(conn)
        elif missing is not None and not conn.continued and _ASKS_FIRST.search(conn.received):
            conn.continued = True
            _send_at_once(conn.sock, _CONTINUE)

    def _make_room(self) -> None:
        """End the requests that have been arriving for the longest time, where there are too many."""
        while self.pending_conns and (
            len(self.pending_conns) > MAX_ARRIVING or self._buffered > _max_buffered_bytes()
        ):
            self._end(self.pending_conns[0])

    def _forget(self, conn: Any) -> None:
        conn.arriving = False
        self.poller.unregister(conn.sock)
        self.pending_conns.remove(conn)
        self._buffered -= len(conn.received)

    def _end(self, conn: Any, *, answer: bytes = b"") -> None:
        self._forget(conn)
        if answer:
            _send_at_once(conn.sock, answer)
        self.nr_conns -= 1
        conn.close()

    def murder_pending(self) -> None:
        """End the requests that did not arrive in time. gunicorn calls this once a second."""
        now = time.monotonic()
        while self.pending_conns and self.pending_conns[0].timeout <= now:
            oldest = self.pending_conns[0]
            # A browser that opened a connection for later would take an answer for that of its request.
            self._end(oldest, answer=_TIMED_OUT if oldest.received else b"")

    def handle(self, conn: Any) -> Any:
        """Answer a request, in a thread."""
        self._answering[conn] = time.monotonic()
        try:
            return super().handle(conn)
        finally:
            del self._answering[conn]

    def notify(self) -> None:
        """Report this process as alive, unless each of its threads hangs in a page: then gunicorn replaces the process."""
        started = list(self._answering.values())
        if len(started) >= self.cfg.threads and max(started) < time.monotonic() - self.cfg.timeout:
            self.log.error("every thread hangs in a page for more than %s s", self.cfg.timeout)
            return
        super().notify()


_TIMED_OUT = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


def _limit_blocking(client: socket.socket) -> None:
    """Limit reads and writes of a socket in the kernel: gunicorn's own threads set no time-out."""
    limit = struct.pack("ll", BLOCKS_AT_MAX_S, 0)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)


def _send_at_once(client: socket.socket, data: bytes) -> None:
    """Send a short answer without waiting; a client that takes nothing gets none."""
    try:
        client.send(data)
    except OSError:
        return
