"""Pages of templates."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from apps.agents.models import BuiltinTemplate, Template
from apps.console import cells, columns
from apps.console.listing import ConsoleAdmin


class _TemplateAdmin(ConsoleAdmin):
    list_display = ("name", "version", "summary", "updated_at")
    search_fields = ("name",)
    ordering = ("name",)
    fields = ("name", "version", "description", "updated_at", "content_hash", "source")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Leave out what only its own page shows."""
        return super().get_queryset(request).defer("spec")  # type: ignore[no-any-return]

    summary = columns.beginning("description", "description")

    @admin.display(description="file")
    def source(self, template: Template | BuiltinTemplate) -> SafeString:
        """Show the file it was read from."""
        return cells.block(template.source_text)


@admin.register(Template)
class TemplateAdmin(_TemplateAdmin):
    """The tenant's own templates."""


@admin.register(BuiltinTemplate)
class BuiltinTemplateAdmin(_TemplateAdmin):
    """The templates that come with Arbor."""
