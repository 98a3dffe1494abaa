"""The id and the rights of a request."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import cast

from django.http import HttpRequest

from apps.access.services import TokenAccess
from arbor.ids import uuid7


@dataclass(frozen=True, kw_only=True)
class RequestRate:
    """The requests that a token may make a minute, and those that are left."""

    most: int
    left: int
    #: The seconds until the next request is allowed.
    wait_s: int


REQUEST_ID = "X-Request-ID"
_ID = re.compile(r"[\w.-]{1,64}", re.ASCII)


def give_request_id(request: HttpRequest) -> str:
    """Give a request the id that its client sent, or a new one, and return it."""
    sent = request.headers.get(REQUEST_ID, "")
    request_id = sent if _ID.fullmatch(sent) else str(uuid7())
    request.arbor_request_id = request_id  # type: ignore[attr-defined]
    return request_id


def request_id_of(request: HttpRequest) -> str:
    """Return the id of a request."""
    return cast("str", getattr(request, "arbor_request_id", ""))


def access_of(request: HttpRequest) -> TokenAccess:
    """Return the rights of an authenticated request."""
    return cast("TokenAccess", request.auth)  # type: ignore[attr-defined]


def rate_of(request: HttpRequest) -> RequestRate | None:
    """Return the rate of a request's token; None where there is no token or no limit."""
    return cast("RequestRate | None", getattr(request, "arbor_rate", None))
