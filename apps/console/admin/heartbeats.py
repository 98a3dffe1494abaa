"""Pages of heartbeats, percepts, heartbeat schedules and processes."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString

from apps.agents.models import HeartbeatSchedule, Percept, ScheduleState
from apps.agents.services.sealed_percepts import CLOSED
from apps.console import cells, columns
from apps.console.access import access_of, is_platform_operator
from apps.console.listing import (
    AgentRowsAdmin,
    ConsoleAdmin,
    FoundByAgentAdmin,
    OwnPageAdmin,
    filters,
    filters_by_agent,
)
from apps.console.live import BUSY_REFRESH_S
from apps.console.pages.heartbeat import read_heartbeat
from apps.heartbeats.models import Heartbeat, HeartbeatStatus, Process
from apps.heartbeats.services.processes import SILENT_AFTER


@admin.register(Heartbeat)
class HeartbeatAdmin(OwnPageAdmin):
    """List heartbeats, and show each with its trace."""

    list_display = (
        "began",
        "agent_link",
        "heartbeat_number",
        "status_badge",
        "mode_shown",
        "story",
        "energy",
        "own_time",
        "model",
    )
    list_filter = filters_by_agent("status", "trigger")
    text_fields = ("narrative", "reason")
    ordering = ("-started_at",)
    indexed_lookups = frozenset(
        ("status__exact", status.value) for status in HeartbeatStatus if status != HeartbeatStatus.DONE
    )
    page_template = "console/heartbeat.html"
    live_template = "console/parts/live_heartbeat.html"
    is_live = True
    list_before_template = "console/parts/live_bar.html"

    read_page = staticmethod(read_heartbeat)
    read_parts = staticmethod(read_heartbeat)

    deferred_in_list = ("checkpoint", "situation", "reasoning", "actions", "goal_changes", "dropped")

    def live_interval(self, row: Heartbeat) -> int:
        """Return the seconds between two updates: none once the heartbeat has ended."""
        return 0 if row.ended_at else BUSY_REFRESH_S

    began = columns.moment("started_at", "began")
    mode_shown = columns.words("mode", "mode")
    heartbeat_number = columns.cell(
        "#", lambda heartbeat: f"{heartbeat.number:,}" if heartbeat.number else "–"
    )
    story = columns.cell(
        "what happened", lambda heartbeat: cells.clipped(heartbeat.narrative or heartbeat.reason or "–", 90)
    )
    energy = columns.cell(
        "energy",
        lambda heartbeat: cells.spending(heartbeat.energy_start, heartbeat.energy_end, heartbeat.energy_unit),
    )
    own_time = columns.cell("own time", lambda heartbeat: cells.milliseconds(heartbeat.own_ms))


def _content(percept: Percept) -> str:
    if percept.sealed is None:
        return percept.content
    return CLOSED if percept.heartbeat_id is None else "(refused unopened)"


@admin.register(Percept)
class PerceptAdmin(AgentRowsAdmin):
    """List percepts."""

    list_display = ("beginning", "agent_link", "kind_shown", "arrived", "received")
    list_filter = filters_by_agent("kind")
    text_fields = ("content",)
    fields = ("content_shown", "detail_shown", "agent", "peer", "kind_shown", "urgent", "at", "heartbeat")

    detail_shown = columns.json("detail", "detail")
    beginning = columns.cell("content", lambda percept: cells.clipped(_content(percept)))
    content_shown = columns.cell("content", lambda percept: _content(percept))
    kind_shown = columns.words("kind", "kind")
    arrived = columns.moment("at", "arrived")

    @admin.display(description="taken in")
    def received(self, percept: Percept) -> SafeString:
        """Link the heartbeat that took in the percept."""
        if percept.heartbeat_id is None:
            return cells.badge("waiting")
        return cells.link("heartbeats_heartbeat", percept.heartbeat_id, "by a heartbeat")


@admin.register(HeartbeatSchedule)
class HeartbeatScheduleAdmin(FoundByAgentAdmin):
    """List heartbeat schedules."""

    list_display = ("agent_link", "state_badge", "next_due", "interval", "lease", "attempts", "problem")
    list_filter = filters("state")
    ordering = ("next_due_at", "agent_id")
    # Each agent has one row.
    filters_latest = False
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

    state_badge = columns.badge("state", "state")
    next_due = columns.cell(
        "next due",
        lambda schedule: cells.due(schedule.due_at) if schedule.state != ScheduleState.OFF else "–",
    )
    interval = columns.cell("every", lambda schedule: cells.span(schedule.interval_s))
    lease = columns.cell(
        "lease until", lambda schedule: cells.when(schedule.lease_until) if schedule.lease_until else "–"
    )
    problem = columns.error("last_error")


@admin.register(Process)
class ProcessAdmin(ConsoleAdmin):
    """List the processes of the installation, by their own reports."""

    list_display = ("name", "state", "kind", "queues", "pool", "concurrency", "received", "started")
    ordering = ("kind", "name")
    sortable_by = ()
    fields = ("name", "kind", "queues", "pool", "concurrency", "started_at", "seen_at")

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Allow members of the tenant, and superusers."""
        return access_of(request) is not None or is_platform_operator(request)

    @admin.display(description="state")
    def state(self, process: Process) -> SafeString:
        """Show whether the process reported lately."""
        alive = process.seen_at >= timezone.now() - SILENT_AFTER
        return cells.badge("alive", "good") if alive else cells.badge("unknown", "warn")

    received = columns.moment("seen_at", "last report")
    started = columns.moment("started_at", "started")
