"""Pages of agents' states, keys and policies, and of templates."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from apps.agents.models import (
    AgentEndorsement,
    AgentKey,
    AgentPolicy,
    AgentState,
    BuiltinTemplate,
    RequestedCapability,
    Template,
)
from apps.agents.services.energy import energy_terms_of
from apps.console import cells, columns
from apps.console.listing import AgentRowsAdmin, ConsoleAdmin, FoundByAgentAdmin
from arbor.heartbeat.budgets import BudgetKind


@admin.register(AgentState)
class AgentStateAdmin(AgentRowsAdmin):
    """List agents' states."""

    list_display = ("agent_link", "energy", "heartbeat_count", "nops", "last_heartbeat")
    ordering = ("-agent_id",)
    fields = (
        "agent",
        "energy",
        "heartbeat_count",
        "nops",
        "last_heartbeat",
        "last_user_contact_at",
        "memory_json",
    )

    heartbeat_count = columns.number("heartbeats", "heartbeats")
    last_heartbeat = columns.moment("last_heartbeat_at", "last heartbeat")
    memory_json = columns.json("working_memory", "working memory")


@admin.register(AgentKey)
class AgentKeyAdmin(AgentRowsAdmin):
    """List agents' public keys. Private keys are never read from the database."""

    list_display = ("agent_link", "purpose", "number", "public_half", "created_at")
    ordering = ("-agent_id", "purpose", "-number")
    fields = ("agent", "purpose", "number", "public_half", "created_at")
    deferred = (*AgentRowsAdmin.deferred, "sealed_private_key")

    public_half = columns.cell("public key", lambda key: cells.mono(bytes(key.public_key).hex()))


@admin.register(AgentEndorsement)
class AgentEndorsementAdmin(AgentRowsAdmin):
    """List the endorsements of agents; changed on the agent's page."""

    list_display = ("agent_link", "status", "reason", "serial", "at")
    list_filter = ("status",)
    ordering = ("-agent_id",)
    fields = ("agent", "status", "reason", "serial", "at", "authority_number", "signed")

    signed = columns.cell("signature", lambda row: cells.mono(bytes(row.signature).hex()))


@admin.register(RequestedCapability)
class RequestedCapabilityAdmin(AgentRowsAdmin):
    """List the capabilities that templates requested for agents; a request grants nothing."""

    list_display = ("agent_link", "resource", "description")
    fields = ("agent", "resource", "description", "constraints_shown")

    constraints_shown = columns.json("constraints", "constraints")


@admin.register(AgentPolicy)
class AgentPolicyAdmin(FoundByAgentAdmin):
    """List agents' policies other than the defaults; changed by `arbor agent policy set`."""

    when_empty = (
        f"All agents have the default policy: a budget of {BudgetKind.ENERGY}, heartbeats at all hours, slower while nothing"
        " happens, each agent's own model, and only the tenant's daily limits."
    )
    when_empty_command = "arbor agent policy set NAME"
    ordering = ("-agent_id",)
    empty_value_display = "none of its own"
    shows_empty = True
    list_display = (
        *("agent_link", "budget", "hours", "adaptive"),
        *("daily_heartbeat_limit", "daily_tokens", "daily_cost"),
    )
    fields = (
        "agent",
        "budget",
        "allowance",
        "energy_terms",
        "models_by_tier",
        "hours",
        "adaptive",
        "daily_heartbeat_limit",
        "daily_tokens",
        "daily_cost",
        "follow_ups",
        "voices",
    )

    daily_heartbeat_limit = columns.number("daily_heartbeats", "daily heartbeats", empty=empty_value_display)
    daily_cost = columns.dollars("daily_usd", "daily cost", empty=empty_value_display)

    @admin.display(description="active hours")
    def hours(self, policy: AgentPolicy) -> str:
        """Show the active hours."""
        if policy.active_from is None or policy.active_until is None:
            return "always"
        return f"{policy.active_from:%H:%M}-{policy.active_until:%H:%M} {policy.time_zone}"

    energy_terms = columns.cell("energy", lambda policy: energy_terms_of(policy.agent).describe())
    models_by_tier = columns.cell(
        "models by tier",
        lambda policy: "; ".join(
            f"{tier}: {', '.join(models)}" for tier, models in policy.tier_models.items()
        ),
    )


class _TemplateAdmin(ConsoleAdmin):
    list_display = ("name", "version", "summary", "updated_at")
    search_fields = ("name",)
    ordering = ("name",)
    fields = ("name", "version", "description", "updated_at", "content_hash", "source")
    change_form_outer_before_template = "console/parts/template_edit.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Defer the column that the pages do not show."""
        return super().get_queryset(request).defer("spec")  # type: ignore[no-any-return]

    summary = columns.beginning("description", "description")
    source = columns.cell("file", lambda template: cells.block(template.source_text))


@admin.register(Template)
class TemplateAdmin(_TemplateAdmin):
    """List the tenant's own templates."""


@admin.register(BuiltinTemplate)
class BuiltinTemplateAdmin(_TemplateAdmin):
    """List the templates that come with Arbor."""
