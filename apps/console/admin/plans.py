"""Pages of plans, steps, goal memories and satisfactions."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter, ChoicesDropdownFilter

from apps.console import cells, columns
from apps.console.admin.goal_inlines import BEGINNING, StepInline
from apps.console.listing import AgentRowsAdmin, FoundByIdAdmin
from apps.goals.models import GoalMemoryLink, Plan, PlanStep, Satisfaction


@admin.register(Plan)
class PlanAdmin(AgentRowsAdmin):
    """List plans."""

    list_display = ("goal_link", "agent_link", "status_badge", "risk", "estimated_ticks", "made")
    list_filter = (("agent", AutocompleteSelectFilter), ("status", ChoicesDropdownFilter))
    text_fields = ("reason",)
    inlines = (StepInline,)
    fields = (
        "goal",
        "agent",
        "status",
        "needs",
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

    @admin.display(description="depends on")
    def needs(self, plan: Plan) -> str:
        """Say what it waits for."""
        return "; ".join(map(str, plan.dependencies))

    made = columns.moment("created_at", "made")


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

    beginning = columns.beginning("description", "step")

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
    """List links between memories and goals."""

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
        return cells.link("memories_memory", link.memory_id, cells.clipped(link.memory.content, BEGINNING))

    made = columns.moment("created_at", "made")


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

    ended = columns.moment("at", "ended")
