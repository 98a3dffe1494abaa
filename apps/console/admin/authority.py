"""Pages of capabilities and their uses."""

from __future__ import annotations

from datetime import UTC, datetime

from django.contrib import admin

from apps.authority.models import CapabilityGrant, CapabilityUse
from apps.authority.services.authority_column import capability_name
from apps.authority.services.explanations import describe_constraints, status_of
from apps.console import cells, columns
from apps.console.listing import AgentRowsAdmin, ConsoleAdmin, filters_by_agent


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
