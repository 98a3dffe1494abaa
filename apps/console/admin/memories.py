"""Pages of memories, accesses, practice, buffer items and code snippets. Viewing a page does not count as an access."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from apps.console import cells, columns
from apps.console.listing import (
    MEMORY_VECTORS,
    AgentRowsAdmin,
    FoundByIdAdmin,
    OwnPageAdmin,
    filters_by_agent,
    is_list,
)
from apps.console.pages.memory import read_memory
from apps.memories.models import BufferItem, CodeSnippet, Memory, MemoryAccess, Pin, Practice
from arbor.memory.values import MemoryStatus


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
    list_filter = filters_by_agent("type", "status")
    text_fields = ("content",)
    page_template = "console/memory.html"

    read_page = staticmethod(read_memory)

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """Return the order of creation; for the memories of one agent the order of occurrence, which has an index."""
        return ("-occurred_at",) if request.GET.get("agent__id__exact") else tuple(self.ordering)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Memory]:
        """Defer the vectors, and join the counts of recalls."""
        memories: QuerySet[Memory] = super().get_queryset(request).select_related("access")
        if is_list(request):
            return memories.defer("embedding", "lexical", *self.deferred)
        return memories.select_related("agent", "episode", "pin").defer(
            "embedding", "episode__embedding", "episode__lexical", *self.deferred
        )

    beginning = columns.beginning("content", "memory")
    type_shown = columns.cell(
        "type",
        lambda memory: cells.badge(
            memory.type if memory.status == MemoryStatus.ACTIVE else f"{memory.type}, {memory.status}", "calm"
        ),
    )
    importance_shown = columns.share("importance", "importance")
    occurred = columns.moment("occurred_at", "when")

    @admin.display(description="recalled")
    def recalled(self, memory: Memory) -> str:
        """Show the number of the agent's recalls."""
        access = memory._state.fields_cache.get("access")
        return f"{access.count}×" if access else "never"

    embedded = columns.cell("embedded by", lambda memory: cells.embedder(memory.embedding_model))


@admin.register(MemoryAccess)
class MemoryAccessAdmin(FoundByIdAdmin):
    """List the counts of agents' recalls."""

    list_display = ("memory_link", "count", "last_at", "reinforced")
    agent_path = "memory__agent"
    ordering = ("-memory_id",)
    sortable_by = ()
    fields = ("memory", "count", "last_at", "reinforced", "reinforced_at")

    joined = ("memory",)
    deferred = MEMORY_VECTORS

    memory_link = columns.memory()


@admin.register(Pin)
class PinAdmin(AgentRowsAdmin):
    """List the pinned memories."""

    list_display = ("memory_link", "agent_link", "pinned_by", "pinned")
    list_filter = filters_by_agent()
    ordering = ("-memory_id",)
    fields = ("memory", "agent", "pinned_by", "pinned_at", "retention", "decay_rate", "expires_at")

    joined = (*AgentRowsAdmin.joined, "memory")
    deferred = (*AgentRowsAdmin.deferred, *MEMORY_VECTORS)

    memory_link = columns.memory()
    pinned = columns.moment("pinned_at", "pinned")


@admin.register(Practice)
class PracticeAdmin(FoundByIdAdmin):
    """List the outcomes of procedures."""

    list_display = ("memory_link", "successes", "failures", "last_at")
    agent_path = "memory__agent"
    ordering = ("-memory_id",)
    sortable_by = ()
    fields = ("memory", "successes", "failures", "last_at")

    joined = ("memory",)
    deferred = MEMORY_VECTORS

    memory_link = columns.memory("procedure")


@admin.register(BufferItem)
class BufferItemAdmin(AgentRowsAdmin):
    """List buffer items, until they expire or are promoted to memories."""

    list_display = (
        "beginning",
        "agent_link",
        "importance_shown",
        "trust_shown",
        "accesses",
        "origin",
        "expires",
        "became",
    )
    list_filter = filters_by_agent()
    text_fields = ("content",)
    fields = (
        "content",
        "agent",
        "importance_shown",
        "trust_shown",
        "origin",
        "accesses",
        "created_at",
        "expires_at",
        "became",
    )

    joined = (*AgentRowsAdmin.joined, "promoted_to")
    deferred = (
        *AgentRowsAdmin.deferred,
        "embedding",
        "lexical",
        "promoted_to__embedding",
        "promoted_to__lexical",
    )

    beginning = columns.beginning("content", "content")
    trust_shown = columns.share("trust", "trust")
    importance_shown = columns.share("importance", "importance")
    origin = columns.origin("source", "source")
    expires = columns.moment("expires_at", "expires")

    @admin.display(description="became")
    def became(self, item: BufferItem) -> SafeString | str:
        """Link the memory that the item was promoted to."""
        if item.promoted_to is None:
            return "–"
        return cells.node("memory", item.promoted_to.id, item.promoted_to.content)


@admin.register(CodeSnippet)
class CodeSnippetAdmin(AgentRowsAdmin):
    """List code snippets from conversations and messages."""

    list_display = ("beginning", "agent_link", "language", "came_from", "stored")
    list_filter = filters_by_agent()
    text_fields = ("title", "code")
    fields = ("title", "agent", "language", "came_from", "created_at", "code_shown")

    beginning = columns.cell("about", lambda snippet: cells.clipped(snippet.title or snippet.code))
    came_from = columns.origin("source", "source")
    stored = columns.moment("created_at", "stored")
    code_shown = columns.cell("code", lambda snippet: cells.block(snippet.code))
