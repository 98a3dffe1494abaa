"""Addresses: the operator's console, metrics, and a health check."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver, path
from django.views.generic import RedirectView

from apps.console.metrics import metrics


@login_not_required
def alive(_request: HttpRequest) -> HttpResponse:
    """Answer that the process is alive, without a query to the database."""
    return HttpResponse("ok\n", content_type="text/plain")


admin.autodiscover()

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", alive, name="alive"),
    path("metrics", metrics, name="metrics"),
    path("admin/", admin.site.urls),
    path("", RedirectView.as_view(pattern_name="admin:index")),
]
