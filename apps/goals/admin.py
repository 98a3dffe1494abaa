"""Goals, their notes and steps in the operator's console."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.admin import TabularInline
from unfold.contrib.filters.admin import AutocompleteSelectFilter, ChoicesDropdownFilter

from apps.console import cells
from apps.console.listing import AgentRowsAdmin, FoundByIdAdmin, NothingToEdit
from apps.goals.models import Goal, Intent, ProgressNote


class NoteInline(NothingToEdit, TabularInline):  # type: ignore[misc]
    """The notes of one goal."""

    model = ProgressNote
    fields = ("text", "at", "heartbeat_link")
    readonly_fields = fields
    ordering = ("-at",)
    per_page = 20
    show_title = False

    @admin.display(description="heartbeat")
    def heartbeat_link(self, note: ProgressNote) -> SafeString | str:
        """Name the heartbeat that wrote it."""
        return cells.link("heartbeats_heartbeat", note.heartbeat_id, "open") if note.heartbeat_id else "–"


class IntentInline(NothingToEdit, TabularInline):  # type: ignore[misc]
    """The steps towards one goal."""

    model = Intent
    fields = ("action", "description", "status", "attempts", "last_error", "created_at", "ended_at")
    readonly_fields = fields
    ordering = ("-id",)
    per_page = 20
    show_title = False


@admin.register(Goal)
class GoalAdmin(AgentRowsAdmin):
    """What agents want."""

    list_display = ("title", "agent_link", "state_badge", "layer", "source", "done", "touched")
    list_filter = (
        ("agent", AutocompleteSelectFilter),
        ("state", ChoicesDropdownFilter),
        ("layer", ChoicesDropdownFilter),
        ("source", ChoicesDropdownFilter),
    )
    text_fields = ("title", "description")
    inlines = (NoteInline, IntentInline)
    fieldsets = (
        (
            None,
            {"fields": ("title", "description", "agent", "parent", "state_badge", "layer", "source", "done")},
        ),
        ("Time", {"fields": ("created_at", "touched_at", "deadline", "completed_at", "abandoned_at")}),
        ("Trouble", {"fields": ("blocked_by", "abandonment_reason")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Goal]:
        """Read the agent's name in the same query."""
        goals: QuerySet[Goal] = super().get_queryset(request).select_related("parent")
        return goals.defer(*self.unread)

    @admin.display(description="state")
    def state_badge(self, goal: Goal) -> SafeString:
        """Show where it stands in the backlog."""
        return cells.badge(goal.state)

    @admin.display(description="done")
    def done(self, goal: Goal) -> SafeString:
        """Show how far it is."""
        return cells.meter(round(goal.fraction, 2), 1)

    @admin.display(description="touched")
    def touched(self, goal: Goal) -> SafeString:
        """Say when somebody last worked on it."""
        return cells.when(goal.touched_at)


@admin.register(ProgressNote)
class ProgressNoteAdmin(FoundByIdAdmin):
    """Notes on how goals are going."""

    list_display = ("beginning", "goal_link", "written")
    agent_path = "goal__agent"
    sortable_by = ()
    fields = ("text", "goal", "heartbeat_id", "at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[ProgressNote]:
        """Read the goal's title in the same query."""
        notes: QuerySet[ProgressNote] = super().get_queryset(request).select_related("goal")
        return notes

    @admin.display(description="note")
    def beginning(self, note: ProgressNote) -> SafeString:
        """Begin it."""
        return cells.clipped(note.text)

    @admin.display(description="goal")
    def goal_link(self, note: ProgressNote) -> SafeString:
        """Name its goal."""
        return cells.link("goals_goal", note.goal_id, note.goal.title)

    @admin.display(description="written")
    def written(self, note: ProgressNote) -> SafeString:
        """Say when it was written."""
        return cells.when(note.at)


@admin.register(Intent)
class IntentAdmin(AgentRowsAdmin):
    """Committed steps towards goals."""

    list_display = ("beginning", "action", "goal_link", "agent_link", "status_badge", "attempts", "made")
    list_filter = (("agent", AutocompleteSelectFilter), ("status", ChoicesDropdownFilter))
    text_fields = ("description",)
    fields = (
        "action",
        "description",
        "agent",
        "goal",
        "status",
        "attempts",
        "last_error",
        "created_at",
        "ended_at",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Intent]:
        """Read the names in the same query."""
        intents: QuerySet[Intent] = super().get_queryset(request).select_related("goal")
        return intents.defer(*self.unread)

    @admin.display(description="step")
    def beginning(self, intent: Intent) -> SafeString:
        """Begin it."""
        return cells.clipped(intent.description)

    @admin.display(description="goal")
    def goal_link(self, intent: Intent) -> SafeString:
        """Name its goal."""
        return cells.link("goals_goal", intent.goal_id, intent.goal.title)

    @admin.display(description="made")
    def made(self, intent: Intent) -> SafeString:
        """Say when it was committed."""
        return cells.when(intent.created_at)
