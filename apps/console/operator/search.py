"""View of the search over all sources of an agent."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from apps.console.access import require_member
from apps.console.pages.search import read_search
from apps.console.views import console_page


@require_safe
def search_all(request: HttpRequest) -> HttpResponse:
    """Show what a search finds for an agent, with the score components of each result."""
    access = require_member(request, to="search what its agents know")
    page = read_search(request.GET, tenant_id=access.tenant_id)
    return console_page(request, "console/search.html", title="Search", page=page)
