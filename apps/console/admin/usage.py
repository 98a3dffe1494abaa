"""Pages of daily usage."""

from __future__ import annotations

from django.contrib import admin
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from apps.calls.models import DailyUsage
from apps.console import cells
from apps.console.listing import AgentRowsAdmin


@admin.register(DailyUsage)
class DailyUsageAdmin(AgentRowsAdmin):
    """Heartbeats, calls, tokens and money by agent and day (UTC)."""

    list_display = ("day", "agent_link", "beats", "calls", "tokens", "cost", "level_badge")
    list_filter = (("agent", AutocompleteSelectFilter),)
    ordering = ("-day",)
    fields = ("agent", "day", "beats", "calls", "tokens", "cost_usd", "level")

    @admin.display(description="cost")
    def cost(self, usage: DailyUsage) -> str:
        """Show the cost, as far as prices are known."""
        return f"${usage.cost_usd:.4f}"

    @admin.display(description="budget")
    def level_badge(self, usage: DailyUsage) -> SafeString:
        """Show the budget level."""
        return cells.badge(usage.level)
