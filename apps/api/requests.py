"""The id and the rights of a request."""

from __future__ import annotations

import re
from typing import cast

from django.http import HttpRequest

from apps.access.services import TokenAccess
from apps.api.rates import RequestRate
from arbor.ids import uuid7

REQUEST_ID = "X-Request-ID"
_ID = re.compile(r"[\w.-]{1,64}", re.ASCII)


def valid_request_id(sent: str) -> str:
    """Return the id that a client sent if its form is valid, else a new one."""
    return sent if _ID.fullmatch(sent) else str(uuid7())


def give_request_id(request: HttpRequest) -> str:
    """Give a request the id that its client sent, or a new one, and return it."""
    request_id = valid_request_id(request.headers.get(REQUEST_ID, ""))
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
