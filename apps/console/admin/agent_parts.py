"""Pages of agents' states, keys and policies."""

from __future__ import annotations

from django.contrib import admin
from django.utils.safestring import SafeString

from apps.agents.models import AgentKey, AgentPolicy, AgentState
from apps.console import cells
from apps.console.listing import AgentRowsAdmin
from apps.console.stored import pretty
from arbor.heartbeat.budgets import BudgetKind


@admin.register(AgentState)
class AgentStateAdmin(AgentRowsAdmin):
    """List agents' states."""

    list_display = ("agent_link", "energy", "beats", "nops", "last_beat_at")
    ordering = ("-agent_id",)
    fields = ("agent", "energy", "beats", "nops", "last_beat_at", "last_user_contact_at", "on_its_mind")

    @admin.display(description="working memory")
    def on_its_mind(self, state: AgentState) -> SafeString:
        """Show what is on the agent's mind as JSON."""
        return cells.block(pretty(state.working_memory))


@admin.register(AgentKey)
class AgentKeyAdmin(AgentRowsAdmin):
    """The public halves of agents' keys. The private halves are never read from the database here."""

    list_display = ("agent_link", "public_half", "created_at")
    ordering = ("-agent_id",)
    fields = ("agent", "public_half", "created_at")
    unread = (*AgentRowsAdmin.unread, "sealed_private_key")

    @admin.display(description="public key")
    def public_half(self, key: AgentKey) -> SafeString:
        """Show the public key in hexadecimal."""
        return cells.mono(bytes(key.public_key).hex())


@admin.register(AgentPolicy)
class AgentPolicyAdmin(AgentRowsAdmin):
    """List agents' policies other than the defaults; changed by `arbor agent policy set`."""

    when_empty = (
        f"Every agent lives by the defaults: paid in {BudgetKind.ENERGY}, at all hours, slower while nothing happens,"
        " on its own model, without daily limits of its own; its tenant's limits hold."
    )
    when_empty_see = "arbor agent policy set NAME"
    ordering = ("-agent_id",)
    search_fields = ("agent__name",)
    empty_value_display = "none of its own"
    shows_empty = True
    list_display = ("agent_link", "budget", "hours", "adaptive", "daily_beats", "daily_tokens", "daily_usd")
    fields = (
        "agent",
        "budget",
        "allowance",
        "models_by_tier",
        "hours",
        "adaptive",
        "daily_beats",
        "daily_tokens",
        "daily_usd",
        "follow_ups",
    )

    @admin.display(description="active hours")
    def hours(self, policy: AgentPolicy) -> str:
        """Show the active hours."""
        if policy.active_from is None or policy.active_until is None:
            return "always"
        return f"{policy.active_from:%H:%M}-{policy.active_until:%H:%M} {policy.time_zone}"

    @admin.display(description="models by tier")
    def models_by_tier(self, policy: AgentPolicy) -> str:
        """Show the models by tier."""
        return "; ".join(f"{tier}: {', '.join(models)}" for tier, models in policy.tier_models.items())
