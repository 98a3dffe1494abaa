"""The URLs of the console's process: the operator's console and metrics."""

from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, URLResolver, path
from django.views.generic import RedirectView

from apps.console.error_views import answer_server_error
from apps.console.metrics import metrics

admin.autodiscover()

handler500 = answer_server_error

urlpatterns: list[URLPattern | URLResolver] = [
    path("metrics", metrics, name="metrics"),
    path("admin/", admin.site.urls),
    path("", RedirectView.as_view(pattern_name="admin:index")),
]
