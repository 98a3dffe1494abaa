"""Views of the explorers of what an agent knows: recall, the search over all sources, and the knowledge graph."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from apps.console.access import require_member
from apps.console.pages.graph_explorer import read_graph
from apps.console.pages.recall import read_recall
from apps.console.pages.search import read_search
from apps.console.views import console_page


@require_safe
def explore_recall(request: HttpRequest) -> HttpResponse:
    """Show what an agent would recall about a text, with the components of each score."""
    access = require_member(request, to="see what its agents remember")
    page = read_recall(request.GET, tenant_id=access.tenant_id)
    return console_page(request, "console/recall.html", title="Recall", page=page)


@require_safe
def search_all(request: HttpRequest) -> HttpResponse:
    """Show what a search finds for an agent, with the score components of each result."""
    access = require_member(request, to="search what its agents know")
    page = read_search(request.GET, tenant_id=access.tenant_id)
    return console_page(request, "console/search.html", title="Search", page=page)


@require_safe
def explore_graph(request: HttpRequest) -> HttpResponse:
    """Show a node of an agent's knowledge graph with the nodes around it, as a picture that leads from node to node."""
    require_member(request, to="see what its agents know")
    page = read_graph(request.GET)
    return console_page(request, "console/graph.html", title="Knowledge graph", page=page)
