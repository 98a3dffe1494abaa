"""What agents do not do, what acting taught them, and whom they deal with, in the operator's console."""

from __future__ import annotations

from django.contrib import admin
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter, ChoicesDropdownFilter

from apps.console import cells
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

    @admin.display(description="flexibility")
    def flexibility_shown(self, boundary: Boundary) -> SafeString:
        """Show how far it is negotiable."""
        return cells.meter(round(boundary.flexibility, 2), 1)

    @admin.display(description="importance")
    def importance_shown(self, boundary: Boundary) -> SafeString:
        """Show how much it matters."""
        return cells.meter(round(boundary.importance, 2), 1)

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

    @admin.display(description="competence")
    def competence_shown(self, peer: PeerModel) -> SafeString:
        """Show how able it seems."""
        return cells.meter(round(peer.competence, 2), 1)

    @admin.display(description="reliability")
    def reliability_shown(self, peer: PeerModel) -> SafeString:
        """Show how far it keeps its word."""
        return cells.meter(round(peer.reliability, 2), 1)

    @admin.display(description="cares for")
    def interests_shown(self, peer: PeerModel) -> SafeString:
        """Show what it cares for."""
        return cells.block("\n".join(map(str, peer.interests)))

    @admin.display(description="met")
    def met(self, peer: PeerModel) -> SafeString:
        """Say when they last met."""
        return cells.when(peer.last_at)


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

    @admin.display(description="about")
    def about_shown(self, experience: Experience) -> SafeString:
        """Begin what was tried."""
        return cells.clipped(experience.about)

    @admin.display(description="lesson")
    def lesson_shown(self, experience: Experience) -> SafeString:
        """Begin the lesson."""
        return cells.clipped(experience.lesson)

    @admin.display(description="when")
    def since(self, experience: Experience) -> SafeString:
        """Say when."""
        return cells.when(experience.at)
