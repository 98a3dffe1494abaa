"""Pages that update by themselves: the page asks for its moving parts anew, which are rendered without the navigation."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from apps.console.views import console_page
from apps.tenants.sessions import is_own_request

#: Seconds between two requests of a page, and of one whose subject is under way at the moment.
REFRESH_S, BUSY_REFRESH_S = 10, 3
#: The header of an answer after which a page asks no more: its subject has ended.
ENDED = "X-Ended"

__all__ = ["BUSY_REFRESH_S", "ENDED", "REFRESH_S", "is_own_request", "live_page", "live_parts"]


def live_parts(request: HttpRequest, template: str, *, ended: bool = False, **context: Any) -> HttpResponse:
    """Render the moving parts of a page alone; `ended` if they will not change again."""
    response = TemplateResponse(request, template, context)
    response["Cache-Control"] = "no-store"
    if ended:
        response[ENDED] = "1"
    return response


def live_page(request: HttpRequest, template: str, parts: str, **context: Any) -> HttpResponse:
    """Render a page; for a request of the page itself its moving parts, by the template `parts`."""
    if is_own_request(request):
        return live_parts(request, parts, **context)
    return console_page(request, template, live_s=REFRESH_S, **context)
