"""Pages of capabilities and their uses, of trust scores and of changes of trust tiers."""

from __future__ import annotations

from datetime import UTC, datetime

from django.contrib import admin

from apps.authority.models import CapabilityGrant, CapabilityUse, TierChange, TrustScore
from apps.authority.services.authority_column import capability_name
from apps.authority.services.explanations import describe_constraints, status_of
from apps.console import cells, columns
from apps.console.listing import AgentRowsAdmin, ConsoleAdmin, FoundByAgentAdmin, filters_by_agent


@admin.register(CapabilityGrant)
class CapabilityGrantAdmin(AgentRowsAdmin):
    """List capabilities; granted, delegated and revoked on the page of an agent's capabilities."""

    when_empty = "No agent has a capability."
    when_empty_command = "arbor agent capability grant NAME ACTION"
    text_fields = ("resource",)
    list_filter = filters_by_agent()
    list_display = ("resource", "agent_link", "status", "limits", "granted_by", "granted_at")
    fields = (
        "name",
        "agent",
        "resource",
        "status",
        "limits",
        "depth",
        "parent",
        "issuer",
        "signature",
        "granted_by",
        "granted_at",
        "revoked_at",
        "revoked_by",
        "revoked_reason",
    )

    name = columns.cell("id", lambda row: capability_name(row.id))
    status = columns.cell("status", lambda row: cells.badge(status_of(row, now=datetime.now(UTC))))
    limits = columns.cell("limits", lambda row: describe_constraints(row) or "none")


@admin.register(CapabilityUse)
class CapabilityUseAdmin(ConsoleAdmin):
    """List the uses of capabilities that limit them."""

    when_empty = "No capability with a limit of uses was used."
    list_display = ("capability", "number", "heartbeat_id", "at")
    fields = ("capability", "number", "heartbeat_id", "at")


@admin.register(TrustScore)
class TrustScoreAdmin(FoundByAgentAdmin):
    """List agents' trust tiers and scores; changed on the page of the trust in an agent."""

    when_empty = "No agent has a score yet; maintenance computes one within a minute of its creation."
    list_display = ("agent_link", "tier", "score", "since", "by_person", "computed_at")
    list_filter = filters_by_agent("tier")
    ordering = ("-agent_id",)
    fields = (
        "agent",
        "tier",
        "since",
        "by_person",
        "score",
        "parts_json",
        "breached_at",
        "above_since",
        "below_since",
        "computed_at",
    )

    parts_json = columns.json("parts", "parts")


@admin.register(TierChange)
class TierChangeAdmin(AgentRowsAdmin):
    """List the changes of agents' trust tiers."""

    list_display = ("agent_link", "before", "after", "score", "decided_by", "reason", "at")
    list_filter = filters_by_agent("after")
    fields = ("agent", "before", "after", "score", "decided_by", "reason", "at")
