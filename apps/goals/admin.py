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
from apps.goals.models import (
    Goal,
    GoalMemoryLink,
    Intent,
    Plan,
    PlanStep,
    ProgressNote,
    Satisfaction,
)


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


class MemoryInline(NothingToEdit, TabularInline):  # type: ignore[misc]
    """The memories tied to one goal."""

    model = GoalMemoryLink
    fields = ("kind", "memory_link", "created_at")
    readonly_fields = fields
    ordering = ("-created_at",)
    per_page = 20
    show_title = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[GoalMemoryLink]:
        """Read the memories' texts in the same query."""
        links: QuerySet[GoalMemoryLink] = super().get_queryset(request).select_related("memory")
        return links.defer("memory__embedding", "memory__lexical")

    @admin.display(description="memory")
    def memory_link(self, link: GoalMemoryLink) -> SafeString:
        """Begin it."""
        return cells.link("memories_memory", link.memory_id, link.memory.content[:_BEGINNING])


class PartInline(NothingToEdit, TabularInline):  # type: ignore[misc]
    """The parts of one goal."""

    model = Goal
    fk_name = "parent"
    verbose_name_plural = "parts"
    fields = ("part_link", "state", "fraction", "touched_at")
    readonly_fields = fields
    ordering = ("id",)
    per_page = 20
    show_title = False

    @admin.display(description="goal")
    def part_link(self, part: Goal) -> SafeString:
        """Name it."""
        return cells.link("goals_goal", part.id, part.title)


class PlanInline(NothingToEdit, TabularInline):  # type: ignore[misc]
    """The plans of one goal."""

    model = Plan
    fields = ("plan_link", "status", "risk", "estimated_ticks", "reason", "created_at", "ended_at")
    readonly_fields = fields
    ordering = ("-created_at",)
    per_page = 20
    show_title = False

    @admin.display(description="plan")
    def plan_link(self, plan: Plan) -> SafeString:
        """Lead to its steps."""
        return cells.link("goals_plan", plan.id, "steps")


class SatisfactionInline(NothingToEdit, TabularInline):  # type: ignore[misc]
    """What one goal was worth."""

    model = Satisfaction
    fields = ("outcome", "reward_actual", "reward_expected", "reputation_delta", "novelty", "effort", "at")
    readonly_fields = fields
    ordering = ("-at",)
    per_page = 20
    show_title = False


class StepInline(NothingToEdit, TabularInline):  # type: ignore[misc]
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
    per_page = 20
    show_title = False


#: Of a text in a table, so much is shown.
_BEGINNING = 100


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
                    "source",
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
        "ticks_used",
        "tick_limit",
        "step",
        "locked_by",
        "locked_at",
        "created_at",
        "ended_at",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Intent]:
        """Read the names in the same query."""
        intents: QuerySet[Intent] = super().get_queryset(request).select_related("goal", "step")
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


@admin.register(Plan)
class PlanAdmin(AgentRowsAdmin):
    """Ways to goals."""

    list_display = ("goal_link", "agent_link", "status_badge", "risk", "estimated_ticks", "made")
    list_filter = (("agent", AutocompleteSelectFilter), ("status", ChoicesDropdownFilter))
    text_fields = ("reason",)
    inlines = (StepInline,)
    fields = (
        "goal",
        "agent",
        "status",
        "dependencies",
        "estimated_ticks",
        "estimated_cost",
        "risk",
        "reason",
        "created_at",
        "ended_at",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Plan]:
        """Read the names in the same query."""
        plans: QuerySet[Plan] = super().get_queryset(request).select_related("goal")
        return plans.defer(*self.unread)

    @admin.display(description="goal")
    def goal_link(self, plan: Plan) -> SafeString:
        """Name its goal."""
        return cells.link("goals_goal", plan.goal_id, plan.goal.title)

    @admin.display(description="made")
    def made(self, plan: Plan) -> SafeString:
        """Say when it was made."""
        return cells.when(plan.created_at)


@admin.register(PlanStep)
class PlanStepAdmin(FoundByIdAdmin):
    """Steps of plans."""

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

    def get_queryset(self, request: HttpRequest) -> QuerySet[PlanStep]:
        """Read the goals' titles in the same query."""
        steps: QuerySet[PlanStep] = super().get_queryset(request).select_related("plan__goal")
        return steps

    @admin.display(description="step")
    def beginning(self, step: PlanStep) -> SafeString:
        """Begin it."""
        return cells.clipped(step.description)

    @admin.display(description="plan for")
    def plan_link(self, step: PlanStep) -> SafeString:
        """Name the goal of its plan."""
        return cells.link("goals_plan", step.plan_id, step.plan.goal.title)

    @admin.display(description="status")
    def status_badge(self, step: PlanStep) -> SafeString:
        """Show how far it has come."""
        return cells.badge(step.status)


@admin.register(GoalMemoryLink)
class GoalMemoryLinkAdmin(FoundByIdAdmin):
    """What memories are to goals."""

    list_display = ("kind", "goal_link", "memory_link", "made")
    list_filter = (("kind", ChoicesDropdownFilter),)
    agent_path = "goal__agent"
    sortable_by = ()
    fields = ("goal", "memory", "kind", "created_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[GoalMemoryLink]:
        """Read both ends in the same query."""
        links: QuerySet[GoalMemoryLink] = super().get_queryset(request).select_related("goal", "memory")
        return links.defer("memory__embedding", "memory__lexical")

    @admin.display(description="goal")
    def goal_link(self, link: GoalMemoryLink) -> SafeString:
        """Name the goal."""
        return cells.link("goals_goal", link.goal_id, link.goal.title)

    @admin.display(description="memory")
    def memory_link(self, link: GoalMemoryLink) -> SafeString:
        """Begin the memory."""
        return cells.link("memories_memory", link.memory_id, link.memory.content[:_BEGINNING])

    @admin.display(description="made")
    def made(self, link: GoalMemoryLink) -> SafeString:
        """Say when it was made."""
        return cells.when(link.created_at)


@admin.register(Satisfaction)
class SatisfactionAdmin(AgentRowsAdmin):
    """What ended goals were worth."""

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
    list_filter = (("agent", AutocompleteSelectFilter),)
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

    def get_queryset(self, request: HttpRequest) -> QuerySet[Satisfaction]:
        """Read the names in the same query."""
        signals: QuerySet[Satisfaction] = super().get_queryset(request).select_related("goal")
        return signals.defer(*self.unread)

    @admin.display(description="goal")
    def goal_link(self, signal: Satisfaction) -> SafeString:
        """Name the goal."""
        return cells.link("goals_goal", signal.goal_id, signal.goal.title)

    @admin.display(description="ended")
    def ended(self, signal: Satisfaction) -> SafeString:
        """Say when the goal ended."""
        return cells.when(signal.at)
