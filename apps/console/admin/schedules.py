"""Pages of heartbeat schedules and processes."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import ChoicesDropdownFilter

from apps.agents.models import HeartbeatSchedule, ScheduleState
from apps.console import cells, columns
from apps.console.access import access_of, is_platform_operator
from apps.console.listing import AgentRowsAdmin, ConsoleAdmin
from apps.heartbeats.models import Process
from apps.heartbeats.services.processes import SILENT_AFTER


@admin.register(HeartbeatSchedule)
class HeartbeatScheduleAdmin(AgentRowsAdmin):
    """List heartbeat schedules."""

    list_display = ("agent_link", "state_badge", "next_due", "interval", "lease", "attempts", "trouble")
    list_display_links = None
    list_filter = (("state", ChoicesDropdownFilter),)
    search_fields = ("agent__name",)
    ordering = ("next_due_at", "agent_id")
    fields = (
        "agent",
        "state",
        "next_due",
        "paused_until",
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
        """Show the schedule's state."""
        return cells.badge(schedule.state)

    @admin.display(description="next due")
    def next_due(self, schedule: HeartbeatSchedule) -> SafeString | str:
        """Say when it is due."""
        return cells.due(schedule.due_at) if schedule.state != ScheduleState.OFF else "–"

    @admin.display(description="every")
    def interval(self, schedule: HeartbeatSchedule) -> str:
        """Show its interval."""
        return cells.span(schedule.interval_s)

    @admin.display(description="lease until")
    def lease(self, schedule: HeartbeatSchedule) -> SafeString | str:
        """Show the end of the lease."""
        return cells.when(schedule.lease_until) if schedule.lease_until else "–"

    @admin.display(description="trouble")
    def trouble(self, schedule: HeartbeatSchedule) -> SafeString:
        """Show the beginning of the error."""
        return cells.clipped(schedule.last_error or "–", 70)


@admin.register(Process)
class ProcessAdmin(ConsoleAdmin):
    """List the processes of the platform by their own reports; a silent one is shown as silent."""

    list_display = ("name", "state", "kind", "queues", "pool", "concurrency", "heard", "started")
    ordering = ("kind", "name")
    sortable_by = ()
    fields = ("name", "kind", "queues", "pool", "concurrency", "started_at", "seen_at")

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Let every member look, and those who run the installation."""
        return access_of(request) is not None or is_platform_operator(request)

    @admin.display(description="state")
    def state(self, process: Process) -> SafeString:
        """Show whether the process reported lately."""
        alive = process.seen_at >= timezone.now() - SILENT_AFTER
        return cells.badge("alive", "good") if alive else cells.badge("unknown", "warn")

    heard = columns.moment("seen_at", "heard of")
    started = columns.moment("started_at", "started")
