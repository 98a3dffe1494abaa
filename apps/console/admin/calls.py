"""Pages of model calls and ledger entries."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter, ChoicesDropdownFilter

from apps.calls.models import ExternalCall, LedgerEntry
from apps.console import cells, columns
from apps.console.listing import AgentRowsAdmin, OwnPageAdmin, is_list
from apps.console.pages.call import CallPage, read_call_page


@admin.register(ExternalCall)
class ExternalCallAdmin(OwnPageAdmin):
    """Requests to models."""

    list_display = (
        "requested",
        "agent_link",
        "purpose",
        "model",
        "status_badge",
        "took",
        "attempts",
        "trouble",
    )
    list_filter = (("agent", AutocompleteSelectFilter), ("status", ChoicesDropdownFilter))
    page_template = "console/call.html"

    def read_page(self, row: ExternalCall) -> CallPage:
        """Read what its page shows."""
        return read_call_page(row)

    def get_queryset(self, request: HttpRequest) -> QuerySet[ExternalCall]:
        """Leave the wide parts to the page."""
        calls: QuerySet[ExternalCall] = super().get_queryset(request)
        if is_list(request):
            calls = calls.defer("request", "sections", "reply", *self.unread)
        return calls

    requested = columns.moment("requested_at", "asked")

    @admin.display(description="took")
    def took(self, call: ExternalCall) -> str:
        """Show how long it took."""
        return cells.duration(call.ended_at - call.requested_at if call.ended_at else None)

    @admin.display(description="trouble")
    def trouble(self, call: ExternalCall) -> SafeString:
        """Show the beginning of the error."""
        return cells.clipped(f"{call.error_kind} {call.error}".strip() or "–", 70)


@admin.register(LedgerEntry)
class LedgerEntryAdmin(AgentRowsAdmin):
    """List the costs of model calls."""

    list_display = (
        "written",
        "agent_link",
        "purpose",
        "provider",
        "model",
        "input_tokens",
        "output_tokens",
        "cached_tokens",
        "cost",
        "latency",
        "tries",
    )
    list_filter = (("agent", AutocompleteSelectFilter),)
    ordering = ("-at",)
    fields = (
        "agent",
        "call",
        "purpose",
        "provider",
        "model",
        "input_tokens",
        "output_tokens",
        "cached_tokens",
        "cost_usd",
        "latency_ms",
        "tries",
        "at",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[LedgerEntry]:
        """Read of the call what names it."""
        entries: QuerySet[LedgerEntry] = super().get_queryset(request)
        if not is_list(request):
            entries = entries.select_related("agent", "call").defer(
                "call__request", "call__sections", "call__reply", *self.unread
            )
        return entries

    written = columns.moment("at", "when")

    @admin.display(description="cost")
    def cost(self, entry: LedgerEntry) -> str:
        """Show the price, where it is known."""
        return "unknown" if entry.cost_usd is None else f"${entry.cost_usd:.5f}"

    @admin.display(description="latency")
    def latency(self, entry: LedgerEntry) -> str:
        """Show how long the model took."""
        return cells.milliseconds(entry.latency_ms)
