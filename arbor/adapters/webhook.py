"""Deliver messages to webhooks: one signed JSON request, confirmed by any 2xx, to public addresses only."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Mapping
from functools import lru_cache

import httpx

from arbor.adapters.deadline import deadline
from arbor.adapters.transport import TIMEOUT, DeadlineTransport
from arbor.adapters.web_client import no_cookies
from arbor.contacts.ports import DeliverableMessage
from arbor.contacts.signing import SIGNATURE_HEADER, signature
from arbor.errors import DeliveryFailed, Invalid
from arbor.web.addresses import is_public

#: The limit of the whole request, including the DNS look-up and the response's headers.
DEADLINE_S = 15.0
KEY_HEADER = "Idempotency-Key"
#: Replaces the hidden parts of a URL.
HIDDEN = "…"
#: The receiver is gone for good (RFC 9110, 15.5.11); every other status may change.
_GONE = 410
_COMMON_HEADERS = {"Content-Type": "application/json", "User-Agent": "Arbor"}


def check_url(
    url: str,
    *,
    allow_http: bool,
    what: str = "a webhook's URL",
    setting: str = "ARBOR_WEBHOOK_ALLOW_HTTP",
) -> None:
    """Raise Invalid unless a webhook can have the URL: absolute, https (or http, if allowed), no user in it.

    `what` names the URL in errors, and `setting` the setting that allows http. The error shows no more of the URL than
    `redact_url` does, because records and prompts contain the error.
    """
    schemes = ("https", "http") if allow_http else ("https",)
    try:
        parsed = httpx.URL(url)
        host = parsed.host
    except (httpx.InvalidURL, UnicodeError) as error:
        # The library's own message quotes the URL. An international name is decoded when it is read.
        raise Invalid(f"{what} must be a valid URL, such as https://example.org/path") from error
    if parsed.scheme not in schemes or not host:
        raise Invalid(
            f"{what} begins with {' or '.join(f'{scheme}://' for scheme in schemes)} and a host, got {redact_url(url)!r}"
            + ("" if allow_http else f"; {setting}=true allows http")
        )
    if parsed.userinfo:
        raise Invalid(f"{what} must not contain a user and password: they would be shown and logged with it")


def redact_url(url: str) -> str:
    """Return scheme, host and port of a URL; path and query may be secret."""
    try:
        parsed = httpx.URL(url)
        host = parsed.host
    except (httpx.InvalidURL, UnicodeError):
        return HIDDEN
    if not parsed.scheme or not host:
        return HIDDEN
    place = f"{parsed.scheme}://{parsed.netloc.decode('ascii', errors='replace')}"
    return f"{place}/{HIDDEN}" if parsed.raw_path not in (b"", b"/") or parsed.fragment else place


class Webhook:
    """Posts messages. `allow_private` permits addresses that are not public, such as this machine's."""

    def __init__(
        self, *, allow_http: bool = False, allow_private: bool = False, deadline_s: float = DEADLINE_S
    ) -> None:
        self._allow_http = allow_http
        self._client = _client(allow_private)
        self._deadline_s = deadline_s

    def deliver(self, message: DeliverableMessage) -> None:
        """Post the message; return when its receiver answered 2xx. Raises DeliveryFailed as `post` does."""
        body = build_body(message)
        self.post(message.target, body=body, headers=_headers(message, body))

    def post(self, url: str, *, body: bytes, headers: Mapping[str, str]) -> None:
        """Post a body of JSON; return when the receiver answered 2xx. Redirects are not followed.

        Raises DeliveryFailed; its message contains neither path nor query of the URL, which may be secret.
        """
        try:
            check_url(url, allow_http=self._allow_http)
        except Invalid as error:
            raise DeliveryFailed(str(error), final=True) from error
        host = httpx.URL(url).host
        started = time.monotonic()
        try:
            with (
                deadline(self._deadline_s),
                self._client.stream(
                    "POST", url, content=body, headers={**_COMMON_HEADERS, **headers}, follow_redirects=False
                ) as response,
            ):
                status = response.status_code
        except httpx.UnsupportedProtocol as error:
            raise DeliveryFailed(
                f"{error}; ARBOR_WEBHOOK_ALLOW_PRIVATE=true permits addresses of one's own network",
                final=True,
            ) from error
        except httpx.PoolTimeout as error:
            raise DeliveryFailed(
                f"{host} was not asked: all connections of this process are in use"
            ) from error
        except httpx.TimeoutException as error:
            if isinstance(error, httpx.ConnectTimeout) and time.monotonic() - started < self._deadline_s:
                raise DeliveryFailed(f"{host} did not accept a connection in time") from error
            raise DeliveryFailed(f"{host} did not answer within {self._deadline_s:g} s") from error
        except httpx.RequestError as error:
            raise DeliveryFailed(f"{host} cannot be reached: {_reason(error)}") from error
        except (httpx.InvalidURL, UnicodeError) as error:
            # httpx reads the address of a redirect also where it does not follow it.
            raise DeliveryFailed(f"{host} answered with a redirect to no address") from error
        if not 200 <= status < 300:
            raise DeliveryFailed(
                f"{host} answered {status}; a receiver confirms a message with 2xx", final=status == _GONE
            )


def _reason(error: httpx.RequestError) -> str:
    """Return why a request failed, without the error's text: it quotes names and addresses of the operator's network."""
    causes: list[BaseException] = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None:
        causes.append(cause)
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return "no secure connection; the certificate may not be valid"
    # httpcore drops the cause of this error, so it is recognized by the texts of `DeadlineBackend`.
    if "does not resolve" in str(error) or "has no address" in str(error):
        return "its name leads to no address"
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        return "the connection was refused"
    return "no connection" if isinstance(error, httpx.ConnectError) else "the connection broke"


def build_body(message: DeliverableMessage) -> bytes:
    """Build the request's body: JSON of id, agent, audience, subject, content, heartbeat and at."""
    body = {
        "id": message.id,
        "agent": message.agent,
        "audience": message.audience.value,
        "subject": message.subject,
        "content": message.content,
        "heartbeat": message.heartbeat or None,
        "at": message.at.isoformat(),
    }
    # A lone surrogate in an agent's text must not break the request.
    return json.dumps(body, ensure_ascii=False).encode("utf-8", errors="replace")


def _headers(message: DeliverableMessage, body: bytes) -> dict[str, str]:
    return {
        KEY_HEADER: message.key,
        SIGNATURE_HEADER: signature(message.secret, at=int(time.time()), body=body),
    }


@lru_cache(maxsize=2)
def _client(allow_private: bool) -> httpx.Client:
    """Return this process's client; threads share it."""
    return httpx.Client(
        transport=DeadlineTransport(permits=(lambda _: True) if allow_private else is_public),
        timeout=TIMEOUT,
        # Receivers of several tenants share the client; none may see the cookies of another.
        cookies=no_cookies(),
    )
