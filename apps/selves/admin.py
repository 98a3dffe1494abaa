"""Who agents take themselves to be, and what they believe, in the operator's console."""

from __future__ import annotations

from django.contrib import admin
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter, ChoicesDropdownFilter

from apps.console import cells
from apps.console.listing import AgentRowsAdmin
from apps.selves.models import Belief, IdentityAspect, Preference


class _SelfAdmin(AgentRowsAdmin):
    @admin.display(description="stability")
    def stability_shown(self, row: Belief | IdentityAspect) -> SafeString:
        """Show how much it would take to change it."""
        return cells.meter(round(row.stability, 2), 1)


@admin.register(Belief)
class BeliefAdmin(_SelfAdmin):
    """What agents hold to be so."""

    list_display = (
        "beginning",
        "agent_link",
        "category",
        "confidence_shown",
        "stability_shown",
        "status_badge",
        "source",
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
        "source",
        "created_at",
        "updated_at",
    )

    @admin.display(description="belief")
    def beginning(self, belief: Belief) -> SafeString:
        """Begin it."""
        return cells.clipped(belief.statement)

    @admin.display(description="confidence")
    def confidence_shown(self, belief: Belief) -> SafeString:
        """Show how sure the agent is of it."""
        return cells.meter(round(belief.confidence, 2), 1)


@admin.register(IdentityAspect)
class IdentityAspectAdmin(_SelfAdmin):
    """Sides of who agents take themselves to be."""

    list_display = ("beginning", "agent_link", "kind_shown", "stability_shown", "status_badge", "source")
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
        "source",
        "created_at",
        "updated_at",
    )

    @admin.display(description="aspect")
    def beginning(self, aspect: IdentityAspect) -> SafeString:
        """Begin it."""
        return cells.clipped(aspect.content)

    @admin.display(description="kind")
    def kind_shown(self, aspect: IdentityAspect) -> str:
        """Write its kind as words."""
        return aspect.kind.replace("_", " ")


@admin.register(Preference)
class PreferenceAdmin(AgentRowsAdmin):
    """How agents like to do things."""

    list_display = ("key", "agent_link", "value", "source", "since")
    list_filter = (("agent", AutocompleteSelectFilter),)
    text_fields = ("key", "value")
    fields = ("key", "value", "agent", "source", "updated_at")

    @admin.display(description="since")
    def since(self, preference: Preference) -> SafeString:
        """Say since when."""
        return cells.when(preference.updated_at)
