"""How an agent's beliefs colour what it remembers (seed 004, `worldview_memory_influences`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from arbor.memory.relations import Relation

#: What a relation between a memory and a belief says of the memory: it fits the worldview, or goes against it.
SIGNS: Mapping[Relation, int] = MappingProxyType({Relation.SUPPORTS: 1, Relation.CONTRADICTS: -1})


class Influence(NamedTuple):
    """A belief's bearing on a memory: their relation, its weight, and the belief's confidence, both from 0 to 1."""

    relation: Relation
    weight: float
    confidence: float


def alignment(influences: Iterable[Influence]) -> float:
    """Return how well a memory fits what is believed, from -1, against all of it, to 1.

    The sum of ±weight · confidence over its relations to beliefs that are held, clipped; 0 where there is none.
    """
    total = sum(
        SIGNS.get(influence.relation, 0) * influence.weight * influence.confidence for influence in influences
    )
    return min(max(total, -1.0), 1.0)
