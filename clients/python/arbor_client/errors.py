"""Errors of the client, in one tree.

ArborClientError
├── Unreachable          the server did not answer
├── UnreadableAnswer     the answer is not what this version of the client expects
└── Refused              the server answered with a problem
    ├── TokenInvalid     401: the token is missing, unknown, expired or revoked
    ├── Forbidden        403: the token's role, or its agent, does not allow it
    ├── Missing          404: nothing with that id or name
    ├── Conflict         409, 412: the state forbids it, the name is taken, or the resource has changed
    ├── Unprocessable    400, 413, 422: the request is wrong; `fields` names the parts
    ├── TooManyRequests  429: wait for `retry_after_s`
    └── ServerFailed     5xx
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx


class ArborClientError(Exception):
    """An error of the client."""


class Unreachable(ArborClientError):
    """The server did not answer."""


class UnreadableAnswer(ArborClientError):
    """The answer is not what this version of the client expects."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A problem as the server describes it (RFC 9457)."""

    status: int
    #: `not-found`, `already-exists`…; empty where the answer does not say.
    kind: str
    detail: str
    request_id: str = ""
    #: Messages about parts of the request, by their place.
    fields: dict[str, str]
    retry_after_s: float | None = None


class Refused(ArborClientError):
    """The server answered with a problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail or f"the server answered {problem.status}")
        self.problem = problem

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.problem.status

    @property
    def kind(self) -> str:
        """The kind of the problem: `not-found`, `already-exists`…"""
        return self.problem.kind

    @property
    def fields(self) -> dict[str, str]:
        """The messages about parts of the request, by their place."""
        return self.problem.fields

    @property
    def request_id(self) -> str:
        """The request's id in the server's log."""
        return self.problem.request_id

    @property
    def retry_after_s(self) -> float | None:
        """The seconds to wait that the server asks for."""
        return self.problem.retry_after_s


class TokenInvalid(Refused):
    """The token is missing, unknown, expired or revoked."""


class Forbidden(Refused):
    """The token's role, or its agent, does not allow it."""


class Missing(Refused):
    """There is nothing with that id or name."""


class Conflict(Refused):
    """The state forbids it, the name is taken, or the resource has changed since it was read."""


class Unprocessable(Refused):
    """The request is wrong."""


class TooManyRequests(Refused):
    """There were too many requests."""


class ServerFailed(Refused):
    """The server failed, or something that it needs."""


_BY_STATUS: dict[int, type[Refused]] = {
    400: Unprocessable,
    401: TokenInvalid,
    403: Forbidden,
    404: Missing,
    409: Conflict,
    412: Conflict,
    413: Unprocessable,
    422: Unprocessable,
    429: TooManyRequests,
}
_SERVER_ERROR = 500
_KIND = "urn:arbor:problem:"


def error_of(response: httpx.Response) -> Refused:
    """Return the error of an answer with an error status, whose body was read."""
    kind = ServerFailed if response.status_code >= _SERVER_ERROR else Refused
    return _BY_STATUS.get(response.status_code, kind)(_problem(response))


def _problem(response: httpx.Response) -> Problem:
    try:
        body = response.json()
    except (ValueError, RecursionError):
        body = None
    # A gateway in front of the server answers in forms of its own.
    problem: dict[str, Any] = body if isinstance(body, dict) else {}
    errors = problem.get("errors")
    parts = [part for part in errors if isinstance(part, dict)] if isinstance(errors, list) else []
    return Problem(
        status=response.status_code,
        kind=str(problem.get("type", "")).removeprefix(_KIND),
        detail=str(problem.get("detail", response.reason_phrase)),
        request_id=str(problem.get("request_id", response.headers.get("x-request-id", ""))),
        fields={str(part.get("field")): str(part.get("message")) for part in parts},
        retry_after_s=_seconds(response.headers.get("retry-after")),
    )


def _seconds(value: str | None) -> float | None:
    try:
        return None if value is None else max(0.0, float(value))
    except ValueError:
        # A date, which Arbor does not send.
        return None
