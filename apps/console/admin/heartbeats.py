"""Pages of heartbeats and percepts."""

from __future__ import annotations

import json

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter, ChoicesDropdownFilter

from apps.agents.models import Percept
from apps.console import cells, columns
from apps.console.listing import AgentRowsAdmin, OwnPageAdmin, is_list
from apps.console.pages.heartbeat import HeartbeatPage, read_heartbeat
from apps.heartbeats.models import Heartbeat


@admin.register(Heartbeat)
class HeartbeatAdmin(OwnPageAdmin):
    """Heartbeats: a list, and a page with the trace of each."""

    list_display = (
        "began",
        "agent_link",
        "beat_number",
        "status_badge",
        "mode_shown",
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
    page_template = "console/heartbeat.html"

    def read_page(self, row: Heartbeat) -> HeartbeatPage:
        """Read what its page shows."""
        return read_heartbeat(row)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Heartbeat]:
        """Leave the wide parts to the page."""
        beats: QuerySet[Heartbeat] = super().get_queryset(request)
        if is_list(request):
            beats = beats.defer(
                "checkpoint", "situation", "reasoning", "actions", "goal_changes", "dropped", *self.unread
            )
        return beats

    began = columns.moment("started_at", "began")
    mode_shown = columns.words("mode", "mode")

    @admin.display(description="#")
    def beat_number(self, beat: Heartbeat) -> str:
        """Number it."""
        return f"{beat.number:,}" if beat.number else "–"

    @admin.display(description="what happened")
    def story(self, beat: Heartbeat) -> SafeString:
        """Show the beginning of the narrative, or the reason why there is none."""
        return cells.clipped(beat.narrative or beat.reason or "–", 90)

    @admin.display(description="energy")
    def energy(self, beat: Heartbeat) -> str:
        """Show what it had and what it left."""
        return cells.spending(beat.energy_start, beat.energy_end, beat.energy_unit)

    @admin.display(description="own time")
    def own_time(self, beat: Heartbeat) -> str:
        """Show the time in Arbor's own code."""
        return cells.milliseconds(beat.own_ms)


@admin.register(Percept)
class PerceptAdmin(AgentRowsAdmin):
    """List percepts."""

    list_display = ("beginning", "agent_link", "kind_shown", "arrived", "heard")
    list_filter = (("agent", AutocompleteSelectFilter), ("kind", ChoicesDropdownFilter))
    text_fields = ("content",)
    fields = ("content", "detail_shown", "agent", "peer", "kind_shown", "urgent", "at", "heartbeat")

    @admin.display(description="detail")
    def detail_shown(self, percept: Percept) -> SafeString:
        """Show what goes with it, as JSON."""
        return cells.block(json.dumps(percept.detail, ensure_ascii=False, indent=2))

    beginning = columns.beginning("content", "content")
    kind_shown = columns.words("kind", "kind")
    arrived = columns.moment("at", "arrived")

    @admin.display(description="taken in")
    def heard(self, percept: Percept) -> SafeString:
        """Link the heartbeat that took the percept in."""
        if percept.heartbeat_id is None:
            return cells.badge("waiting")
        return cells.link("heartbeats_heartbeat", percept.heartbeat_id, "by a heartbeat")
