"""A memory's neighborhood: what comes to mind with it, weighed by how they belong together (seed 004, 6.3)."""

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
#: What standing near in the same episode adds, and what near is.
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
        each: weight(hops=hops.get(each), similarity=similar.get(each), beside=each in beside)
        for each in {*hops, *similar, *beside}
    }
    best = sorted((each for each in weighed.items() if each[1] > 0), key=lambda each: (-each[1], each[0]))
    return dict(best[:KEPT])


def accepts(weights: Collection[float], newcomer: float) -> bool:
    """Tell whether a newcomer of this weight would enter a neighborhood of these weights, which lacks it."""
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
        """Take a block of memories into account; `vectors` is (len(ids), dimension)."""
        if not self._ids or not ids:
            return
        cosines = np.round(self._vectors @ _unit(vectors).T, _PLACES)
        rows = {each: row for row, each in enumerate(self._ids)}
        for place, each in enumerate(ids):
            if each in rows:
                cosines[rows[each], place] = -np.inf
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
            each: {other: cosine for cosine, other in best}
            for each, best in zip(self._ids, self._best, strict=True)
        }


def similar_enough(nearest: Mapping[UUID, float], threshold: float) -> dict[UUID, float]:
    """Return those whose cosine is above the threshold."""
    return {each: cosine for each, cosine in nearest.items() if cosine > threshold}


def _first(found: Iterable[tuple[float, UUID]], kept: int) -> list[tuple[float, UUID]]:
    return sorted(found, key=lambda each: (-each[0], each[1]))[:kept]


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1.0), dtype=np.float32)
