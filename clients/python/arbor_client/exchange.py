"""The exchange of a call with its retries, as a generator that yields the next step of a client: send, or wait."""

from __future__ import annotations

import random
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import httpx

from arbor_client.calls import Call
from arbor_client.errors import Unreachable, UnreadableAnswer, error_of

#: The seconds between two requests for a value that is not complete yet.
FOLLOW_S = 0.5
#: The statuses of answers after which a request may succeed if it is sent again.
_RETRYABLE = frozenset({429, 502, 503, 504})
_FIRST_WAIT_S = 0.5
_LONGEST_WAIT_S = 30.0
_NO_CONTENT = 204
_NOT_FOUND = 404
_CONFLICT = 409
_TOO_MANY = 429
_UNDERWAY = "request-underway"


@dataclass(frozen=True)
class Send:
    """Send the request of a call; the answer is sent back into the generator."""

    call: Call[Any]


@dataclass(frozen=True)
class Wait:
    """Wait for a number of seconds."""

    seconds: float


type Step = Send | Wait
#: The answer of a `Send`: a response whose body was read, or the error of the connection or of the body's compression.
type Sent = httpx.Response | httpx.RequestError | None


def exchange[T](call: Call[T], *, retries: int) -> Generator[Step, Sent, T]:
    """Send a call, with up to `retries` retries, and return the value of its answer. Raises ArborClientError.

    A POST is repeated only under its idempotency key, a PATCH only if the server did not execute it. A repeated
    DELETE that finds nothing has succeeded, because an earlier one may have been executed. While the value is not complete, the call
    that follows is sent.
    """
    while True:
        value = yield from _attempts(call, retries=retries)
        following = None if call.follow is None else call.follow(value)
        if following is None:
            return value
        yield Wait(FOLLOW_S)
        call = following


def _attempts[T](call: Call[T], *, retries: int) -> Generator[Step, Sent, T]:
    attempt = 0
    may_be_deleted = False
    while True:
        sent = yield Send(call)
        assert sent is not None
        if may_be_deleted and isinstance(sent, httpx.Response) and sent.status_code == _NOT_FOUND:
            return call.parse(None)
        may_be_deleted = may_be_deleted or (call.method == "DELETE" and not _is_unexecuted(sent))
        wait = _wait_s(sent, attempt)
        if wait is None or attempt >= retries or not _may_repeat(call, sent):
            return _value(call, sent)
        attempt += 1
        yield Wait(wait)


def check(response: httpx.Response) -> None:
    """Raise the error of an answer whose body was read, if it has one."""
    if response.is_error:
        raise error_of(response)


def _value[T](call: Call[T], sent: httpx.Response | httpx.RequestError) -> T:
    if isinstance(sent, httpx.RequestError):
        raise Unreachable(f"the server did not answer {call.method} {call.path}: {sent}") from sent
    check(sent)
    if sent.status_code == _NO_CONTENT:
        return call.parse(None)
    if call.answers_file:
        return call.parse(sent.content)
    try:
        value = sent.json()
    except (ValueError, RecursionError) as error:
        raise UnreadableAnswer(f"the answer of {call.method} {call.path} is no JSON") from error
    return call.parse(value)


def _may_repeat(call: Call[Any], sent: httpx.Response | httpx.RequestError) -> bool:
    if call.method in ("GET", "HEAD", "PUT", "DELETE") or call.idempotency_key:
        return True
    return _is_unexecuted(sent)


def _is_unexecuted(sent: httpx.Response | httpx.RequestError) -> bool:
    """Return whether a request was certainly not executed: it was not sent, or the server refused it unread."""
    if isinstance(sent, httpx.Response):
        return sent.status_code == _TOO_MANY
    return isinstance(sent, httpx.ConnectError)


def _wait_s(sent: httpx.Response | httpx.RequestError, attempt: int) -> float | None:
    """Return the seconds until the next attempt; None if another one would not help."""
    if isinstance(sent, httpx.Response):
        if sent.status_code not in _RETRYABLE and not _is_underway(sent):
            return None
        retry_after = sent.headers.get("retry-after", "")
        if retry_after.isdecimal():
            return min(float(retry_after), _LONGEST_WAIT_S)
    # Random, so that many clients do not retry at the same moment.
    longest = min(_FIRST_WAIT_S * 2.0**attempt, _LONGEST_WAIT_S)
    return longest * random.uniform(0.5, 1.0)  # noqa: S311


def _is_underway(response: httpx.Response) -> bool:
    """Return whether the server still executes an earlier attempt under the same idempotency key."""
    return response.status_code == _CONFLICT and error_of(response).kind == _UNDERWAY
