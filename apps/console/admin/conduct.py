"""Pages of boundaries, peers and experiences."""

from __future__ import annotations

from django.contrib import admin
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter, ChoicesDropdownFilter

from apps.console import cells, columns
from apps.console.listing import AgentRowsAdmin
from apps.selves.models import Boundary, Experience, PeerModel
from arbor.selves.boundaries import DEFAULT_BOUNDARIES

_NAMES = ", ".join(boundary.name.replace("_", " ") for boundary in DEFAULT_BOUNDARIES)


@admin.register(Boundary)
class BoundaryAdmin(AgentRowsAdmin):
    """List agents' own boundaries; five more are default ones."""

    when_empty = f"No agent has a boundary of its own. Every agent has these: {_NAMES}."
    when_empty_see = "arbor self boundary list NAME"
    list_display = (
        "name",
        "agent_link",
        "type",
        "response",
        "flexibility_shown",
        "importance_shown",
        "enabled",
    )
    list_filter = (
        ("agent", AutocompleteSelectFilter),
        ("response", ChoicesDropdownFilter),
        ("type", ChoicesDropdownFilter),
    )
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
    #: The patterns and examples of the boundary.
    patterns_shown = columns.lines("patterns", "patterns")
    examples_shown = columns.lines("examples", "examples")


@admin.register(PeerModel)
class PeerModelAdmin(AgentRowsAdmin):
    """List agents' peers."""

    list_display = (
        "name",
        "agent_link",
        "interactions",
        "successes",
        "competence_shown",
        "reliability_shown",
        "met",
    )
    list_filter = (("agent", AutocompleteSelectFilter),)
    text_fields = ("name",)
    fields = (
        "name",
        "agent",
        "peer",
        "interactions",
        "successes",
        "competence_shown",
        "reliability_shown",
        "interests_shown",
        "last_tick",
        "last_at",
    )

    competence_shown = columns.share("competence", "competence")
    reliability_shown = columns.share("reliability", "reliability")

    interests_shown = columns.lines("interests", "cares for")
    met = columns.moment("last_at", "met")


@admin.register(Experience)
class ExperienceAdmin(AgentRowsAdmin):
    """List agents' experiences."""

    list_display = ("action", "agent_link", "tick", "outcome_shown", "about_shown", "lesson_shown", "since")
    list_filter = (("agent", AutocompleteSelectFilter),)
    text_fields = ("action", "about", "lesson")
    fields = ("action", "agent", "tick", "done_by", "about", "outcome_shown", "lesson", "at")

    @admin.display(description="outcome")
    def outcome_shown(self, experience: Experience) -> SafeString:
        """Show the outcome."""
        return cells.badge(experience.outcome, cells.tone(experience.outcome))

    about_shown = columns.beginning("about", "about")
    lesson_shown = columns.beginning("lesson", "lesson")
    since = columns.moment("at", "when")
    done_by = columns.heartbeat("heartbeat_id", "heartbeat")
