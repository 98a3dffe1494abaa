"""The neighborhood of a memory: the weights of its most associated memories (seed 004, 6.3)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from uuid import UUID

import numpy as np
import numpy.typing as npt

type Vectors = npt.NDArray[np.float32]

# All of these are the seed's.
#: What a relation is worth by the number of edges to it.
HOP_WEIGHTS: Mapping[int, float] = {1: 1.0, 2: 0.5}
MAX_HOPS = max(HOP_WEIGHTS)
#: How many of the nearest by meaning are looked at, and how near they must be to count.
NEAREST = 10
SIMILAR = 0.75
#: What likeness adds, and how far it lifts a relation.
SIMILARITY_SHARE = 0.5
HIGHEST_BY_MEANING = 1.5
#: The weight of nearness in the same episode, and its reach in turns.
BESIDE = 0.3
BESIDE_REACH = 3
#: The size of a neighborhood, and the most that one of its weights can be.
KEPT = 20
HIGHEST = HIGHEST_BY_MEANING + BESIDE

#: Cosines are compared to this many places: their last bits depend on how many are computed at once.
_PLACES = 4


def weight(*, hops: int | None = None, similarity: float | None = None, beside: bool = False) -> float:
    """Return what a neighbor is worth, 0 to HIGHEST; 0: it is none.

    `hops` is the number of edges to it, if any lead there; `similarity` the cosine, if it is among the nearest and near
    enough. It is the same from either side.
    """
    worth = HOP_WEIGHTS.get(hops, 0.0) if hops is not None else 0.0
    if similarity is not None:
        worth = min(worth + similarity * SIMILARITY_SHARE, HIGHEST_BY_MEANING)
    return round(worth + (BESIDE if beside else 0.0), _PLACES)


def neighborhood(
    *, hops: Mapping[UUID, int], similar: Mapping[UUID, float], beside: Collection[UUID]
) -> dict[UUID, float]:
    """Return the KEPT heaviest neighbors with their weights, the heaviest first, equal ones in the order of their ids."""
    weighed = {
        memory_id: weight(
            hops=hops.get(memory_id), similarity=similar.get(memory_id), beside=memory_id in beside
        )
        for memory_id in {*hops, *similar, *beside}
    }
    best = sorted((item for item in weighed.items() if item[1] > 0), key=lambda item: (-item[1], item[0]))
    return dict(best[:KEPT])


def accepts(weights: Collection[float], newcomer: float) -> bool:
    """Return whether a new memory of this weight would enter a neighborhood of these weights."""
    return newcomer > 0 and (len(weights) < KEPT or newcomer > min(weights))


class Nearest:
    """The nearest memories by meaning of several at once, found by going through all of the agent's in blocks."""

    def __init__(self, ids: Sequence[UUID], vectors: Vectors, *, kept: int = NEAREST) -> None:
        """Ask for the `kept` nearest of each; `vectors` is (len(ids), dimension), rows of any length but 0."""
        self._ids = list(ids)
        self._vectors = _unit(vectors)
        self._kept = kept
        self._best: list[list[tuple[float, UUID]]] = [[] for _ in self._ids]

    def look_at(self, ids: Sequence[UUID], vectors: Vectors) -> None:
        """Compare a block of memories; `vectors` is (len(ids), dimension)."""
        if not self._ids or not ids:
            return
        cosines = np.round(self._vectors @ _unit(vectors).T, _PLACES)
        rows = {memory_id: row for row, memory_id in enumerate(self._ids)}
        for place, memory_id in enumerate(ids):
            if memory_id in rows:
                cosines[rows[memory_id], place] = -np.inf
        kept = min(self._kept, len(ids))
        floors = np.partition(cosines, len(ids) - kept, axis=1)[:, len(ids) - kept]
        for row, floor in enumerate(floors):
            if len(self._best[row]) == self._kept and self._best[row][-1][0] > floor:
                floor = self._best[row][-1][0]
            places = np.flatnonzero((cosines[row] >= floor) & np.isfinite(cosines[row])).tolist()
            found = [(float(cosines[row, place]), ids[place]) for place in places]
            self._best[row] = _first(self._best[row] + found, self._kept)

    def found(self) -> dict[UUID, dict[UUID, float]]:
        """Return the nearest of each with their cosines, the nearest first, equal ones in the order of their ids."""
        return {
            memory_id: {other: cosine for cosine, other in best}
            for memory_id, best in zip(self._ids, self._best, strict=True)
        }


def similar_enough(nearest: Mapping[UUID, float], threshold: float) -> dict[UUID, float]:
    """Return those whose cosine is above the threshold."""
    return {memory_id: cosine for memory_id, cosine in nearest.items() if cosine > threshold}


def _first(found: Iterable[tuple[float, UUID]], kept: int) -> list[tuple[float, UUID]]:
    return sorted(found, key=lambda item: (-item[0], item[1]))[:kept]


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1.0), dtype=np.float32)
