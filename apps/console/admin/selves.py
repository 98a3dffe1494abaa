"""Pages of beliefs, aspects, preferences, evidence, proposals and self history."""

from __future__ import annotations

from shlex import quote

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter, ChoicesDropdownFilter

from apps.console import cells, columns
from apps.console.listing import AgentRowsAdmin, FoundByIdAdmin
from apps.console.nodes import link_ids
from apps.selves.models import (
    Belief,
    BeliefEvidence,
    IdentityAspect,
    Preference,
    Proposal,
    SelfChange,
)
from arbor.selves.proposals import ProposalStatus


class _SelfAdmin(AgentRowsAdmin):
    stability_shown = columns.share("stability", "stability")
    came_from = columns.origin("source", "source")


@admin.register(Belief)
class BeliefAdmin(_SelfAdmin):
    """List beliefs."""

    list_display = (
        "beginning",
        "agent_link",
        "category",
        "confidence_shown",
        "stability_shown",
        "status_badge",
        "came_from",
    )
    list_filter = (
        ("agent", AutocompleteSelectFilter),
        ("category", ChoicesDropdownFilter),
        ("status", ChoicesDropdownFilter),
    )
    text_fields = ("statement",)
    fields = (
        "statement",
        "agent",
        "category",
        "confidence_shown",
        "stability_shown",
        "status",
        "came_from",
        "created_at",
        "updated_at",
    )

    beginning = columns.beginning("statement", "belief")
    confidence_shown = columns.share("confidence", "confidence")


@admin.register(IdentityAspect)
class IdentityAspectAdmin(_SelfAdmin):
    """List aspects of identities."""

    list_display = ("beginning", "agent_link", "kind_shown", "stability_shown", "status_badge", "came_from")
    list_filter = (
        ("agent", AutocompleteSelectFilter),
        ("kind", ChoicesDropdownFilter),
        ("status", ChoicesDropdownFilter),
    )
    text_fields = ("content",)
    fields = (
        "content",
        "agent",
        "kind_shown",
        "stability_shown",
        "status",
        "came_from",
        "created_at",
        "updated_at",
    )

    beginning = columns.beginning("content", "aspect")

    @admin.display(description="kind")
    def kind_shown(self, aspect: IdentityAspect) -> str:
        """Write its kind as words."""
        return aspect.kind.replace("_", " ")


@admin.register(Preference)
class PreferenceAdmin(AgentRowsAdmin):
    """List preferences."""

    list_display = ("key", "agent_link", "value", "came_from", "since")
    list_filter = (("agent", AutocompleteSelectFilter),)
    text_fields = ("key", "value")
    fields = ("key", "value", "agent", "came_from", "updated_at")

    came_from = columns.origin("source", "source")
    since = columns.moment("updated_at", "since")


@admin.register(BeliefEvidence)
class BeliefEvidenceAdmin(FoundByIdAdmin):
    """List the evidence of beliefs."""

    list_display = ("belief_shown", "memory_shown", "side", "strength_shown", "since")
    list_filter = ("supports",)
    fields = ("belief", "memory", "supports", "strength_shown", "at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[BeliefEvidence]:
        """Read beliefs and memories in the same query, without their vectors."""
        rows: QuerySet[BeliefEvidence] = super().get_queryset(request).select_related("belief", "memory")
        return rows.defer("memory__embedding", "memory__lexical")

    @admin.display(description="belief")
    def belief_shown(self, piece: BeliefEvidence) -> SafeString:
        """Link the belief."""
        return cells.link("selves_belief", piece.belief_id, piece.belief)

    @admin.display(description="memory")
    def memory_shown(self, piece: BeliefEvidence) -> SafeString:
        """Link the memory."""
        return cells.link("memories_memory", piece.memory_id, piece.memory)

    @admin.display(description="speaks")
    def side(self, piece: BeliefEvidence) -> SafeString:
        """Show whether the memory supports the belief."""
        return cells.badge("for" if piece.supports else "against", "good" if piece.supports else "bad")

    strength_shown = columns.share("strength", "strength")
    since = columns.moment("at", "since")


@admin.register(Proposal)
class ProposalAdmin(AgentRowsAdmin):
    """List proposals, pending and decided."""

    list_display = (
        "beginning",
        "agent_link",
        "kind",
        "confidence_shown",
        "status_badge",
        "deferrals",
        "came_from",
        "made",
    )
    list_filter = (
        ("agent", AutocompleteSelectFilter),
        ("kind", ChoicesDropdownFilter),
        ("status", ChoicesDropdownFilter),
    )
    text_fields = ("content",)
    fields = (
        "content",
        "agent",
        "kind",
        "confidence_shown",
        "change_shown",
        "evidence_shown",
        "came_from",
        "status",
        "decide",
        "deferrals",
        "reason",
        "who_decided",
        "created_at",
        "decided_at",
    )

    beginning = columns.beginning("content", "proposal")
    confidence_shown = columns.share("confidence", "confidence")

    @admin.display(description="change")
    def change_shown(self, proposal: Proposal) -> SafeString:
        """Show the effect of acceptance."""
        return cells.block(_as_text(proposal.change))

    came_from = columns.origin("source", "source")
    who_decided = columns.origin("decided_by", "decided by")

    @admin.display(description="evidence")
    def evidence_shown(self, proposal: Proposal) -> SafeString:
        """Show the beginnings of the memories that are the evidence. One query; no list shows this."""
        return cells.listed(link_ids(proposal.agent_id, list(map(str, proposal.evidence))))

    @admin.display(description="to decide it")
    def decide(self, proposal: Proposal) -> SafeString | str:
        """Show the commands by which a person decides."""
        if proposal.status != ProposalStatus.PENDING:
            return "it is decided"
        which = f"{quote(proposal.agent.name)} {proposal.id}"
        return cells.block("\n".join(f"arbor self proposal {verb} {which}" for verb in ("accept", "reject")))

    made = columns.moment("created_at", "made")


@admin.register(SelfChange)
class SelfChangeAdmin(AgentRowsAdmin):
    """List the self history."""

    list_display = ("what", "agent_link", "after_shown", "who_decided", "since")
    list_filter = (("agent", AutocompleteSelectFilter),)
    text_fields = ("what", "decided_by")
    fields = ("what", "agent", "target_shown", "before_shown", "after_shown", "proposal", "who_decided", "at")

    @admin.display(description="which")
    def target_shown(self, change: SelfChange) -> SafeString:
        """Link the changed part by its text. One query; no list shows this."""
        return cells.listed(link_ids(change.agent_id, [str(change.target_id)]))

    @admin.display(description="before")
    def before_shown(self, change: SelfChange) -> SafeString:
        """Show the value before."""
        return cells.block(_as_text(change.before))

    @admin.display(description="after")
    def after_shown(self, change: SelfChange) -> SafeString:
        """Show the value after."""
        return cells.block(_as_text(change.after))

    who_decided = columns.origin("decided_by", "decided by")
    since = columns.moment("at", "when")


def _as_text(value: dict[str, object]) -> str:
    return "\n".join(f"{name}: {part}" for name, part in value.items())
