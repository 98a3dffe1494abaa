"""The alignment of memories with beliefs (seed 004, `worldview_memory_influences`)."""

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
    """Compute how well a memory fits the agent's beliefs, from -1 to 1.

    The sum of ±weight · confidence over the memory's relations to beliefs, clipped; 0 without relations.
    """
    total = sum(
        SIGNS.get(influence.relation, 0) * influence.weight * influence.confidence for influence in influences
    )
    return min(max(total, -1.0), 1.0)
