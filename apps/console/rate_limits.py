"""Limit how often a person, and the people of a tenant together, open pages and act.

Each web process counts for itself, in memory: with several (`ARBOR_WEB_PROCESSES`) the limits are as many times as high.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from apps.console.access import access_of
from apps.tenants.models import User

#: A tenant's people together may do as many times as much as one person.
PEOPLE_PER_TENANT = 5
#: A search reads many rows, so it counts as several pages.
SEARCH_PAGES = 5
#: The parameter of a search in a list.
_SEARCH = "q"
#: Ways out, which stay open.
_UNLIMITED = frozenset({"logout", "alive", "metrics"})
_READING = frozenset({"GET", "HEAD", "OPTIONS"})
#: The most keys of a limiter; beyond it those that used nothing lately are forgotten.
_MOST_KEYS = 10_000


@dataclass(kw_only=True)
class _Allowance:
    """The uses that are left to a key, and when they were counted."""

    left: float
    at: float


class RateLimiter:
    """Allows each key a number of uses a minute: at once after a pause, else as they come back evenly (a token bucket)."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._allowances: dict[object, _Allowance] = {}

    def seconds_to_wait(self, limits: dict[object, int], *, uses: int = 1) -> float:
        """Count uses against each key's limit a minute; return 0, or the seconds until they would be allowed.

        Where one key has too few left, none is charged. A limit of 0 is no limit.
        """
        now = self._clock()
        limits = {key: limit for key, limit in limits.items() if limit > 0}
        with self._lock:
            wait = max((self._wait(key, limit, uses, now) for key, limit in limits.items()), default=0.0)
            if not wait:
                for key in limits:
                    self._allowances[key].left -= uses
            if len(self._allowances) > _MOST_KEYS:
                self._forget(now)
        return wait

    def _wait(self, key: object, limit: int, uses: int, now: float) -> float:
        per_second = limit / 60
        allowance = self._allowances.setdefault(key, _Allowance(left=limit, at=now))
        allowance.left = min(float(limit), allowance.left + (now - allowance.at) * per_second)
        allowance.at = now
        missing = min(uses, limit) - allowance.left
        return max(0.0, missing / per_second)

    def _forget(self, now: float) -> None:
        """Forget the keys that used nothing for a minute: they have all their uses again."""
        recent = {key: allowance for key, allowance in self._allowances.items() if now - allowance.at < 60}
        self._allowances = recent


#: Shared by all threads of the process.
limiter = RateLimiter()


class RateLimitMiddleware:
    """Answers 429 to a person, or a tenant, with too many requests a minute. It follows `TenantMiddleware`."""

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
        kind = "pages" if reading else "acts"
        limits: dict[object, int] = {(kind, "user", request.user.pk): most}
        access = access_of(request)
        if access is not None:
            limits[kind, "tenant", access.tenant_id] = most * PEOPLE_PER_TENANT
        uses = SEARCH_PAGES if reading and request.GET.get(_SEARCH) else 1
        wait = math.ceil(limiter.seconds_to_wait(limits, uses=uses))
        return _refuse(request, kind=kind, most=most, wait=wait) if wait else None


def _refuse(request: HttpRequest, *, kind: str, most: int, wait: int) -> HttpResponse:
    message = (
        f"at most {most} {kind} a minute are allowed for a person, {most * PEOPLE_PER_TENANT} for a tenant;"
        f" try again in {wait} s"
    )
    response = render(request, "console/refused.html", {"message": message}, status=429)
    response.headers["Retry-After"] = str(wait)
    return response
