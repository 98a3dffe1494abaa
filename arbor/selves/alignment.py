"""The alignment of memories with beliefs, and their resonance with an identity.

Source: seed 004, `worldview_memory_influences` and `identity_memory_resonance`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from arbor.memory.relations import Relation

#: The sign of a relation between a memory and a belief: the memory fits the belief, or contradicts it.
SIGNS: Mapping[Relation, int] = MappingProxyType({Relation.SUPPORTS: 1, Relation.CONTRADICTS: -1})


class Influence(NamedTuple):
    """A belief's influence on a memory: the relation, its weight, and the belief's confidence, both from 0 to 1."""

    relation: Relation
    weight: float
    confidence: float


def alignment(influences: Iterable[Influence]) -> float:
    """Compute the alignment of a memory with the agent's beliefs, from -1 to 1.

    The sum of ±weight · confidence over the memory's relations to beliefs, clipped; 0 without relations.
    """
    total = sum(
        SIGNS.get(influence.relation, 0) * influence.weight * influence.confidence for influence in influences
    )
    return min(max(total, -1.0), 1.0)


class AspectInfluence(NamedTuple):
    """A relation between a memory and an aspect: its weight and the aspect's stability, both from 0 to 1."""

    relation: Relation
    weight: float
    stability: float

    @property
    def share(self) -> float:
        """Return this relation's share of the resonance: weight · stability, negative for a contradiction."""
        sign = -1 if self.relation is Relation.CONTRADICTS else 1
        return sign * self.weight * self.stability


def resonance(influences: Iterable[AspectInfluence]) -> float:
    """Compute a memory's resonance with an identity, from -1 to 1.

    The sum of ±weight · stability over the memory's relations to aspects, clipped; 0 without relations.
    """
    return min(max(sum(influence.share for influence in influences), -1.0), 1.0)
