"""The health of the process, and of what it needs."""

from __future__ import annotations

from django.db import OperationalError, connections
from django.http import HttpRequest, HttpResponse, JsonResponse

from apps.tenants.scope import APP


def alive(_request: HttpRequest) -> HttpResponse:
    """Answer that the process is alive, without a query to the database."""
    return HttpResponse("ok\n", content_type="text/plain")


def ready(_request: HttpRequest) -> HttpResponse:
    """Answer whether the database answers."""
    try:
        with connections[APP].cursor() as cursor:
            cursor.execute("SELECT 1")
    except OperationalError:
        return JsonResponse({"database": False}, status=503)
    return JsonResponse({"database": True})
