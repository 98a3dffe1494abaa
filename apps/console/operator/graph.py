"""View of the knowledge graph as a picture that leads from node to node."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from apps.console.access import access_of
from apps.console.pages.graph_explorer import read_graph
from apps.console.views import console_page
from arbor.errors import PermissionDenied


@require_safe
def explore_graph(request: HttpRequest) -> HttpResponse:
    """Show a node of an agent's knowledge graph with the nodes around it."""
    if access_of(request) is None:
        raise PermissionDenied("only members of a tenant see what its agents know")
    page = read_graph(request.GET)
    return console_page(request, "console/graph.html", title="Knowledge graph", page=page)
