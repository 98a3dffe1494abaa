"""A total deadline for network calls: no wait on a socket outlasts it, whatever the server does.

A read time-out alone does not bound a call: a server that sends one byte per second never lets it fire.
Worker threads have no time limit either, so the deadline is enforced where the waiting is done.
"""

from __future__ import annotations

import ipaddress
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import httpcore

#: A request is sent in chunks, so that the deadline also applies to a server that reads slowly.
_CHUNK_BYTES = 64 * 1024

_ends_at: ContextVar[float | None] = ContextVar("deadline", default=None)


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Limit all network waits of this thread inside the block to `seconds` from now."""
    token = _ends_at.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _ends_at.reset(token)


def remaining_timeout(timeout: float | None, error: type[Exception]) -> float | None:
    """Return the time-out or the time left until the deadline, whichever is less; raise `error` when none is left."""
    ends_at = _ends_at.get()
    if ends_at is None:
        return timeout
    left_s = ends_at - time.monotonic()
    if left_s <= 0:
        raise error("the total deadline has passed")
    return left_s if timeout is None else min(timeout, left_s)


class _DeadlineStream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, remaining_timeout(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _CHUNK_BYTES):
            chunk = buffer[start : start + _CHUNK_BYTES]
            self._inner.write(chunk, remaining_timeout(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left_s = remaining_timeout(timeout, httpcore.ConnectTimeout)
        return _DeadlineStream(self._inner.start_tls(ssl_context, server_hostname, left_s))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class DeadlineBackend(httpcore.NetworkBackend):
    """Opens connections whose waits all end with the deadline, the DNS look-up included.

    `permits` decides which IP addresses may be connected to. It checks the address that is then used, so a name that resolves
    to another address the second time does not pass.
    """

    def __init__(self, permits: Callable[[str], bool] | None = None) -> None:
        self._inner = httpcore.SyncBackend()
        self._permits = permits

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first address of the host that answers."""
        options = list(socket_options or ())
        refusal: Exception | None = None
        for address in resolve_addresses(host, port, remaining_timeout(timeout, httpcore.ConnectTimeout)):
            if self._permits is not None and not self._permits(address):
                # The message leaves out the address: tenants read it, and the address is of the operator's network.
                refusal = httpcore.UnsupportedProtocol(f"{host} leads to an address that is not permitted")
                continue
            try:
                stream = self._inner.connect_tcp(
                    address, port, remaining_timeout(timeout, httpcore.ConnectTimeout), local_address, options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as exc:
                refusal = exc
            else:
                return _DeadlineStream(stream)
        raise refusal or httpcore.ConnectError(f"{host} has no address")


def resolve_addresses(host: str, port: int, timeout: float | None) -> list[str]:
    """Resolve a name in a thread of its own, because the system's resolver has no time-out."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        pass
    else:
        return [host]
    answer: queue.SimpleQueue[list[str] | OSError | UnicodeError] = queue.SimpleQueue()

    def ask() -> None:
        try:
            records = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as exc:
            # A part of the name that is too long, or empty, is an error of its encoding.
            answer.put(exc)
        else:
            answer.put([str(row[4][0]) for row in records])

    threading.Thread(target=ask, name="resolve", daemon=True).start()
    try:
        addresses = answer.get(timeout=timeout)
    except queue.Empty:
        raise httpcore.ConnectTimeout(f"the name {host} was not resolved in time") from None
    if isinstance(addresses, Exception):
        raise httpcore.ConnectError(f"the name {host} does not resolve: {addresses}") from addresses
    return list(dict.fromkeys(addresses))
