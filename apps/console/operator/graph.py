"""View of the knowledge graph as a picture that leads from node to node."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from apps.console.access import require_member
from apps.console.pages.graph_explorer import read_graph
from apps.console.views import console_page


@require_safe
def explore_graph(request: HttpRequest) -> HttpResponse:
    """Show a node of an agent's knowledge graph with the nodes around it."""
    require_member(request, to="see what its agents know")
    page = read_graph(request.GET)
    return console_page(request, "console/graph.html", title="Knowledge graph", page=page)
