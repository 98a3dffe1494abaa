"""The resonance of memories with an identity (seed 004, `identity_memory_resonance`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from arbor.memory.relations import Relation


class Bearing(NamedTuple):
    """A relation between a memory and an aspect: its weight, and the aspect's stability, both from 0 to 1."""

    relation: Relation
    weight: float
    stability: float

    @property
    def share(self) -> float:
        """Return weight · stability, negative where the memory contradicts the aspect."""
        sign = -1 if self.relation is Relation.CONTRADICTS else 1
        return sign * self.weight * self.stability


def resonance(bearings: Iterable[Bearing]) -> float:
    """Compute a memory's resonance with an identity, from -1 to 1.

    The sum of ±weight · stability over the memory's relations to aspects, clipped; 0 without relations.
    """
    return min(max(sum(bearing.share for bearing in bearings), -1.0), 1.0)
