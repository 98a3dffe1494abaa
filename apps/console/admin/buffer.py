"""Pages of agents' buffer items."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from apps.console import cells, columns
from apps.console.listing import AgentRowsAdmin
from apps.memories.models import BufferItem


@admin.register(BufferItem)
class BufferItemAdmin(AgentRowsAdmin):
    """List buffer items, until they expire or are promoted to memories."""

    list_display = (
        "beginning",
        "agent_link",
        "importance_shown",
        "accesses",
        "heard_from",
        "expires",
        "became",
    )
    list_filter = (("agent", AutocompleteSelectFilter),)
    text_fields = ("content",)
    fields = (
        "content",
        "agent",
        "importance_shown",
        "heard_from",
        "accesses",
        "created_at",
        "expires_at",
        "became",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[BufferItem]:
        """Leave the vectors where they are; read what an item became in the same query."""
        items: QuerySet[BufferItem] = super().get_queryset(request).select_related("promoted_to")
        wide = ("embedding", "lexical", "promoted_to__embedding", "promoted_to__lexical")
        return items.defer(*wide, *self.unread)

    beginning = columns.beginning("content", "content")
    importance_shown = columns.share("importance", "importance")
    heard_from = columns.origin("source", "source")
    expires = columns.moment("expires_at", "expires")

    @admin.display(description="became")
    def became(self, item: BufferItem) -> SafeString | str:
        """Link the memory that it was promoted to."""
        if item.promoted_to is None:
            return "–"
        return cells.node("memory", item.promoted_to.id, item.promoted_to.content)
