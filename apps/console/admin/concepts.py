"""Pages of concepts."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from apps.console import cells, columns
from apps.console.listing import OwnPageAdmin
from apps.console.pages.concept import ConceptPage, read_concept
from apps.memories.models import Concept


@admin.register(Concept)
class ConceptAdmin(OwnPageAdmin):
    """Concepts, each with the broader one above it."""

    list_display = ("name", "agent_link", "broader", "depth", "made")
    list_filter = (("agent", AutocompleteSelectFilter),)
    text_fields = ("name", "description")
    page_template = "console/concept.html"

    def read_page(self, row: Concept) -> ConceptPage:
        """Read what its page shows."""
        return read_concept(row)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Concept]:
        """Read the broader concept's name in the same query."""
        concepts: QuerySet[Concept] = super().get_queryset(request).select_related("parent")
        return concepts.defer(*self.unread)

    @admin.display(description="broader")
    def broader(self, concept: Concept) -> SafeString | str:
        """Link the concept above it."""
        if concept.parent is None:
            return "–"
        return cells.link("memories_concept", concept.parent.id, concept.parent.name)

    @admin.display(description="depth")
    def depth(self, concept: Concept) -> int:
        """Count the concepts above it."""
        return len(concept.ancestors)

    made = columns.moment("created_at", "first met")
