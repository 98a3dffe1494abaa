"""Pages of goals, progress notes and intents."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter, ChoicesDropdownFilter

from apps.console import cells, columns
from apps.console.admin.goal_inlines import (
    IntentInline,
    MemoryInline,
    NoteInline,
    PartInline,
    PlanInline,
    SatisfactionInline,
)
from apps.console.listing import AgentRowsAdmin, FoundByIdAdmin
from apps.goals.models import Goal, Intent, ProgressNote


@admin.register(Goal)
class GoalAdmin(AgentRowsAdmin):
    """List agents' goals."""

    list_display = ("title", "agent_link", "state_badge", "layer", "source_shown", "done", "touched")
    list_filter = (
        ("agent", AutocompleteSelectFilter),
        ("state", ChoicesDropdownFilter),
        ("layer", ChoicesDropdownFilter),
        ("source", ChoicesDropdownFilter),
    )
    text_fields = ("title", "description")
    inlines = (PartInline, PlanInline, IntentInline, NoteInline, MemoryInline, SatisfactionInline)
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "title",
                    "description",
                    "agent",
                    "parent",
                    "state_badge",
                    "layer",
                    "source_shown",
                    "rule",
                    "done",
                    "expected_reward",
                    "emotional_valence",
                    "effort",
                )
            },
        ),
        ("Time", {"fields": ("created_at", "touched_at", "deadline", "completed_at", "abandoned_at")}),
        ("Trouble", {"fields": ("blocked_by", "blocked_by_goal", "abandonment_reason")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Goal]:
        """Read the agent's name in the same query."""
        goals: QuerySet[Goal] = super().get_queryset(request).select_related("parent", "blocked_by_goal")
        return goals.defer(*self.unread)

    @admin.display(description="state")
    def state_badge(self, goal: Goal) -> SafeString:
        """Show the state."""
        return cells.badge(goal.state)

    done = columns.share("fraction", "done")
    source_shown = columns.words("source", "source")
    touched = columns.moment("touched_at", "touched")


@admin.register(ProgressNote)
class ProgressNoteAdmin(FoundByIdAdmin):
    """Notes on how goals are going."""

    list_display = ("beginning", "goal_link", "written")
    agent_path = "goal__agent"
    sortable_by = ()
    fields = ("text", "goal", "written_by", "at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[ProgressNote]:
        """Read the goal's title in the same query."""
        notes: QuerySet[ProgressNote] = super().get_queryset(request).select_related("goal")
        return notes

    beginning = columns.beginning("text", "note")

    @admin.display(description="goal")
    def goal_link(self, note: ProgressNote) -> SafeString:
        """Name its goal."""
        return cells.link("goals_goal", note.goal_id, note.goal.title)

    written = columns.moment("at", "written")
    written_by = columns.heartbeat("heartbeat_id", "written by")


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
        "ticks_used",
        "tick_limit",
        "step",
        "held_by",
        "locked_at",
        "created_at",
        "ended_at",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Intent]:
        """Read the names in the same query."""
        intents: QuerySet[Intent] = super().get_queryset(request).select_related("goal", "step")
        return intents.defer(*self.unread)

    beginning = columns.beginning("description", "step")

    @admin.display(description="goal")
    def goal_link(self, intent: Intent) -> SafeString:
        """Name its goal."""
        return cells.link("goals_goal", intent.goal_id, intent.goal.title)

    made = columns.moment("created_at", "made")
    held_by = columns.heartbeat("locked_by", "locked by")
