"""Pages of goals, plans and what belongs to them."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from apps.console import cells, columns
from apps.console.listing import (
    MEMORY_VECTORS,
    AgentRowsAdmin,
    FoundByIdAdmin,
    ReadOnly,
    filters,
    filters_by_agent,
)
from apps.console.paging import BoundedInline
from apps.goals.models import Goal, GoalMemoryLink, Intent, Plan, PlanStep, ProgressNote, Satisfaction
from arbor.goals.conditions import unmet

#: Characters shown of a memory.
_EXCERPT_LENGTH = 100


class NoteInline(ReadOnly, BoundedInline):
    """List the notes of a goal."""

    model = ProgressNote
    fields = ("text", "at", "heartbeat_link")
    readonly_fields = fields
    ordering = ("-at",)

    heartbeat_link = columns.heartbeat("heartbeat_id", "heartbeat")


class IntentInline(ReadOnly, BoundedInline):
    """List the intents of a goal."""

    model = Intent
    fields = ("action", "description", "status", "attempts", "last_error", "created_at", "ended_at")
    readonly_fields = fields
    ordering = ("-id",)


class MemoryInline(ReadOnly, BoundedInline):
    """List the memories linked to a goal."""

    model = GoalMemoryLink
    verbose_name_plural = "memories"
    fields = ("kind", "memory_link", "created_at")
    readonly_fields = fields
    ordering = ("-created_at",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[GoalMemoryLink]:
        """Read the memories' texts in the same query."""
        links: QuerySet[GoalMemoryLink] = super().get_queryset(request).select_related("memory")
        return links.defer(*MEMORY_VECTORS)

    memory_link = columns.memory(longest=_EXCERPT_LENGTH)


class PartInline(ReadOnly, BoundedInline):
    """List the parts of a goal."""

    model = Goal
    fk_name = "parent"
    verbose_name_plural = "parts"
    fields = ("part_link", "state", "fraction", "touched_at")
    readonly_fields = fields
    ordering = ("id",)

    part_link = columns.cell("goal", lambda part: cells.link("goals_goal", part.id, part.title))


class PlanInline(ReadOnly, BoundedInline):
    """List the plans of a goal."""

    model = Plan
    fields = ("plan_link", "status", "risk", "estimated_ticks", "reason", "created_at", "ended_at")
    readonly_fields = fields
    ordering = ("-created_at",)

    plan_link = columns.cell("plan", lambda plan: cells.link("goals_plan", plan.id, "steps"))


class SatisfactionInline(ReadOnly, BoundedInline):
    """List the satisfactions of a goal."""

    model = Satisfaction
    verbose_name_plural = "satisfaction"
    fields = ("outcome", "reward_actual", "reward_expected", "reputation_delta", "novelty", "effort", "at")
    readonly_fields = fields
    ordering = ("-at",)


class StepInline(ReadOnly, BoundedInline):
    """List the steps of a plan."""

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


@admin.register(Goal)
class GoalAdmin(AgentRowsAdmin):
    """List agents' goals."""

    list_display = ("title", "agent_link", "state_badge", "layer", "source_shown", "done", "touched")
    list_filter = filters_by_agent("state", "layer", "source")
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
                    "type",
                    "priority",
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
        ("Obstacles", {"fields": ("blocked_by", "blocked_by_goal", "abandonment_reason")}),
    )

    joined = (*AgentRowsAdmin.joined, "parent", "blocked_by_goal")

    state_badge = columns.badge("state", "state")
    done = columns.share("fraction", "done")
    source_shown = columns.words("source", "source")
    touched = columns.moment("touched_at", "touched")


@admin.register(ProgressNote)
class ProgressNoteAdmin(FoundByIdAdmin):
    """List notes on the progress of goals."""

    list_display = ("beginning", "goal_link", "written")
    agent_path = "goal__agent"
    sortable_by = ()
    fields = ("text", "goal", "written_by", "at")

    joined = ("goal",)

    beginning = columns.beginning("text", "note")
    goal_link = columns.goal()
    written = columns.moment("at", "written")
    written_by = columns.heartbeat("heartbeat_id", "written by")


@admin.register(Intent)
class IntentAdmin(AgentRowsAdmin):
    """List intents."""

    list_display = ("beginning", "action", "goal_link", "agent_link", "status_badge", "attempts", "created")
    list_filter = filters_by_agent("status")
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
        "who_locked",
        "locked_at",
        "created_at",
        "ended_at",
    )

    joined = (*AgentRowsAdmin.joined, "goal", "step")

    beginning = columns.beginning("description", "step")
    goal_link = columns.goal()
    created = columns.moment("created_at", "created")
    who_locked = columns.heartbeat("locked_by", "locked by")


@admin.register(Plan)
class PlanAdmin(AgentRowsAdmin):
    """List plans."""

    list_display = ("goal_link", "agent_link", "status_badge", "risk", "estimated_ticks", "created")
    list_filter = filters_by_agent("status")
    text_fields = ("reason",)
    inlines = (StepInline,)
    fields = (
        "goal",
        "agent",
        "status",
        "needs",
        "waits_for",
        "estimated_ticks",
        "estimated_cost",
        "risk",
        "reason",
        "created_at",
        "ended_at",
    )

    joined = (*AgentRowsAdmin.joined, "goal")

    goal_link = columns.goal()
    needs = columns.cell("depends on", lambda plan: "; ".join(map(str, plan.dependencies)))
    waits_for = columns.cell("waits for", lambda plan: "; ".join(unmet(plan.dependencies, plan.met)))
    created = columns.moment("created_at", "created")


@admin.register(PlanStep)
class PlanStepAdmin(FoundByIdAdmin):
    """List steps of plans."""

    list_display = ("beginning", "action", "position", "plan_link", "status_badge")
    agent_path = "plan__agent"
    sortable_by = ()
    fields = (
        "plan",
        "position",
        "action",
        "description",
        "precondition",
        "postcondition",
        "estimated_ticks",
        "status",
    )

    joined = ("plan__goal",)

    beginning = columns.beginning("description", "step")
    plan_link = columns.cell(
        "plan for", lambda step: cells.link("goals_plan", step.plan_id, step.plan.goal.title)
    )
    status_badge = columns.badge("status", "status")


@admin.register(GoalMemoryLink)
class GoalMemoryLinkAdmin(FoundByIdAdmin):
    """List links between memories and goals."""

    list_display = ("kind", "goal_link", "memory_link", "created")
    list_filter = filters("kind")
    agent_path = "goal__agent"
    sortable_by = ()
    fields = ("goal", "memory", "kind", "created_at")

    joined = ("goal", "memory")
    deferred = MEMORY_VECTORS

    goal_link = columns.goal()
    memory_link = columns.memory(longest=_EXCERPT_LENGTH)
    created = columns.moment("created_at", "created")


@admin.register(Satisfaction)
class SatisfactionAdmin(AgentRowsAdmin):
    """List the satisfactions of closed goals."""

    list_display = (
        "goal_link",
        "agent_link",
        "outcome",
        "reward_actual",
        "reward_expected",
        "novelty",
        "effort",
        "ended",
    )
    list_filter = filters_by_agent()
    fields = (
        "goal",
        "agent",
        "outcome",
        "reward_actual",
        "reward_expected",
        "reputation_delta",
        "novelty",
        "effort",
        "at",
    )

    joined = (*AgentRowsAdmin.joined, "goal")

    goal_link = columns.goal()
    ended = columns.moment("at", "ended")
