"""Pages of the knowledge graph's relations."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.contrib import admin
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from apps.console import cells, columns
from apps.console.listing import AgentRowsAdmin
from apps.console.nodes import NamedNode, name_nodes
from apps.memories.models import Edge


@admin.register(Edge)
class EdgeAdmin(AgentRowsAdmin):
    """Typed, directed relations between what an agent remembers, thinks, believes and wants."""

    list_display = ("source_link", "relation_shown", "target_link", "weight_shown", "agent_link", "drawn")
    list_filter = (("agent", AutocompleteSelectFilter),)
    list_display_links = ("relation_shown",)
    text_fields = ("relation", "note")
    fields = (
        "agent",
        "source_link",
        "relation_shown",
        "target_link",
        "weight_shown",
        "note",
        "drawn_by",
        "created_at",
    )

    def complete(self, rows: Sequence[Edge]) -> None:
        """Read what both ends of all these relations say."""
        ends = {
            end
            for edge in rows
            for end in ((edge.source_kind, edge.source_id), (edge.target_kind, edge.target_id))
        }
        named = name_nodes(None, ends)
        for edge in rows:
            vars(edge)["named"] = named

    @admin.display(description="from")
    def source_link(self, edge: Edge) -> SafeString:
        """Link what it leads from."""
        return _end(edge, edge.source_kind, edge.source_id)

    @admin.display(description="to")
    def target_link(self, edge: Edge) -> SafeString:
        """Link what it leads to."""
        return _end(edge, edge.target_kind, edge.target_id)

    @admin.display(description="relation")
    def relation_shown(self, edge: Edge) -> str:
        """Write the relation as words."""
        return edge.relation.replace("_", " ")

    weight_shown = columns.share("weight", "weight")
    drawn = columns.moment("created_at", "drawn")
    drawn_by = columns.origin("origin", "drawn by")


def _end(edge: Edge, kind: str, row_id: UUID) -> SafeString:
    named: dict[tuple[str, UUID], NamedNode] = vars(edge)["named"]
    return cells.node(kind, row_id, named[kind, row_id].text)
