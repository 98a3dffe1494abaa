"""Pages of model calls, ledger entries and daily usage."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.contrib.filters.admin import ChoicesDropdownFilter

from apps.calls.models import CallStatus, DailyUsage, ExternalCall, LedgerEntry, ProviderKey, TokenRatio
from apps.console import cells, columns
from apps.console.listing import AgentRowsAdmin, ConsoleAdmin, OwnPageAdmin, filters_by_agent, is_list
from apps.console.pages.call import read_call_page

#: The statuses of calls that ended with an error.
FAILED = frozenset((CallStatus.FAILED.value, CallStatus.RETRIED.value))


class StatusOfCall(ChoicesDropdownFilter):  # type: ignore[misc]
    """Filters calls by their status; failed calls by their error too, which has an index."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[ExternalCall]) -> QuerySet[ExternalCall]:
        """Return the calls with the chosen status."""
        calls: QuerySet[ExternalCall] = super().queryset(request, queryset)
        return calls.exclude(error_kind="") if FAILED.intersection(self.lookup_val or ()) else calls


@admin.register(ExternalCall)
class ExternalCallAdmin(OwnPageAdmin):
    """List requests to models, and show each with its prompt and reply."""

    list_display = (
        "requested",
        "agent_link",
        "purpose",
        "model",
        "status_badge",
        "took",
        "attempts",
        "problem",
    )
    list_filter = (*filters_by_agent(), ("status", StatusOfCall))
    indexed_lookups = frozenset(("status__exact", status) for status in FAILED)
    page_template = "console/call.html"

    read_page = staticmethod(read_call_page)

    deferred_in_list = ("request", "sections", "reply")

    requested = columns.moment("requested_at", "asked")
    took = columns.cell(
        "duration", lambda call: cells.duration(call.ended_at - call.requested_at if call.ended_at else None)
    )
    problem = columns.cell(
        "error", lambda call: cells.clipped(f"{call.error_kind} {call.error}".strip() or "–", 70)
    )


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
        "estimated_tokens",
        "output_tokens",
        "cached_tokens",
        "cost",
        "latency",
        "tries",
    )
    list_filter = filters_by_agent()
    ordering = ("-at",)
    fields = (
        "agent",
        "call",
        "purpose",
        "provider",
        "model",
        "input_tokens",
        "estimated_tokens",
        "output_tokens",
        "cached_tokens",
        "cost",
        "latency",
        "tries",
        "at",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[LedgerEntry]:
        """Join the call without its large columns."""
        entries: QuerySet[LedgerEntry] = super().get_queryset(request)
        if not is_list(request):
            entries = entries.select_related("agent", "call").defer(
                "call__request", "call__sections", "call__reply", *self.deferred
            )
        return entries

    written = columns.moment("at", "when")
    cost = columns.dollars("cost_usd", "cost")
    latency = columns.cell("latency", lambda entry: cells.milliseconds(entry.latency_ms))


@admin.register(DailyUsage)
class DailyUsageAdmin(AgentRowsAdmin):
    """List the heartbeats, calls, tokens and costs by agent and day (UTC)."""

    list_display = ("day", "agent_link", "heartbeat_count", "calls", "token_count", "cost", "level_badge")
    list_filter = filters_by_agent()
    fields = ("agent", "day", "heartbeat_count", "calls", "token_count", "cost", "level")

    heartbeat_count = columns.number("heartbeats", "heartbeats")
    token_count = columns.number("tokens", "tokens")

    cost = columns.dollars("cost_usd", "cost")
    level_badge = columns.badge("level", "budget")


@admin.register(TokenRatio)
class TokenRatioAdmin(ConsoleAdmin):
    """List the ratios of tokens that models count to estimated ones, by which prompts are fitted."""

    list_display = ("model", "tokens", "calls", "learnt")
    ordering = ("model",)
    fields = ("model", "ratio", "calls", "learnt_at")

    tokens = columns.cell("ratio", lambda row: f"{row.ratio:.2f}")
    learnt = columns.moment("learnt_at", "learnt")


@admin.register(ProviderKey)
class ProviderKeyAdmin(ConsoleAdmin):
    """List the tenant's keys of providers. The page Models enters, tries and removes them."""

    list_display = ("provider", "key", "base_url", "checked_at", "entered_by", "entered_at")
    fields = (
        "provider",
        "key",
        "base_url",
        "listed_shown",
        "checked_at",
        "entered_by",
        "entered_at",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[ProviderKey]:
        """Read without the sealed keys."""
        rows: QuerySet[ProviderKey] = super().get_queryset(request)
        return rows.defer("sealed_key")

    key = columns.cell("key ends with", lambda row: row.key_end or "–")
    listed_shown = columns.lines("listed", "listed")
