"""One JSON request and its reply, limited in time and size; errors are Arbor's and never contain a key."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import httpx
import orjson
from pydantic import SecretStr

from arbor.adapters.deadline import deadline
from arbor.adapters.transport import DirectClient
from arbor.errors import ModelRejected, ModelTimeout, ModelUnavailable

#: Far more than the largest model replies: a longer reply comes from a broken server.
MAX_REPLY_BYTES = 4_000_000
#: The most levels of JSON, which is orjson's limit: deeper values overflow the stack of code that encodes them again.
MAX_JSON_DEPTH = 1024
#: The longest quotation of a provider's error, in characters.
MAX_QUOTE = 300

#: Patterns of keys, in case a provider quotes one that is not Arbor's.
_KEYS = re.compile(r"(?i)\b(?:sk|pk|key|gsk|or|xai)-[\w*.-]{6,}|\bbearer\s+[\w.*~+/=-]+|\bAIza[\w-]{10,}")


class KeyAuth(httpx.Auth):
    """Adds the key as a header when the request is sent, so that no other object contains it in plain."""

    def __init__(self, secret: SecretStr, *, header: str = "Authorization", prefix: str = "Bearer ") -> None:
        self.secret = secret
        self._header = header
        self._prefix = prefix

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response]:
        """Add the header."""
        request.headers.update(self.header())
        yield request

    def header(self) -> dict[str, str]:
        """Return the header with the key in plain."""
        return {self._header: f"{self._prefix}{self.secret.get_secret_value()}"}


@dataclass(frozen=True, kw_only=True)
class ApiEndpoint:
    """The address and credentials of a provider's API."""

    #: The provider's name, for messages and the breaker.
    provider: str
    url: str
    auth: KeyAuth | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    #: The settings that a person would check when the provider rejects a request.
    settings: str = "the key and the address"

    @property
    def where(self) -> str:
        """Return the address without a user and password; one that cannot be read is not quoted."""
        try:
            return str(httpx.URL(self.url).copy_with(userinfo=b""))
        except httpx.InvalidURL:
            return "its address"

    @property
    def account(self) -> str:
        """Return a digest that is equal for endpoints with the same key and headers."""
        key = self.auth.secret.get_secret_value() if self.auth else None
        return hashlib.sha256(repr((key, sorted(self.headers.items()))).encode()).hexdigest()

    def scrub(self, text: str) -> str:
        """Put a text on one line, without keys, cut to the length of a quotation."""
        if self.auth is not None:
            text = text.replace(self.auth.secret.get_secret_value(), "***")
        text = " ".join(_KEYS.sub("***", text).split())
        return text if len(text) <= MAX_QUOTE else f"{text[:MAX_QUOTE]}…"


@dataclass(frozen=True, kw_only=True)
class HttpReply:
    """A server's complete response."""

    status: int
    headers: httpx.Headers
    content: bytes

    def json(self) -> Any:
        """Return the parsed body, or None when it is not JSON, or nests deeper than MAX_JSON_DEPTH."""
        return parse_json(self.content)


def parse_json(content: bytes) -> Any:
    """Parse JSON; return None for content that is not JSON, or nests deeper than MAX_JSON_DEPTH."""
    try:
        return orjson.loads(content)
    except ValueError:
        # The standard library reads halves of surrogate pairs, NaN and numbers beyond floats. orjson reads integers
        # beyond 64 bits as the nearest float, so they need no second attempt.
        pass
    return read_json(content)


def read_json(content: bytes) -> Any:
    """Parse JSON by the standard library, which accepts NaN and Infinity; return None for content that is not JSON or too deep."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return None if _is_deep(value) else value


def _is_deep(value: Any) -> bool:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_JSON_DEPTH):
        level = [
            child
            for item in level
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True


def post_json(
    client: httpx.Client, endpoint: ApiEndpoint, body: Mapping[str, Any], *, deadline_s: float
) -> HttpReply:
    """Send one request and read the whole answer, whatever its status.

    Raises ModelTimeout when the deadline passes, ModelUnavailable when the server cannot be reached, does not take the
    request, breaks off, or sends more than MAX_REPLY_BYTES, and ModelRejected for an address to which no request can be sent.
    """
    return _exchange(client, endpoint, encode_json(body), deadline_s)


def get_json(client: httpx.Client, endpoint: ApiEndpoint, *, deadline_s: float) -> HttpReply:
    """Request a resource and read the whole answer, whatever its status. Raises as `post_json` does."""
    return _exchange(client, endpoint, None, deadline_s)


def _exchange(
    client: httpx.Client, endpoint: ApiEndpoint, content: bytes | None, deadline_s: float
) -> HttpReply:
    with (
        translate_failures(endpoint, deadline_s=deadline_s),
        deadline(deadline_s),
        open_response(client, endpoint, content) as response,
    ):
        return read_reply(response, endpoint)


@contextmanager
def translate_failures(endpoint: ApiEndpoint, *, deadline_s: float) -> Iterator[None]:
    """Translate the errors of a request that begins now, and has `deadline_s` seconds, into Arbor's."""
    started = time.monotonic()
    try:
        yield
    except httpx.PoolTimeout as exc:
        raise ModelUnavailable(
            f"{endpoint.provider} was not asked: all connections of this process are in use",
            provider_fault=False,
        ) from exc
    except httpx.ConnectTimeout as exc:
        if time.monotonic() - started < deadline_s:
            raise ModelUnavailable(f"{endpoint.provider} did not accept a connection in time") from exc
        raise timeout_error(endpoint, deadline_s) from exc
    except httpx.WriteTimeout as exc:
        if time.monotonic() - started < deadline_s:
            raise ModelUnavailable(f"{endpoint.provider} did not take the request in time") from exc
        raise timeout_error(endpoint, deadline_s) from exc
    except httpx.TimeoutException as exc:
        raise timeout_error(endpoint, deadline_s) from exc
    except (httpx.UnsupportedProtocol, httpx.InvalidURL, httpx.LocalProtocolError, UnicodeError) as exc:
        raise ModelRejected(
            f"{endpoint.provider} cannot be asked at {endpoint.where}: {endpoint.scrub(str(exc))}"
        ) from exc
    except httpx.RequestError as exc:
        raise ModelUnavailable(f"{endpoint.provider} cannot be reached: {endpoint.scrub(str(exc))}") from exc


def open_response(
    client: httpx.Client, endpoint: ApiEndpoint, content: bytes | None
) -> AbstractContextManager[httpx.Response]:
    """Send a POST of the content, or a GET without content; the response's body is open within the block."""
    method = "GET" if content is None else "POST"
    headers = {"Accept-Encoding": "identity", **endpoint.headers}
    if content is not None:
        headers["Content-Type"] = "application/json"
    url = _parse_url(endpoint.url)
    # httpx makes a header of a user and password in the address; the direct client does not.
    if isinstance(client, DirectClient) and not url.userinfo:
        if endpoint.auth is not None:
            headers |= endpoint.auth.header()
        return client.stream_direct(method, url, headers=headers, content=content)
    return client.stream(
        method, endpoint.url, content=content, headers=headers, auth=endpoint.auth, follow_redirects=False
    )


@lru_cache(maxsize=64)
def _parse_url(url: str) -> httpx.URL:
    """Parse an address, cached because providers are few. Raises httpx.InvalidURL."""
    parsed = httpx.URL(url)
    try:
        # An international name is decoded when it is read.
        _ = parsed.host
    except UnicodeError as error:
        raise httpx.InvalidURL("the host is no name that can be decoded") from error
    return parsed


def encode_json(body: Mapping[str, Any]) -> bytes:
    """Encode a JSON object."""
    try:
        return orjson.dumps(body)
    except TypeError:
        # A lone surrogate in someone's text must not break the call.
        return json.dumps(body, ensure_ascii=False).encode("utf-8", errors="replace")


def timeout_error(endpoint: ApiEndpoint, deadline_s: float) -> ModelTimeout:
    """Return the error of a call whose deadline has passed."""
    return ModelTimeout(f"{endpoint.provider} did not answer within {deadline_s:.1f} s")


def read_reply(response: httpx.Response, endpoint: ApiEndpoint) -> HttpReply:
    """Read a whole response; raises ModelUnavailable beyond MAX_REPLY_BYTES."""
    parts: list[bytes] = []
    size = 0
    for part in iter_body(response, endpoint):
        size += len(part)
        if size > MAX_REPLY_BYTES:
            raise ModelUnavailable(f"{endpoint.provider} sent more than {MAX_REPLY_BYTES} bytes")
        parts.append(part)
    return HttpReply(status=response.status_code, headers=response.headers, content=b"".join(parts))


def iter_body(response: httpx.Response, endpoint: ApiEndpoint) -> Iterator[bytes]:
    """Yield the parts of a body; raises ModelUnavailable for one that is compressed more than once."""
    if "," in response.headers.get("content-encoding", ""):
        # One received part could expand to gigabytes before its size is known.
        raise ModelUnavailable(f"{endpoint.provider} sent a reply that is compressed more than once")
    yield from response.iter_bytes()
