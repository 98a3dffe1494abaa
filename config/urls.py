"""The URLs of the console's process: the operator's console, metrics and health checks."""

from __future__ import annotations

from http import HTTPStatus

from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import URLPattern, URLResolver, path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from django.views.generic import RedirectView

from apps.console.error_views import answer_server_error
from apps.console.metrics import metrics
from apps.readiness import check_readiness


@login_not_required
def alive(_request: HttpRequest) -> HttpResponse:
    """Answer that the process is alive, without a query to the database."""
    return HttpResponse("ok\n", content_type="text/plain")


@login_not_required
@require_safe
@never_cache
def ready(_request: HttpRequest) -> HttpResponse:
    """Answer whether database and broker answer; 503 if one of them does not."""
    found = check_readiness()
    status = HTTPStatus.OK if found.ready else HTTPStatus.SERVICE_UNAVAILABLE
    return JsonResponse(found.as_json(), status=status)


admin.autodiscover()

handler500 = answer_server_error

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", alive, name="alive"),
    path("readyz", ready, name="ready"),
    path("metrics", metrics, name="metrics"),
    path("admin/", admin.site.urls),
    path("", RedirectView.as_view(pattern_name="admin:index")),
]
