"""Pages that update by themselves: a script requests the parts that change, which are rendered without the navigation."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from apps.console.views import console_page
from apps.tenants.sessions import is_live_request

#: Seconds between two updates of a page, and of the page of a subject that is under way.
REFRESH_S, BUSY_REFRESH_S = 10, 3
#: The header of a response after which a page requests no more updates, because its subject has ended.
ENDED = "X-Ended"


def live_parts(request: HttpRequest, template: str, *, ended: bool = False, **context: Any) -> HttpResponse:
    """Render only the parts of a page that change; `ended`: they will not change again."""
    response = TemplateResponse(request, template, context)
    response["Cache-Control"] = "no-store"
    if ended:
        response[ENDED] = "1"
    return response


def live_page(request: HttpRequest, template: str, parts: str, **context: Any) -> HttpResponse:
    """Render a page; if the page itself asks for an update, only its parts that change, by the template `parts`."""
    if is_live_request(request):
        return live_parts(request, parts, **context)
    return console_page(request, template, live_s=REFRESH_S, **context)
