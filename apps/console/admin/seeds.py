"""Pages of saved seeds."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse

from apps.agents.services.lookup import NAME_LENGTH
from apps.console import cells, columns
from apps.console.access import Right, has_right
from apps.console.add_pages import AddPageAdmin
from apps.console.forms import agent_choices
from apps.console.listing import PageAdmin
from apps.console.pages.seeds import read_seed
from apps.console.views import console_page
from apps.fleet.models import SavedSeed


@admin.register(SavedSeed)
class SavedSeedAdmin(AddPageAdmin, PageAdmin):
    """List the saved seeds of the tenant, those of destroyed agents among them."""

    page_template = "console/seed.html"
    read_page = staticmethod(read_seed)
    list_display = ("name", "why", "captured", "memories", "kilobytes", "beginning_of_digest", "actor")
    search_fields = ("name", "public_id")
    when_empty = (
        "The installation saves a seed of an agent before a restore, a merge and a move to another embedding model, and when"
        " the agent is destroyed."
    )
    when_empty_command = "arbor seed save --help"

    why = columns.cell("saved because of", lambda seed: cells.badge(seed.reason, "calm"))
    captured = columns.moment("at", "captured")
    memories = columns.cell("memories", lambda seed: seed.rows.get("memories", 0))
    kilobytes = columns.cell("kilobytes", lambda seed: f"{seed.bytes / 1000:,.1f}")
    beginning_of_digest = columns.cell("digest", lambda seed: seed.digest[:12])

    def page_context(self, request: HttpRequest, row: SavedSeed) -> dict[str, Any]:
        """Add whether the person may use seeds."""
        return super().page_context(request, row) | {"may_own": has_right(request, Right.OWN)}

    def add_page(self, request: HttpRequest) -> HttpResponse:
        """Show the forms that save a seed, fork an agent and upload a seed."""
        return console_page(
            request,
            "console/seed_new.html",
            title="New seed",
            opts=self.opts,
            agents=agent_choices(),
            name_length=NAME_LENGTH,
            may_own=has_right(request, Right.OWN),
        )
