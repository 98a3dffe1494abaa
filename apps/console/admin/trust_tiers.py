"""Pages of trust scores, tier changes, and the calibration of proposals."""

from __future__ import annotations

from django.contrib import admin

from apps.authority.models import TierChange, TrustScore
from apps.console import columns
from apps.console.listing import AgentRowsAdmin, FoundByAgentAdmin, filters_by_agent
from apps.selves.models import ProposalCalibration


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


@admin.register(ProposalCalibration)
class ProposalCalibrationAdmin(AgentRowsAdmin):
    """List how agents' accepted proposals proved, and the thresholds that follow."""

    when_empty = "No accepted proposal has been judged yet."
    list_display = ("agent_link", "kind", "right", "wrong", "rejected", "threshold", "computed_at")
    list_filter = filters_by_agent("kind")
    fields = ("agent", "kind", "right", "wrong", "rejected", "threshold", "computed_at")
