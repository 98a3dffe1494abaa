"""View of the recall explorer."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from apps.console.access import require_member
from apps.console.pages.recall import read_recall
from apps.console.views import console_page


@require_safe
def explore_recall(request: HttpRequest) -> HttpResponse:
    """Show what an agent would recall about a text, with the components of each score."""
    access = require_member(request, to="see what its agents remember")
    page = read_recall(request.GET, tenant_id=access.tenant_id)
    return console_page(request, "console/recall.html", title="Recall", page=page)
