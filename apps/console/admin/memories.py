"""Pages of memories, accesses and practice. Viewing a page counts no access."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter, ChoicesDropdownFilter

from apps.console import cells, columns
from apps.console.listing import FoundByIdAdmin, OwnPageAdmin, is_list
from apps.console.pages.memory import MemoryPage, read_memory
from apps.memories.models import Memory, MemoryAccess, Practice


@admin.register(Memory)
class MemoryAdmin(OwnPageAdmin):
    """List agents' memories."""

    list_display = (
        "beginning",
        "agent_link",
        "type_shown",
        "role",
        "importance_shown",
        "occurred",
        "recalled",
        "embedded",
    )
    list_filter = (
        ("agent", AutocompleteSelectFilter),
        ("type", ChoicesDropdownFilter),
        ("status", ChoicesDropdownFilter),
    )
    text_fields = ("content",)
    page_template = "console/memory.html"

    def read_page(self, row: Memory) -> MemoryPage:
        """Read what its page shows."""
        return read_memory(row)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Memory]:
        """Leave the vectors where they are, and count recalls in the same query."""
        memories: QuerySet[Memory] = super().get_queryset(request).select_related("access")
        if is_list(request):
            return memories.defer("embedding", "lexical", *self.unread)
        return memories.select_related("agent", "episode").defer(
            "embedding", "episode__embedding", "episode__lexical", *self.unread
        )

    beginning = columns.beginning("content", "memory")

    @admin.display(description="type")
    def type_shown(self, memory: Memory) -> SafeString:
        """Show its type, and that it is archived."""
        return cells.badge(
            memory.type if memory.status == "active" else f"{memory.type}, {memory.status}", "calm"
        )

    importance_shown = columns.share("importance", "importance")
    occurred = columns.moment("occurred_at", "when")

    @admin.display(description="recalled")
    def recalled(self, memory: Memory) -> str:
        """Count the agent's own recalls; a person's look is none."""
        access = memory._state.fields_cache.get("access")
        return f"{access.count}×" if access else "never"

    @admin.display(description="embedded by")
    def embedded(self, memory: Memory) -> str:
        """Name the model of its vector."""
        return memory.embedding_model.rpartition("/")[2] or "not yet"


@admin.register(MemoryAccess)
class MemoryAccessAdmin(FoundByIdAdmin):
    """List the counts of agents' recalls."""

    list_display = ("memory_link", "count", "last_at", "reinforced")
    agent_path = "memory__agent"
    ordering = ("-memory_id",)
    sortable_by = ()
    fields = ("memory", "count", "last_at", "reinforced", "reinforced_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[MemoryAccess]:
        """Read the memory's text alone."""
        rows: QuerySet[MemoryAccess] = super().get_queryset(request).select_related("memory")
        return rows.defer("memory__embedding", "memory__lexical")

    @admin.display(description="memory")
    def memory_link(self, access: MemoryAccess) -> SafeString:
        """Begin the memory."""
        return cells.link("memories_memory", access.memory_id, cells.clipped(access.memory.content))


@admin.register(Practice)
class PracticeAdmin(FoundByIdAdmin):
    """List the successes of procedures."""

    list_display = ("memory_link", "successes", "failures", "last_at")
    agent_path = "memory__agent"
    ordering = ("-memory_id",)
    sortable_by = ()
    fields = ("memory", "successes", "failures", "last_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Practice]:
        """Read the memory's text alone."""
        rows: QuerySet[Practice] = super().get_queryset(request).select_related("memory")
        return rows.defer("memory__embedding", "memory__lexical")

    @admin.display(description="procedure")
    def memory_link(self, practice: Practice) -> SafeString:
        """Begin the procedure."""
        return cells.link("memories_memory", practice.memory_id, cells.clipped(practice.memory.content))
