"""A GET without cookies, limited in time and size, whose failures are Arbor's errors."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx

from arbor.adapters.deadline import deadline
from arbor.adapters.transport import TIMEOUT, DeadlineTransport
from arbor.errors import WebFailed, WebRefused
from arbor.version import VERSION

USER_AGENT = f"Arbor/{VERSION} (autonomous agent)"
#: Connections of one process to the web that may be in use at once, and idle ones for each server: few, because pages
#: seldom come from one server twice.
_CONNECTIONS = 64
_IDLE = 2
_MAX_DIGITS = 20


def web_client(*, permits: Callable[[str], bool] | None = None) -> httpx.Client:
    """Return a client without cookies and redirects; with `permits`, it connects only to addresses that it permits."""
    return httpx.Client(
        transport=DeadlineTransport(connections=_CONNECTIONS, idle_per_origin=_IDLE, permits=permits),
        timeout=TIMEOUT,
        follow_redirects=False,
        trust_env=False,
        cookies=no_cookies(),
    )


def no_cookies() -> CookieJar:
    """Return a jar that stores no cookie."""
    return CookieJar(policy=DefaultCookiePolicy(allowed_domains=[]))


@contextmanager
def stream_get(
    client: httpx.Client, url: httpx.URL, *, where: str, accept: str, deadline_s: float
) -> Iterator[httpx.Response]:
    """Send a GET within the deadline; `where` names the address in messages.

    Raises WebFailed for network errors, and WebRefused for an address that is not permitted.
    """
    headers = {"User-Agent": USER_AGENT, "Accept": accept, "Accept-Encoding": "identity"}
    started = time.monotonic()
    try:
        with deadline(deadline_s), client.stream("GET", url, headers=headers) as response:
            yield response
    except httpx.UnsupportedProtocol as error:
        raise WebRefused(f"{where} may not be read: {error}") from error
    except httpx.PoolTimeout as error:
        raise WebFailed(f"{where} was not asked: all connections of this process are in use") from error
    except httpx.TimeoutException as error:
        if isinstance(error, httpx.ConnectTimeout) and time.monotonic() - started < deadline_s:
            raise WebFailed(f"{where} did not accept a connection in time") from error
        raise WebFailed(f"{where} did not answer within {deadline_s:.1f} s") from error
    except httpx.HTTPError as error:
        raise WebFailed(f"{where} cannot be reached: {error}") from error
    except (httpx.InvalidURL, UnicodeError) as error:
        # httpx reads the address of a redirect also where it does not follow it.
        raise WebFailed(f"{where} redirects to no address: {error}") from error


def read_body(response: httpx.Response, *, where: str, max_bytes: int) -> bytes:
    """Read the body in chunks. Raises WebFailed for one that is compressed or larger than `max_bytes` bytes."""
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        # A few compressed bytes could expand to very many.
        raise WebFailed(f"{where} sent a compressed page, which was not asked for")
    announced = response.headers.get("content-length", "")
    parts: list[bytes] = []
    # A longer number is none of bytes, and could be too long to be read.
    size = int(announced) if announced.isdecimal() and len(announced) < _MAX_DIGITS else 0
    if size <= max_bytes:
        size = 0
        for part in response.iter_raw():
            size += len(part)
            if size > max_bytes:
                break
            parts.append(part)
    if size > max_bytes:
        raise WebFailed(f"{where} is larger than {max_bytes:,} bytes")
    return b"".join(parts)
