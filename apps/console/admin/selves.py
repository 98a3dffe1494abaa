"""Pages of beliefs, aspects, preferences, evidence, self history, boundaries, peers and experiences."""

from __future__ import annotations

from django.contrib import admin

from apps.console import cells, columns
from apps.console.listing import MEMORY_VECTORS, AgentRowsAdmin, FoundByIdAdmin, filters_by_agent
from apps.console.nodes import link_ids
from apps.selves.models import (
    Belief,
    BeliefEvidence,
    Boundary,
    Experience,
    IdentityAspect,
    PeerModel,
    Preference,
    ProposalCalibration,
    SelfChange,
)
from arbor.selves.boundaries import DEFAULT_BOUNDARIES


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
    list_filter = filters_by_agent("category", "status")
    text_fields = ("statement",)
    fields = (
        "statement",
        "agent",
        "category",
        "confidence_shown",
        "stability_shown",
        "status",
        "filters_shown",
        "came_from",
        "created_at",
        "updated_at",
    )

    filters_shown = columns.json("filters", "memory filters")
    beginning = columns.beginning("statement", "belief")
    confidence_shown = columns.share("confidence", "confidence")


@admin.register(IdentityAspect)
class IdentityAspectAdmin(_SelfAdmin):
    """List aspects of identities."""

    list_display = (
        "beginning",
        "agent_link",
        "kind_shown",
        "strength_shown",
        "stability_shown",
        "status_badge",
        "came_from",
    )
    list_filter = filters_by_agent("kind", "status")
    text_fields = ("content",)
    fields = (
        "content",
        "agent",
        "kind_shown",
        "strength_shown",
        "stability_shown",
        "status",
        "came_from",
        "created_at",
        "updated_at",
    )

    beginning = columns.beginning("content", "aspect")
    kind_shown = columns.words("kind", "kind")
    strength_shown = columns.share("strength", "strength")


@admin.register(Preference)
class PreferenceAdmin(AgentRowsAdmin):
    """List preferences."""

    list_display = ("key", "agent_link", "value", "came_from", "since")
    list_filter = filters_by_agent()
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

    joined = ("belief", "memory")
    deferred = MEMORY_VECTORS

    belief_shown = columns.cell(
        "belief", lambda evidence: cells.link("selves_belief", evidence.belief_id, evidence.belief)
    )
    memory_shown = columns.cell(
        "memory", lambda evidence: cells.link("memories_memory", evidence.memory_id, evidence.memory)
    )
    side = columns.cell(
        "side",
        lambda evidence: cells.badge(
            "for" if evidence.supports else "against", "good" if evidence.supports else "bad"
        ),
    )
    strength_shown = columns.share("strength", "strength")
    since = columns.moment("at", "since")


@admin.register(SelfChange)
class SelfChangeAdmin(AgentRowsAdmin):
    """List the self history."""

    list_display = ("what", "agent_link", "version", "after_shown", "who_decided", "since")
    list_filter = filters_by_agent()
    text_fields = ("what", "decided_by")
    fields = (
        "what",
        "agent",
        "version",
        "target_shown",
        "before_shown",
        "after_shown",
        "reason",
        "proposal",
        "who_decided",
        "at",
    )

    target_shown = columns.cell(
        "which", lambda change: cells.listed(link_ids(change.agent_id, [str(change.target_id)]))
    )
    before_shown = columns.cell("before", lambda change: cells.block(columns.as_text(change.before)))
    after_shown = columns.cell("after", lambda change: cells.block(columns.as_text(change.after)))
    who_decided = columns.origin("decided_by", "decided by")
    since = columns.moment("at", "when")


_NAMES = ", ".join(boundary.name.replace("_", " ") for boundary in DEFAULT_BOUNDARIES)


@admin.register(Boundary)
class BoundaryAdmin(AgentRowsAdmin):
    """List agents' own boundaries, without the default ones."""

    when_empty = f"No agent has a boundary of its own. Every agent has these: {_NAMES}."
    when_empty_command = "arbor self boundary list NAME"
    list_display = (
        "name",
        "agent_link",
        "type",
        "response",
        "flexibility_shown",
        "importance_shown",
        "enabled",
    )
    list_filter = filters_by_agent("response", "type")
    text_fields = ("name", "description")
    fields = (
        "name",
        "agent",
        "description",
        "type",
        "response",
        "flexibility_shown",
        "importance_shown",
        "patterns_shown",
        "examples_shown",
        "enabled",
        "came_from",
        "created_at",
        "updated_at",
    )

    flexibility_shown = columns.share("flexibility", "flexibility")
    importance_shown = columns.share("importance", "importance")
    came_from = columns.origin("source", "source")
    patterns_shown = columns.lines("patterns", "patterns")
    examples_shown = columns.lines("examples", "examples")


@admin.register(PeerModel)
class PeerModelAdmin(AgentRowsAdmin):
    """List agents' peers."""

    list_display = (
        "name",
        "agent_link",
        "judged",
        "successes",
        "competence_shown",
        "reliability_shown",
        "met",
    )
    list_filter = filters_by_agent()
    text_fields = ("name",)
    fields = (
        "name",
        "agent",
        "peer",
        "judged",
        "successes",
        "competence_shown",
        "reliability_shown",
        "interests_shown",
        "last_heartbeat_number",
        "last_at",
    )

    judged = columns.number("interactions", "judged meetings")
    competence_shown = columns.share("competence", "competence")
    reliability_shown = columns.share("reliability", "reliability")
    interests_shown = columns.lines("interests", "cares for")
    met = columns.moment("last_at", "last met")


@admin.register(Experience)
class ExperienceAdmin(AgentRowsAdmin):
    """List agents' experiences."""

    list_display = (
        "action",
        "agent_link",
        "heartbeat_number",
        "outcome_shown",
        "about_shown",
        "lesson_shown",
        "since",
    )
    list_filter = filters_by_agent()
    text_fields = ("action", "about", "lesson")
    fields = ("action", "agent", "heartbeat_number", "done_by", "about", "outcome_shown", "lesson", "at")

    outcome_shown = columns.badge("outcome", "outcome")
    about_shown = columns.beginning("about", "about")
    lesson_shown = columns.beginning("lesson", "lesson")
    since = columns.moment("at", "when")
    done_by = columns.heartbeat("heartbeat_id", "heartbeat")


@admin.register(ProposalCalibration)
class ProposalCalibrationAdmin(AgentRowsAdmin):
    """List how agents' accepted proposals proved, and the thresholds that follow."""

    when_empty = "No accepted proposal has been judged yet."
    list_display = ("agent_link", "kind", "right", "wrong", "rejected", "threshold", "computed_at")
    list_filter = filters_by_agent("kind")
    fields = ("agent", "kind", "right", "wrong", "rejected", "threshold", "computed_at")
