"""The neighborhood of a memory: the weights of its most associated memories (seed 004, 6.3)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from uuid import UUID

import numpy as np

from arbor.embedding.ports import Vectors

# All figures are those of seed 004.
#: The weight of a relation by the number of edges on the path.
HOP_WEIGHTS: Mapping[int, float] = {1: 1.0, 2: 0.5}
#: The number of nearest memories by meaning that are considered.
NEAREST = 10
#: The share of the cosine that is added, and the highest sum of relation and cosine.
SIMILARITY_SHARE = 0.5
HIGHEST_BY_MEANING = 1.5
#: The weight of nearness in the same episode, and the largest distance in turns that counts.
BESIDE_WEIGHT = 0.3
BESIDE_REACH = 3
#: The size of a neighborhood, and its highest possible weight.
NEIGHBORHOOD_SIZE = 20
HIGHEST_WEIGHT = HIGHEST_BY_MEANING + BESIDE_WEIGHT

#: Cosines are rounded to this many decimals, because their last bits depend on the size of a block.
_DECIMALS = 4


def neighbor_weight(
    *, hops: int | None = None, similarity: float | None = None, beside: bool = False
) -> float:
    """Return the weight of a neighbor, 0 (no neighbor) to HIGHEST_WEIGHT.

    `hops` is the number of edges between the memories, if a path exists; `similarity` the cosine, if the memory is among
    the nearest and near enough. The weight is symmetric.
    """
    relation_weight = HOP_WEIGHTS.get(hops, 0.0) if hops is not None else 0.0
    if similarity is not None:
        relation_weight = min(relation_weight + similarity * SIMILARITY_SHARE, HIGHEST_BY_MEANING)
    return round(relation_weight + (BESIDE_WEIGHT if beside else 0.0), _DECIMALS)


def neighborhood(
    *, hops: Mapping[UUID, int], similar: Mapping[UUID, float], beside: Collection[UUID]
) -> dict[UUID, float]:
    """Return the NEIGHBORHOOD_SIZE heaviest neighbors with their weights, the heaviest first, equal ones in the order of their ids."""
    weights = {
        memory_id: neighbor_weight(
            hops=hops.get(memory_id), similarity=similar.get(memory_id), beside=memory_id in beside
        )
        for memory_id in {*hops, *similar, *beside}
    }
    best = sorted((item for item in weights.items() if item[1] > 0), key=lambda item: (-item[1], item[0]))
    return dict(best[:NEIGHBORHOOD_SIZE])


def would_enter(weights: Collection[float], newcomer: float) -> bool:
    """Return whether a new memory of this weight would enter a neighborhood of these weights."""
    return newcomer > 0 and (len(weights) < NEIGHBORHOOD_SIZE or newcomer > min(weights))


class NearestSearch:
    """The search for the nearest memories by meaning of several memories, over blocks of all of the agent's memories."""

    def __init__(self, ids: Sequence[UUID], vectors: Vectors, *, limit: int = NEAREST) -> None:
        """Begin a search for the `limit` nearest; `vectors` is (len(ids), dimension), rows of any length but 0."""
        self._ids = list(ids)
        self._vectors = _unit(vectors)
        self._limit = limit
        self._best: list[list[tuple[float, UUID]]] = [[] for _ in self._ids]

    def compare_block(self, ids: Sequence[UUID], vectors: Vectors) -> None:
        """Compare a block of memories; `vectors` is (len(ids), dimension)."""
        if not self._ids or not ids:
            return
        cosines = np.round(self._vectors @ _unit(vectors).T, _DECIMALS)
        rows = {memory_id: row for row, memory_id in enumerate(self._ids)}
        for column, memory_id in enumerate(ids):
            if memory_id in rows:
                cosines[rows[memory_id], column] = -np.inf
        limit = min(self._limit, len(ids))
        floors = np.partition(cosines, len(ids) - limit, axis=1)[:, len(ids) - limit]
        for row, floor in enumerate(floors):
            if len(self._best[row]) == self._limit and self._best[row][-1][0] > floor:
                floor = self._best[row][-1][0]
            columns = np.flatnonzero((cosines[row] >= floor) & np.isfinite(cosines[row])).tolist()
            candidates = [(float(cosines[row, column]), ids[column]) for column in columns]
            self._best[row] = _first(self._best[row] + candidates, self._limit)

    def found(self) -> dict[UUID, dict[UUID, float]]:
        """Return the nearest memories of each memory with cosines, nearest first, equal ones in the order of their ids."""
        return {
            memory_id: {other: cosine for cosine, other in best}
            for memory_id, best in zip(self._ids, self._best, strict=True)
        }


def similar_enough(nearest: Mapping[UUID, float], threshold: float) -> dict[UUID, float]:
    """Return the memories whose cosine is above the threshold."""
    return {memory_id: cosine for memory_id, cosine in nearest.items() if cosine > threshold}


def _first(found: Iterable[tuple[float, UUID]], limit: int) -> list[tuple[float, UUID]]:
    return sorted(found, key=lambda item: (-item[0], item[1]))[:limit]


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1.0), dtype=np.float32)
