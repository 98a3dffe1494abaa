"""Compare two verified seeds."""

from __future__ import annotations

from apps.fleet.seeds.files import VerifiedSeed
from arbor.seeds.diff import SectionDifference, diff_rows


def compare_seeds(first: VerifiedSeed, second: VerifiedSeed) -> tuple[SectionDifference, ...]:
    """Return the differences from the first seed to the second, by section. Raises SeedInvalid."""
    same_agent = first.manifest.header.agent_id == second.manifest.header.agent_id
    return diff_rows(first.rows, second.rows, same_agent=same_agent)
