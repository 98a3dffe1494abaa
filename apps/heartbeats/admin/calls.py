"""Requests to models, and what they cost."""

from __future__ import annotations

import json

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter, ChoicesDropdownFilter

from apps.console import cells, columns
from apps.console.listing import AgentRowsAdmin, is_list
from apps.heartbeats.models import ExternalCall, LedgerEntry


@admin.register(ExternalCall)
class ExternalCallAdmin(AgentRowsAdmin):
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
    fieldsets = (
        (None, {"fields": ("agent", "asked_by", "purpose", "model", "status", "attempts", "failures")}),
        ("Time", {"fields": ("requested_at", "started_at", "ended_at", "due_at", "lease_until")}),
        ("Answer", {"fields": ("reply_shown", "dropped", "error_kind", "error")}),
        ("Question", {"fields": ("request_shown",)}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[ExternalCall]:
        """Leave the wide parts to the page."""
        calls: QuerySet[ExternalCall] = super().get_queryset(request)
        if is_list(request):
            calls = calls.defer("request", "sections", "reply", *self.unread)
        return calls

    @admin.display(description="asked by")
    def asked_by(self, call: ExternalCall) -> SafeString:
        """Link the heartbeat that it belongs to, or say what maintenance asks about."""
        if call.heartbeat_id is not None:
            return cells.link("heartbeats_heartbeat", call.heartbeat_id, "a heartbeat")
        if "chat" in call.subject:
            return cells.link("contacts_chatsession", call.subject["chat"], "a conversation")
        episode = call.subject.get("episode")
        if episode:
            return cells.link("memories_episode", episode, "maintenance, about an episode")
        return cells.clipped(f"maintenance, about {len(call.subject.get('memories', ()))} memories", 70)

    requested = columns.moment("requested_at", "asked")

    @admin.display(description="took")
    def took(self, call: ExternalCall) -> str:
        """Show how long it took."""
        return cells.duration(call.ended_at - call.requested_at if call.ended_at else None)

    @admin.display(description="trouble")
    def trouble(self, call: ExternalCall) -> SafeString:
        """Begin what went wrong."""
        return cells.clipped(f"{call.error_kind} {call.error}".strip() or "–", 70)

    @admin.display(description="reply")
    def reply_shown(self, call: ExternalCall) -> SafeString:
        """Show the reply as it came."""
        return cells.block(call.reply or "none")

    @admin.display(description="request")
    def request_shown(self, call: ExternalCall) -> SafeString:
        """Show the request as sent."""
        return cells.block(json.dumps(call.request, ensure_ascii=False, indent=2))


@admin.register(LedgerEntry)
class LedgerEntryAdmin(AgentRowsAdmin):
    """What model calls cost."""

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
