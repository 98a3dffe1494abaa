"""Pages of documents, and of the categories of documents that agents find."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import reverse

from apps.console import cells, columns
from apps.console.access import actor_of
from apps.console.add_pages import AddPageAdmin
from apps.console.listing import AgentRowsAdmin, FoundByIdAdmin, PageAdmin, filters
from apps.console.live import BUSY_REFRESH_S
from apps.console.operator.documents import (
    NewDocumentsForm,
    added_as_json,
    is_under_way,
    known_categories,
    read_document,
)
from apps.console.views import console_page
from apps.knowledge.models import AgentKnowledge, Document
from arbor.ids import read_id
from arbor.knowledge.values import IndexingStatus

_JSON = "application/json"
#: The tones of the badges of statuses.
_TONES = {"published": "good", "draft": "calm", "withdrawn": "warn"}
_INDEXING_TONES = {"indexed": "good", "failed": "bad", "indexing": "busy", "pending": "calm"}


def _progress(document: Document) -> object:
    if document.indexing == IndexingStatus.FAILED or not document.passages:
        return "–"
    return cells.meter(document.embedded + document.refused, document.passages)


@admin.register(Document)
class DocumentAdmin(AddPageAdmin, PageAdmin, FoundByIdAdmin):
    """List the documents of a tenant with their status and progress."""

    page_template = "console/document.html"
    live_template = "console/parts/live_document.html"
    is_live = True
    list_display = (
        "title_shown",
        "status_shown",
        "category",
        "kind",
        "indexing_shown",
        "progress",
        "problem",
        "changed",
    )
    list_filter = filters("status", "indexing", "kind")
    ordering = ("-updated_at", "-id")
    when_empty = "Documents that you add are shared by all agents: policies, manuals, notes."
    when_empty_command = "arbor document add --help"
    search_fields = ("name", "title")

    @property
    def search_help_text(self) -> str:
        """Return the hint below the search box."""
        return "An id, or a part of the name or title"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Search by id, or by a part of the name or title: a tenant has thousands of documents, not millions."""
        term = search_term.strip()
        if read_id(term) is not None:
            return super().get_search_results(request, queryset, term)
        matches = queryset.filter(name__icontains=term) | queryset.filter(title__icontains=term)
        return matches if term else queryset, False

    def live_interval(self, row: Document) -> int:
        """Return the seconds between two updates while the document is being indexed; 0 afterwards."""
        return BUSY_REFRESH_S if is_under_way(row) else 0

    read_page = staticmethod(read_document)
    read_parts = staticmethod(read_document)

    def add_page(self, request: HttpRequest) -> HttpResponse:
        """Add files, and enqueue their indexing; answer as JSON where a script sends them one by one."""
        posted = request.method == "POST"
        form = NewDocumentsForm(request.POST if posted else None, request.FILES if posted else None)
        added = form.add(actor=actor_of(request)) if form.is_valid() else []
        if posted and request.headers.get("Accept") == _JSON:
            return JsonResponse(added_as_json(added, form), status=422 if form.errors else 201)
        if added and not form.errors:
            return HttpResponseRedirect(reverse("admin:knowledge_document_changelist"))
        return console_page(
            request,
            "console/document_new.html",
            title="New documents",
            opts=self.opts,
            form=form,
            added=added,
            categories=known_categories(),
        )

    title_shown = columns.cell("title", lambda document: cells.clipped(document.title, 80))
    status_shown = columns.cell(
        "status", lambda document: cells.badge(document.status, _TONES[document.status])
    )
    indexing_shown = columns.cell(
        "indexing", lambda document: cells.badge(document.indexing, _INDEXING_TONES[document.indexing])
    )
    progress = columns.cell("passages", _progress)
    problem = columns.error("error")
    changed = columns.moment("updated_at", "changed")


@admin.register(AgentKnowledge)
class AgentKnowledgeAdmin(AgentRowsAdmin):
    """List the agents that find documents of some categories only."""

    list_display = ("agent_link", "categories_shown", "changed", "changed_by")
    fields = ("agent_link", "categories_shown", "changed", "changed_by")
    ordering = ("agent_id",)
    when_empty = "All agents find all published documents."
    when_empty_command = "arbor document categories --help"

    categories_shown = columns.lines("categories", "categories")
    changed = columns.moment("changed_at", "changed")
