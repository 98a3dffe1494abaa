"""Pages of code snippets."""

from __future__ import annotations

from django.contrib import admin
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from apps.console import cells, columns
from apps.console.listing import AgentRowsAdmin
from apps.memories.models import CodeSnippet


@admin.register(CodeSnippet)
class CodeSnippetAdmin(AgentRowsAdmin):
    """List code snippets from conversations and messages."""

    list_display = ("beginning", "agent_link", "language", "came_from", "kept")
    list_filter = (("agent", AutocompleteSelectFilter),)
    text_fields = ("title", "code")
    fields = ("title", "agent", "language", "came_from", "created_at", "code_shown")

    @admin.display(description="about")
    def beginning(self, snippet: CodeSnippet) -> SafeString:
        """Show the title, or the beginning of the code."""
        return cells.clipped(snippet.title or snippet.code)

    came_from = columns.origin("source", "source")
    kept = columns.moment("created_at", "kept")

    @admin.display(description="code")
    def code_shown(self, snippet: CodeSnippet) -> SafeString:
        """Show the code."""
        return cells.block(snippet.code)
