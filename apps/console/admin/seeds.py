"""Pages of saved seeds."""

from __future__ import annotations

from django.contrib import admin

from apps.console import cells, columns
from apps.console.listing import ConsoleAdmin
from apps.fleet.models import SavedSeed


@admin.register(SavedSeed)
class SavedSeedAdmin(ConsoleAdmin):
    """List the saved seeds of the tenant, those of destroyed agents among them."""

    list_display = ("name", "why", "captured", "memories", "kilobytes", "beginning_of_digest", "actor")
    search_fields = ("name", "public_id")
    fields = (
        "name",
        "agent_id",
        "public_id",
        "why",
        "captured",
        "actor",
        "digest",
        "kilobytes",
        "rows_shown",
    )
    when_empty = "The installation saves a seed of an agent before a restore or merge, and when the agent is destroyed."
    when_empty_see = "arbor seed save --help"

    why = columns.cell("saved because of", lambda seed: cells.badge(seed.reason, "calm"))
    captured = columns.moment("at", "captured")
    memories = columns.cell("memories", lambda seed: seed.rows.get("memories", 0))
    kilobytes = columns.cell("kilobytes", lambda seed: f"{seed.bytes / 1000:,.1f}")
    beginning_of_digest = columns.cell("digest", lambda seed: seed.digest[:12])
    rows_shown = columns.json("rows", "rows by section")
