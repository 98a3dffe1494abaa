"""The health of the process, the database and the broker."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, JsonResponse

from apps.readiness import check_readiness


def alive(_request: HttpRequest) -> HttpResponse:
    """Answer that the process is alive, without a query to the database."""
    return HttpResponse("ok\n", content_type="text/plain")


async def ready(_request: HttpRequest) -> HttpResponse:
    """Report whether the database and the broker answer; 503 if one of them does not."""
    # Not in the API's threads, which may all wait for a database that hangs.
    found = await asyncio.to_thread(check_readiness)
    status = HTTPStatus.OK if found.ready else HTTPStatus.SERVICE_UNAVAILABLE
    return JsonResponse(found.as_json(), status=status)
