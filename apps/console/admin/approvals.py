"""Pages of requests for approval, which people with the right to approve decide, and of the trust in agents."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse

from apps.authority.models import ActionApproval, AgentTrust, ModeRule
from apps.authority.services.approvals import REASON_LENGTH
from apps.authority.services.precedents import precedents_of
from apps.console import cells, columns
from apps.console.access import Right, has_right
from apps.console.listing import AgentRowsAdmin, filters_by_agent
from apps.console.stored_json import pretty
from arbor.authority.approvals import ApprovalStatus


@admin.register(ActionApproval)
class ActionApprovalAdmin(AgentRowsAdmin):
    """List requests for approval, pending and decided."""

    list_display = ("beginning", "agent_link", "action", "status_badge", "asked", "expires")
    list_filter = filters_by_agent("status", "action")
    list_before_template = "console/parts/approvals_waiting.html"
    change_form_outer_before_template = "console/parts/approval_decision.html"
    text_fields = ("about",)
    fields = (
        "action",
        "agent",
        "params_shown",
        "reasoning",
        "why",
        "precedents_shown",
        "resource",
        "body_hash",
        "status",
        "reason",
        "who_decided",
        "asked_at",
        "expires_at",
        "decided_at",
        "executed_at",
    )

    beginning = columns.cell("request", lambda approval: approval.about or approval.action)
    params_shown = columns.cell("parameters", lambda approval: cells.block(pretty(approval.params)))
    precedents_shown = columns.cell(
        "earlier decisions",
        lambda approval: cells.block(
            "\n".join(precedent.text for precedent in precedents_of(approval))
            or "Nobody has decided about a request like this one."
        ),
    )
    who_decided = columns.origin("decided_by", "decided by")
    asked = columns.moment("asked_at", "asked")
    expires = columns.moment("expires_at", "expires")

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a request; people who may approve decide it here."""
        context = {
            **(extra_context or {}),
            "may_approve": has_right(request, Right.APPROVE),
            "pending": ApprovalStatus.PENDING,
            "approved": ApprovalStatus.APPROVED,
            "now": datetime.now(UTC),
            "reason_length": REASON_LENGTH,
        }
        response: HttpResponse = super().change_view(request, object_id, form_url, context)
        return response


@admin.register(ModeRule)
class ModeRuleAdmin(AgentRowsAdmin):
    """List the trust rules of agents and of the tenant."""

    list_display = ("prefix", "agent_link", "mode", "who_set", "set")
    list_filter = filters_by_agent("mode")
    text_fields = ("prefix",)

    who_set = columns.origin("set_by", "set by")
    set = columns.moment("set_at", "set")


@admin.register(AgentTrust)
class AgentTrustAdmin(AgentRowsAdmin):
    """List the trust presets of agents."""

    list_display = ("agent_link", "preset")
    ordering = ("agent__name",)
    list_filter = filters_by_agent("preset")
