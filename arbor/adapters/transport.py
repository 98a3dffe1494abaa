"""An HTTP client per process for hundreds of waiting threads, with a total deadline on every call.

Each waiting call has a connection of its own; idle connections wait on a stack, the last used on top.
httpcore's own pool compares all connections with all requests at every step, under one lock, and closes
idle connections as soon as there are more open than may be idle: fine for ten, not for five hundred.
"""

from __future__ import annotations

import os
import socket
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from ipaddress import ip_address
from time import monotonic
from typing import Any
from weakref import WeakSet

import httpcore
import httpx

from arbor.adapters.deadline import DeadlineBackend, remaining_timeout
from arbor.web.addresses import is_public

#: Connections that may be in use at once; further calls wait. Idle ones are open besides.
DEFAULT_CONNECTIONS = 1000
#: The most idle connections for each server, and their lifetime: below the 60 s after which load balancers drop them.
IDLE_PER_ORIGIN = 64
IDLE_S = 50.0

#: Connect, send and wait for a free connection, in seconds. A silent server is no fault while the model
#: thinks, so reading is bounded by the call's own deadline.
TIMEOUT = httpx.Timeout(connect=5.0, write=20.0, read=None, pool=5.0)

_SOCKET_OPTIONS: Sequence[Any] = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    # A gateway on the way drops a connection that is silent for minutes, so a probe is sent every 30 s.
    *[
        (socket.IPPROTO_TCP, option, seconds)
        for name, seconds in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 30))
        if (option := getattr(socket, name, None)) is not None
    ],
]

_HTTPX_ERRORS: dict[type[Exception], type[httpx.TransportError]] = {
    httpcore.ConnectTimeout: httpx.ConnectTimeout,
    httpcore.ReadTimeout: httpx.ReadTimeout,
    httpcore.WriteTimeout: httpx.WriteTimeout,
    httpcore.ConnectError: httpx.ConnectError,
    httpcore.ReadError: httpx.ReadError,
    httpcore.WriteError: httpx.WriteError,
    httpcore.RemoteProtocolError: httpx.RemoteProtocolError,
    httpcore.LocalProtocolError: httpx.LocalProtocolError,
    httpcore.ProxyError: httpx.ProxyError,
    httpcore.UnsupportedProtocol: httpx.UnsupportedProtocol,
}

#: The proxies that httpcore reaches without further packages.
_PROXY_SCHEMES = ("http", "https")

type Origin = tuple[str, str, int | None]


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except Exception as exc:
        # An exact look-up by class; an error that httpx has no class for is raised unchanged.
        httpx_error = _HTTPX_ERRORS.get(type(exc))
        if httpx_error is None:
            raise
        raise httpx_error(str(exc)) from exc


class _ReplyStream(httpx.SyncByteStream):
    """The body of a reply; closing the body calls `on_close`, once."""

    def __init__(self, reply: httpcore.Response, on_close: Callable[[], None]) -> None:
        self._reply = reply
        self._on_close = on_close
        self._open = True

    def __iter__(self) -> Iterator[bytes]:
        with _translate_errors():
            yield from self._reply.iter_stream()

    def close(self) -> None:
        """Return the connection to the pool."""
        if self._open:
            self._open = False
            try:
                self._reply.close()
            finally:
                self._on_close()


class DeadlineTransport(httpx.BaseTransport):
    """Sends requests, each on a connection of its own, within the deadline set around the call.

    With `permits`, requests go only to addresses that it permits, and never through a proxy, which would resolve
    names itself.
    """

    def __init__(
        self,
        *,
        connections: int = DEFAULT_CONNECTIONS,
        idle_per_origin: int = IDLE_PER_ORIGIN,
        permits: Callable[[str], bool] | None = None,
    ) -> None:
        self._connections = connections
        self._idle_per_origin = idle_per_origin
        self._backend = DeadlineBackend(permits)
        self._by_proxy = permits is None
        self._tls = httpx.create_ssl_context()
        self.begin_process()
        _transports.add(self)

    def begin_process(self) -> None:
        """Begin without connections, in a forked child too: it must not speak on those of its parent."""
        self._capacity = threading.BoundedSemaphore(self._connections)
        self._lock = threading.Lock()
        #: The idle connections of each server with the times since when they are idle, the last used at the end.
        self._idle: dict[Origin, list[tuple[float, httpcore.ConnectionPool]]] = {}
        self._next_sweep = 0.0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request; its connection is in use until the reply's body is closed."""
        origin = (request.url.scheme, request.url.host, request.url.port)
        pool_s = request.extensions.get("timeout", {}).get("pool")
        if not self._capacity.acquire(timeout=remaining_timeout(pool_s, httpx.PoolTimeout)):
            raise httpx.PoolTimeout("all connections of this process are in use")
        connection: httpcore.ConnectionPool | None = None
        try:
            connection = self._acquire_connection(origin)
            with _translate_errors():
                reply = connection.handle_request(
                    httpcore.Request(
                        method=request.method,
                        url=httpcore.URL(
                            scheme=request.url.raw_scheme,
                            host=request.url.raw_host,
                            port=request.url.port,
                            target=request.url.raw_path,
                        ),
                        headers=request.headers.raw,
                        content=request.stream,
                        extensions=request.extensions,
                    )
                )
        except BaseException:
            self._capacity.release()
            if connection is not None:
                connection.close()
            raise
        return httpx.Response(
            status_code=reply.status,
            headers=reply.headers,
            stream=_ReplyStream(reply, partial(self._release_connection, origin, connection)),
            extensions=reply.extensions,
        )

    def _acquire_connection(self, origin: Origin) -> httpcore.ConnectionPool:
        with self._lock:
            idle = self._idle.get(origin)
            if idle:
                return idle.pop()[1]
        return httpcore.ConnectionPool(
            ssl_context=self._tls,
            proxy=_proxy_for(origin) if self._by_proxy else None,
            max_connections=1,
            keepalive_expiry=IDLE_S,
            network_backend=self._backend,
            socket_options=_SOCKET_OPTIONS,
        )

    def _release_connection(self, origin: Origin, connection: httpcore.ConnectionPool) -> None:
        now = monotonic()
        with self._lock:
            closing = self._remove_expired(now)
            idle = self._idle.setdefault(origin, [])
            if len(idle) < self._idle_per_origin:
                idle.append((now, connection))
            else:
                closing.append(connection)
        try:
            for unused in closing:
                unused.close()
        finally:
            self._capacity.release()

    def _remove_expired(self, now: float) -> list[httpcore.ConnectionPool]:
        """Remove the connections of all servers that were idle too long, once in their lifetime; return them.

        A connection closes itself only when it is used again, and many servers are asked once.
        """
        if now < self._next_sweep:
            return []
        self._next_sweep = now + IDLE_S
        expired: list[httpcore.ConnectionPool] = []
        for origin, idle in list(self._idle.items()):
            while idle and idle[0][0] <= now - IDLE_S:
                expired.append(idle.pop(0)[1])
            if not idle:
                del self._idle[origin]
        return expired

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            connections = [connection for idle in self._idle.values() for _, connection in idle]
            self._idle.clear()
        for connection in connections:
            connection.close()


#: The transports of this process.
_transports: WeakSet[DeadlineTransport] = WeakSet()


def _begin_child() -> None:
    for transport in _transports:
        transport.begin_process()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_child)


class DirectClient(httpx.Client):
    """A client of a `DeadlineTransport` that can send a request without httpx's browser features.

    Cookies, redirects, merged URLs and authentication flows take about as long as the rest of a call.
    """

    def __init__(self, transport: DeadlineTransport) -> None:
        super().__init__(transport=transport, timeout=TIMEOUT)
        self._direct = transport
        self._extensions = {"timeout": TIMEOUT.as_dict()}

    @contextmanager
    def stream_direct(
        self, method: str, url: httpx.URL, *, headers: Mapping[str, str], content: bytes | None
    ) -> Iterator[httpx.Response]:
        """Send the content; the response's body is open within the block. Redirects are not followed.

        The URL has no user and password. Raises as httpx does.
        """
        merged = self.headers.copy()
        merged.update(headers)
        request = httpx.Request(method, url, headers=merged, content=content, extensions=self._extensions)
        response = self._direct.handle_request(request)
        try:
            yield response
        finally:
            response.close()


def _proxy_for(origin: Origin) -> httpcore.Proxy | None:
    """Return the proxy by HTTP_PROXY, HTTPS_PROXY and NO_PROXY; None for loopback addresses.

    Raises httpx.LocalProtocolError, which the adapters translate, for a proxy that cannot be used.
    """
    scheme, host, _ = origin
    url = urllib.request.getproxies().get(scheme)
    if url is None or _is_loopback(host) or urllib.request.proxy_bypass(host):
        return None
    try:
        proxy = httpx.Proxy(url if "://" in url else f"http://{url}")
    except (ValueError, httpx.InvalidURL):
        # Their texts may quote a part of the password.
        raise _proxy_error(scheme) from None
    if proxy.url.scheme not in _PROXY_SCHEMES or not proxy.url.host:
        raise _proxy_error(scheme)
    return httpcore.Proxy(url=str(proxy.url), auth=proxy.raw_auth, headers=proxy.headers.raw)


def _proxy_error(scheme: str) -> httpx.LocalProtocolError:
    """Return the error for an unusable proxy, without its address, which may contain a password."""
    return httpx.LocalProtocolError(
        f"the proxy in {scheme.upper()}_PROXY cannot be used; it must be http://HOST:PORT or https://HOST:PORT"
    )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@lru_cache(maxsize=1)
def shared_client() -> DirectClient:
    """Return this process's HTTP client; threads share it."""
    return DirectClient(DeadlineTransport())


@lru_cache(maxsize=1)
def public_client() -> DirectClient:
    """Return this process's HTTP client that reaches public addresses only, for addresses that tenants enter."""
    return DirectClient(DeadlineTransport(permits=is_public))
