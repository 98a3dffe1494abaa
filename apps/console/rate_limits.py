"""Limit how often a person, and the people of a tenant together, open pages and act.

Each web process counts for itself, in memory: several processes (`ARBOR_WEB_PROCESSES`) multiply the limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from apps.console.access import access_of
from apps.tenants.models import User
from arbor.quotations import counted
from arbor.rate_limits import RateLimiter

#: The limit of a tenant's people together, as a multiple of the limit of one person.
PEOPLE_PER_TENANT = 5
#: A search reads many rows, so it counts as several pages.
SEARCH_PAGES = 5
#: The parameter of a search in a list.
_SEARCH = "q"
#: The URL names of pages without a limit.
_UNLIMITED = frozenset({"logout", "metrics"})
_READING = frozenset({"GET", "HEAD", "OPTIONS"})

#: Shared by all threads of the process.
limiter = RateLimiter()


class RateLimitMiddleware:
    """Answers 429 to a person, or a tenant, with too many requests a minute. Runs after `TenantMiddleware`."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer the request."""
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, _view: Any, _arguments: Any, _named: Any
    ) -> HttpResponse | None:
        """Refuse a request beyond a limit, before its page reads anything."""
        match = request.resolver_match
        if not isinstance(request.user, User) or (match is not None and match.url_name in _UNLIMITED):
            return None
        reading = request.method in _READING
        most: int = settings.ARBOR_PAGES_PER_MINUTE if reading else settings.ARBOR_ACTS_PER_MINUTE
        kind = "page" if reading else "act"
        limits: dict[object, int] = {(kind, "user", request.user.pk): most}
        access = access_of(request)
        if access is not None:
            limits[kind, "tenant", access.tenant_id] = most * PEOPLE_PER_TENANT
        uses = SEARCH_PAGES if reading and request.GET.get(_SEARCH) else 1
        wait = math.ceil(limiter.seconds_to_wait(limits, uses=uses))
        return _refuse(request, kind=kind, most=most, wait=wait) if wait else None


def _refuse(request: HttpRequest, *, kind: str, most: int, wait: int) -> HttpResponse:
    verb = "open" if kind == "page" else "carry out"
    message = (
        f"a person may {verb} {counted(most, kind)} a minute, a tenant {most * PEOPLE_PER_TENANT:,};"
        f" try again in {wait} s"
    )
    response = render(request, "console/refused.html", {"message": message}, status=429)
    response.headers["Retry-After"] = str(wait)
    return response
