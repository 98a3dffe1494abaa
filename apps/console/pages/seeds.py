"""Read what the page of a saved seed shows: its rows, and what can be done with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apps.agents.models import Agent
from apps.agents.services.lookup import NAME_LENGTH
from apps.console.forms import agent_choices
from apps.fleet.models import SavedSeed
from apps.fleet.seeds.sections import SeedGroup

#: Other seeds that can be chosen for a comparison: the latest of the tenant.
_COMPARED = 100


@dataclass(frozen=True, kw_only=True)
class SavedSeedPage:
    """A saved seed, its agent where it is here, and the choices of the forms."""

    seed: SavedSeed
    agent: Agent | None
    #: (name, rows) of the sections that have rows.
    rows: Sequence[tuple[str, int]]
    groups: Sequence[str]
    #: (id, name) of the agents that can take over what the seed's agent learned.
    receivers: Sequence[tuple[str, str]]
    others: Sequence[SavedSeed]

    name_length = NAME_LENGTH


def read_seed(seed: SavedSeed) -> SavedSeedPage:
    """Read the page of a saved seed. Three statements."""
    others = SavedSeed.objects.exclude(id=seed.id).order_by("-saved_at", "-id")[:_COMPARED]
    return SavedSeedPage(
        seed=seed,
        agent=Agent.objects.filter(id=seed.agent_id).only("tenant_id", "name").first(),
        rows=[(name.replace("_", " "), count) for name, count in seed.rows.items() if count],
        groups=tuple(SeedGroup),
        receivers=[choice for choice in agent_choices() if choice[0] != str(seed.agent_id)],
        others=sorted(others, key=lambda other: other.agent_id != seed.agent_id),
    )
