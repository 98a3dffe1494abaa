"""URLs of the API's process."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from apps.api.a2a.api import PATH as A2A_PATH
from apps.api.a2a.api import a2a_api
from apps.api.api import PATH, api
from apps.api.docs_page import docs_file, docs_page
from apps.api.hook_views import post_to_hook
from apps.api.openai.api import PATH as OPENAI_PATH
from apps.api.openai.api import openai_api
from apps.api.problems import server_failed, unknown_path
from apps.api.routers.health import alive, ready
from arbor.contacts.hooks import HOOKS_PATH

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", alive, name="alive"),
    path("readyz", ready, name="ready"),
    path(f"{HOOKS_PATH.strip('/')}/<str:key>", post_to_hook, name="hook"),
    path(f"{PATH.strip('/')}/docs", docs_page, name="docs"),
    path(f"{PATH.strip('/')}/docs/<str:name>", docs_file, name="docs-file"),
    path(f"{PATH.strip('/')}/", api.urls),
    path(f"{OPENAI_PATH.strip('/')}/", openai_api.urls),
    path(f"{A2A_PATH.strip('/')}/", a2a_api.urls),
]

handler404 = unknown_path
handler500 = server_failed
