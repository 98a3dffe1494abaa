"""Answers to the probes of load balancers and containers: whether the process is alive, and whether its servers answer."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from apps.readiness import check_readiness


def alive(_request: HttpRequest) -> HttpResponse:
    """Answer that the process is alive, without a query to the database."""
    return HttpResponse("ok\n", content_type="text/plain")


@require_safe
@never_cache
def ready(_request: HttpRequest) -> HttpResponse:
    """Answer whether database and broker answer; 503 if one of them does not."""
    found = check_readiness()
    status = HTTPStatus.OK if found.ready else HTTPStatus.SERVICE_UNAVAILABLE
    return JsonResponse(found.as_json(), status=status)


_PROBES = {"/healthz": alive, "/readyz": ready}


class ProbeMiddleware:
    """Answers probes before all other middleware: they come without TLS, and name the address of the process as their host."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer a probe, or pass the request on."""
        return _PROBES.get(request.path_info, self._get_response)(request)
