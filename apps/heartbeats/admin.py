"""Heartbeats and all that belongs to them in the operator's console."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter, ChoicesDropdownFilter

from apps.console import cells
from apps.console.access import access_of, is_platform_operator
from apps.console.heartbeat_page import read_heartbeat
from apps.console.listing import AgentRowsAdmin, ConsoleAdmin
from apps.heartbeats.models import (
    ExternalCall,
    Heartbeat,
    HeartbeatSchedule,
    LedgerEntry,
    Percept,
    Process,
    ScheduleState,
    Step,
)
from apps.heartbeats.services.processes import SILENT_AFTER

#: Of an agent, a list names only this.
_AGENT_UNSHOWN = ("agent__character", "agent__genome", "agent__pipeline")


class OfAgents(AgentRowsAdmin):
    """Rows whose agent is named in the list."""

    sortable_by = ()

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Read the agent's name in the same query."""
        rows: QuerySet[Any] = super().get_queryset(request).select_related("agent")
        return rows.defer(*_AGENT_UNSHOWN)

    @admin.display(description="agent")
    def agent_link(self, row: Any) -> SafeString:
        """Name whose it is."""
        return cells.link("agents_agent", row.agent_id, row.agent.name)

    @admin.display(description="status")
    def status_badge(self, row: Any) -> SafeString:
        """Show how far it has come."""
        return cells.badge(row.status)


@admin.register(Heartbeat)
class HeartbeatAdmin(OfAgents):
    """Heartbeats: a list, and a page with the trace of each."""

    list_display = (
        "began",
        "agent_link",
        "beat_number",
        "status_badge",
        "mode",
        "story",
        "energy",
        "own_time",
        "model",
    )
    list_filter = (
        ("agent", AutocompleteSelectFilter),
        ("status", ChoicesDropdownFilter),
        ("trigger", ChoicesDropdownFilter),
    )
    text_fields = ("narrative", "reason")
    ordering = ("-started_at",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Heartbeat]:
        """Leave the wide parts to the page."""
        beats: QuerySet[Heartbeat] = super().get_queryset(request)
        if request.resolver_match and str(request.resolver_match.url_name).endswith("_changelist"):
            beats = beats.defer(
                "checkpoint", "situation", "reasoning", "actions", "goal_changes", "dropped", *_AGENT_UNSHOWN
            )
        return beats

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show the heartbeat's own page."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        beat = self.get_object(request, object_id)
        if beat is None:
            missing: HttpResponse = self._get_obj_does_not_exist_redirect(request, self.opts, object_id)
            return missing
        context = {
            **self.admin_site.each_context(request),
            "title": str(beat),
            "opts": self.opts,
            "original": beat,
            "page": read_heartbeat(beat),
            **(extra_context or {}),
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, "console/heartbeat.html", context)

    @admin.display(description="began")
    def began(self, beat: Heartbeat) -> SafeString:
        """Say when it began."""
        return cells.when(beat.started_at)

    @admin.display(description="#")
    def beat_number(self, beat: Heartbeat) -> str:
        """Number it."""
        return f"{beat.number:,}" if beat.number else "–"

    @admin.display(description="what happened")
    def story(self, beat: Heartbeat) -> SafeString:
        """Begin its story, or why there is none."""
        return cells.clipped(beat.narrative or beat.reason or "–", 90)

    @admin.display(description="energy")
    def energy(self, beat: Heartbeat) -> str:
        """Show what it had and what it left."""
        both = (beat.energy_start, beat.energy_end)
        return " → ".join("–" if value is None else f"{value:g}" for value in both)

    @admin.display(description="own time")
    def own_time(self, beat: Heartbeat) -> str:
        """Show the time in Arbor's own code."""
        return cells.milliseconds(beat.own_ms)


@admin.register(Step)
class StepAdmin(AgentRowsAdmin):
    """Nodes that heartbeats passed; each heartbeat's page draws its own."""

    list_display = ("node", "heartbeat_link", "handler", "phase", "outcome_badge", "took", "started_at")
    list_filter = (("heartbeat", AutocompleteSelectFilter),)
    agent_path = "heartbeat"
    sortable_by = ()
    fields = (
        "heartbeat",
        "sequence",
        "node",
        "handler",
        "phase",
        "outcome",
        "changed",
        "started_at",
        "duration_ms",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Step]:
        """Read of the heartbeat what names it."""
        steps: QuerySet[Step] = super().get_queryset(request).select_related("heartbeat")
        return steps.defer(
            *(f"heartbeat__{name}" for name in ("checkpoint", "situation", "reasoning", "actions", "dropped"))
        )

    @admin.display(description="heartbeat")
    def heartbeat_link(self, step: Step) -> SafeString:
        """Name its heartbeat."""
        return cells.link("heartbeats_heartbeat", step.heartbeat_id, step.heartbeat)

    @admin.display(description="outcome")
    def outcome_badge(self, step: Step) -> SafeString:
        """Show how it ended."""
        return cells.badge(step.outcome)

    @admin.display(description="took")
    def took(self, step: Step) -> str:
        """Show how long it took."""
        return cells.milliseconds(step.duration_ms)


@admin.register(ExternalCall)
class ExternalCallAdmin(OfAgents):
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
        (None, {"fields": ("agent", "heartbeat", "purpose", "model", "status", "attempts")}),
        ("Time", {"fields": ("requested_at", "started_at", "ended_at", "lease_until")}),
        ("Answer", {"fields": ("reply_shown", "error_kind", "error")}),
        ("Question", {"fields": ("request_shown",)}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[ExternalCall]:
        """Leave the wide parts to the page."""
        calls: QuerySet[ExternalCall] = super().get_queryset(request)
        if request.resolver_match and str(request.resolver_match.url_name).endswith("_changelist"):
            calls = calls.defer("request", "sections", "reply", *_AGENT_UNSHOWN)
        return calls

    @admin.display(description="asked")
    def requested(self, call: ExternalCall) -> SafeString:
        """Say when it was asked for."""
        return cells.when(call.requested_at)

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
class LedgerEntryAdmin(OfAgents):
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
        if request.resolver_match and str(request.resolver_match.url_name).endswith("_change"):
            entries = entries.select_related("agent", "call").defer(
                "call__request", "call__sections", "call__reply", *_AGENT_UNSHOWN
            )
        return entries

    @admin.display(description="when")
    def written(self, entry: LedgerEntry) -> SafeString:
        """Say when it was paid."""
        return cells.when(entry.at)

    @admin.display(description="cost")
    def cost(self, entry: LedgerEntry) -> str:
        """Show the price, where it is known."""
        return "unknown" if entry.cost_usd is None else f"${entry.cost_usd:.5f}"

    @admin.display(description="latency")
    def latency(self, entry: LedgerEntry) -> str:
        """Show how long the model took."""
        return cells.milliseconds(entry.latency_ms)


@admin.register(Percept)
class PerceptAdmin(OfAgents):
    """What reached agents between heartbeats."""

    list_display = ("beginning", "agent_link", "kind", "arrived", "heard")
    list_filter = (("agent", AutocompleteSelectFilter), ("kind", ChoicesDropdownFilter))
    text_fields = ("content",)
    fields = ("content", "agent", "kind", "at", "heartbeat")

    @admin.display(description="content")
    def beginning(self, percept: Percept) -> SafeString:
        """Begin it."""
        return cells.clipped(percept.content)

    @admin.display(description="arrived")
    def arrived(self, percept: Percept) -> SafeString:
        """Say when it came."""
        return cells.when(percept.at)

    @admin.display(description="taken in")
    def heard(self, percept: Percept) -> SafeString:
        """Name the heartbeat that took it in."""
        if percept.heartbeat_id is None:
            return cells.badge("waiting")
        return cells.link("heartbeats_heartbeat", percept.heartbeat_id, "by a heartbeat")


@admin.register(HeartbeatSchedule)
class HeartbeatScheduleAdmin(OfAgents):
    """When agents beat next."""

    list_display = ("agent_link", "state_badge", "next_due", "interval", "lease", "attempts", "trouble")
    list_display_links = None
    list_filter = (("state", ChoicesDropdownFilter),)
    search_fields = ("agent__name",)
    ordering = ("next_due_at", "agent_id")
    fields = (
        "agent",
        "state",
        "next_due_at",
        "interval_s",
        "slot_at",
        "epoch",
        "lease_until",
        "attempts",
        "last_error",
    )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Search by the agent's name."""
        term = search_term.strip()
        return (queryset.filter(agent__name__icontains=term) if term else queryset), False

    @property
    def search_help_text(self) -> str:
        """Say what can be searched for."""
        return "An agent's name"

    @admin.display(description="state")
    def state_badge(self, schedule: HeartbeatSchedule) -> SafeString:
        """Show where it stands in the dispatcher's eyes."""
        return cells.badge(schedule.state)

    @admin.display(description="next due")
    def next_due(self, schedule: HeartbeatSchedule) -> SafeString | str:
        """Say when it is due."""
        return cells.when(schedule.next_due_at) if schedule.state != ScheduleState.OFF else "–"

    @admin.display(description="every")
    def interval(self, schedule: HeartbeatSchedule) -> str:
        """Show its interval."""
        return cells.span(schedule.interval_s)

    @admin.display(description="lease until")
    def lease(self, schedule: HeartbeatSchedule) -> SafeString | str:
        """Say until when a worker holds it."""
        return cells.when(schedule.lease_until) if schedule.lease_until else "–"

    @admin.display(description="trouble")
    def trouble(self, schedule: HeartbeatSchedule) -> SafeString:
        """Begin what went wrong."""
        return cells.clipped(schedule.last_error or "–", 70)


@admin.register(Process)
class ProcessAdmin(ConsoleAdmin):
    """The platform's processes, by their own word: silence is shown as silence."""

    list_display = ("name", "state", "kind", "queues", "pool", "concurrency", "heard", "started")
    ordering = ("kind", "name")
    sortable_by = ()
    fields = ("name", "kind", "queues", "pool", "concurrency", "started_at", "seen_at")

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Let every member look, and those who run the installation."""
        return access_of(request) is not None or is_platform_operator(request)

    @admin.display(description="state")
    def state(self, process: Process) -> SafeString:
        """Show whether it was heard of lately."""
        alive = process.seen_at >= timezone.now() - SILENT_AFTER
        return cells.badge("alive", "good") if alive else cells.badge("unknown", "warn")

    @admin.display(description="heard of")
    def heard(self, process: Process) -> SafeString:
        """Say when it last spoke."""
        return cells.when(process.seen_at)

    @admin.display(description="started")
    def started(self, process: Process) -> SafeString:
        """Say since when it runs."""
        return cells.when(process.started_at)
