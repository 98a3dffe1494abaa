"""What agents do not do, what acting taught them, and whom they deal with, in the operator's console."""

from __future__ import annotations

from django.contrib import admin
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter, ChoicesDropdownFilter

from apps.console import cells, columns
from apps.console.listing import AgentRowsAdmin
from apps.selves.models import Boundary, Experience, PeerModel


@admin.register(Boundary)
class BoundaryAdmin(AgentRowsAdmin):
    """Boundaries of agents' own; five more are every agent's."""

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
        "source",
        "created_at",
        "updated_at",
    )

    flexibility_shown = columns.share("flexibility", "flexibility")
    importance_shown = columns.share("importance", "importance")

    @admin.display(description="patterns")
    def patterns_shown(self, boundary: Boundary) -> SafeString:
        """Show the words that call it up."""
        return cells.block("\n".join(map(str, boundary.patterns)))

    @admin.display(description="examples")
    def examples_shown(self, boundary: Boundary) -> SafeString:
        """Show the sentences that call it up by what they mean."""
        return cells.block("\n".join(map(str, boundary.examples)))


@admin.register(PeerModel)
class PeerModelAdmin(AgentRowsAdmin):
    """What agents think of those they deal with."""

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

    @admin.display(description="cares for")
    def interests_shown(self, peer: PeerModel) -> SafeString:
        """Show what it cares for."""
        return cells.block("\n".join(map(str, peer.interests)))

    met = columns.moment("last_at", "met")


@admin.register(Experience)
class ExperienceAdmin(AgentRowsAdmin):
    """What acting taught agents."""

    list_display = ("action", "agent_link", "tick", "outcome_shown", "about_shown", "lesson_shown", "since")
    list_filter = (("agent", AutocompleteSelectFilter),)
    text_fields = ("action", "about", "lesson")
    fields = ("action", "agent", "tick", "heartbeat_id", "about", "outcome_shown", "lesson", "at")

    @admin.display(description="outcome")
    def outcome_shown(self, experience: Experience) -> SafeString:
        """Show how it turned out."""
        return cells.badge(experience.outcome, cells.tone(experience.outcome))

    about_shown = columns.beginning("about", "about")
    lesson_shown = columns.beginning("lesson", "lesson")
    since = columns.moment("at", "when")
