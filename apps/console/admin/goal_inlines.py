"""Tables below the page of a goal or plan."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from apps.console import cells
from apps.console.listing import NothingToEdit
from apps.console.paging import BoundedInline
from apps.goals.models import Goal, GoalMemoryLink, Intent, Plan, PlanStep, ProgressNote, Satisfaction

#: Characters shown of a text in a table.
BEGINNING = 100


class NoteInline(NothingToEdit, BoundedInline):
    """The notes of one goal."""

    model = ProgressNote
    fields = ("text", "at", "heartbeat_link")
    readonly_fields = fields
    ordering = ("-at",)

    @admin.display(description="heartbeat")
    def heartbeat_link(self, note: ProgressNote) -> SafeString | str:
        """Name the heartbeat that wrote it."""
        return cells.link("heartbeats_heartbeat", note.heartbeat_id, "open") if note.heartbeat_id else "–"


class IntentInline(NothingToEdit, BoundedInline):
    """The steps towards one goal."""

    model = Intent
    fields = ("action", "description", "status", "attempts", "last_error", "created_at", "ended_at")
    readonly_fields = fields
    ordering = ("-id",)


class MemoryInline(NothingToEdit, BoundedInline):
    """The memories tied to one goal."""

    model = GoalMemoryLink
    verbose_name_plural = "memories"
    fields = ("kind", "memory_link", "created_at")
    readonly_fields = fields
    ordering = ("-created_at",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[GoalMemoryLink]:
        """Read the memories' texts in the same query."""
        links: QuerySet[GoalMemoryLink] = super().get_queryset(request).select_related("memory")
        return links.defer("memory__embedding", "memory__lexical")

    @admin.display(description="memory")
    def memory_link(self, link: GoalMemoryLink) -> SafeString:
        """Begin it."""
        return cells.link("memories_memory", link.memory_id, cells.clipped(link.memory.content, BEGINNING))


class PartInline(NothingToEdit, BoundedInline):
    """The parts of one goal."""

    model = Goal
    fk_name = "parent"
    verbose_name_plural = "parts"
    fields = ("part_link", "state", "fraction", "touched_at")
    readonly_fields = fields
    ordering = ("id",)

    @admin.display(description="goal")
    def part_link(self, part: Goal) -> SafeString:
        """Name it."""
        return cells.link("goals_goal", part.id, part.title)


class PlanInline(NothingToEdit, BoundedInline):
    """The plans of one goal."""

    model = Plan
    fields = ("plan_link", "status", "risk", "estimated_ticks", "reason", "created_at", "ended_at")
    readonly_fields = fields
    ordering = ("-created_at",)

    @admin.display(description="plan")
    def plan_link(self, plan: Plan) -> SafeString:
        """Lead to its steps."""
        return cells.link("goals_plan", plan.id, "steps")


class SatisfactionInline(NothingToEdit, BoundedInline):
    """The satisfactions of one goal."""

    model = Satisfaction
    verbose_name_plural = "what it was worth"
    fields = ("outcome", "reward_actual", "reward_expected", "reputation_delta", "novelty", "effort", "at")
    readonly_fields = fields
    ordering = ("-at",)


class StepInline(NothingToEdit, BoundedInline):
    """The steps of one plan."""

    model = PlanStep
    fields = (
        "position",
        "action",
        "description",
        "precondition",
        "postcondition",
        "estimated_ticks",
        "status",
    )
    readonly_fields = fields
    ordering = ("position",)
