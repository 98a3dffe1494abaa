"""The buffer: what agents hold for a while."""

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
    """What is held until it expires, or matters enough to be remembered."""

    list_display = ("beginning", "agent_link", "importance_shown", "accesses", "source", "expires", "became")
    list_filter = (("agent", AutocompleteSelectFilter),)
    text_fields = ("content",)
    fields = (
        "content",
        "agent",
        "importance_shown",
        "source",
        "accesses",
        "created_at",
        "expires_at",
        "became",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[BufferItem]:
        """Leave the vectors where they are."""
        items: QuerySet[BufferItem] = super().get_queryset(request)
        return items.defer("embedding", "lexical", *self.unread)

    beginning = columns.beginning("content", "held")
    importance_shown = columns.share("importance", "importance")
    expires = columns.moment("expires_at", "expires")

    @admin.display(description="became")
    def became(self, item: BufferItem) -> SafeString | str:
        """Link the memory that it was promoted to."""
        if item.promoted_to_id is None:
            return "–"
        return cells.node("memory", item.promoted_to_id)
