"""The id, the access and the rate of a request."""

from __future__ import annotations

import re
from typing import cast
from uuid import UUID

from django.http import HttpRequest

from apps.access.services import TokenAccess
from apps.api.rates import RequestRate
from arbor.errors import PermissionDenied
from arbor.ids import uuid7

REQUEST_ID = "X-Request-ID"
_ID = re.compile(r"[\w.-]{1,64}", re.ASCII)


def valid_request_id(sent: str) -> str:
    """Return the id that a client sent if it is valid, else a new id."""
    return sent if _ID.fullmatch(sent) else str(uuid7())


def give_request_id(request: HttpRequest) -> str:
    """Set and return the id of a request: the id that its client sent, or a new one."""
    request_id = valid_request_id(request.headers.get(REQUEST_ID, ""))
    request.arbor_request_id = request_id  # type: ignore[attr-defined]
    return request_id


def request_id_of(request: HttpRequest) -> str:
    """Return the id of a request."""
    return cast("str", getattr(request, "arbor_request_id", ""))


def access_of(request: HttpRequest) -> TokenAccess:
    """Return the access of an authenticated request: its token's tenant, role and agent."""
    return cast("TokenAccess", request.auth)  # type: ignore[attr-defined]


def require_reach(access: TokenAccess, agent_id: UUID | None) -> None:
    """Raise PermissionDenied for a token of one agent, unless it is the named agent; None names the whole tenant."""
    if access.agent_id not in {None, agent_id}:
        named = f"the agent {agent_id}" if agent_id is not None else "the whole tenant"
        raise PermissionDenied(f"the token reaches the agent {access.agent_id} only, not {named}")


def rate_of(request: HttpRequest) -> RequestRate | None:
    """Return the rate of a request's token; None without a token or a limit."""
    return cast("RequestRate | None", getattr(request, "arbor_rate", None))
