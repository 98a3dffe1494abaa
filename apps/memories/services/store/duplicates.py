"""Find near duplicates of memories without a session, among stored and new memories."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import batched
from typing import Any
from uuid import UUID

import numpy as np
from django.conf import settings
from django.db import connection

from apps.memories.services.embedding.literals import (
    BLOCK,
    COMPARED_AT_ONCE,
    decode_vectors,
    halfvec_length,
)
from apps.memories.services.store import queries
from apps.memories.services.store.reinforcement import PlacedMemory
from apps.tenants.encoding import to_json
from apps.tenants.postgresql.arrays import Reals
from apps.tenants.scope import current_tenant
from apps.tenants.statements import fetch
from arbor.embedding.ports import Vectors
from arbor.memory.duplicates import says_the_same
from arbor.memory.values import NewMemory

#: The number of new memories from which an agent's vectors are read once, instead of scanned for each memory.
_MIN_BULK = 8

#: A near memory: its cosine, and its row, whose columns are `queries.PLACED_COLUMNS`.
type Hit = tuple[float, Sequence[Any]]
#: The near memories of each new memory, by the number of the new memory, the nearest first.
type Hits = Mapping[int, Sequence[Hit]]
#: Memories with their cosines.
type ScoredMemories = list[tuple[float, PlacedMemory]]


@dataclass(frozen=True, kw_only=True)
class NearSearch:
    """New memories of one agent to compare with its existing ones; `numbers` are their rows in `vectors`."""

    agent_id: UUID
    numbers: Sequence[int]
    vectors: Vectors


def find_near(searches: Sequence[NearSearch]) -> list[Hits]:
    """Return the near memories for each search, by their vectors alone, at most MAX_COMPARED for each new memory.

    One statement for all searches of a few memories. A search of many takes two: one reads the agent's vectors, one the
    rows of the near memories.
    """
    few = {place: search for place, search in enumerate(searches) if len(search.numbers) < _MIN_BULK}
    found = _scan(few) if few else {}
    return [
        found.get(place, {}) if place in few else _compare(search) for place, search in enumerate(searches)
    ]


def is_compared(memory: NewMemory) -> bool:
    """Return whether a memory is compared with others by its vector: it has no session, and the settings do not exclude that."""
    return not memory.session and settings.ARBOR_DUPLICATE_SIMILARITY <= 1


def by_nearness(near: tuple[float, PlacedMemory]) -> tuple[float, UUID]:
    """Return a sort key: the nearest first, then the oldest. Cosines are rounded, because those of numpy and PostgreSQL differ slightly."""
    return -round(near[0], 5), near[1].id


def has_same_meaning(placed: PlacedMemory, memory: NewMemory) -> bool:
    """Return whether two near memories have the same type and the same statement."""
    return placed.type is memory.type and says_the_same(placed.content, memory.content)


def _scan(searches: Mapping[int, NearSearch]) -> Mapping[int, Hits]:
    rows, vectors, first = [], [], 1
    for place, search in searches.items():
        dimension = search.vectors.shape[1]
        for number in search.numbers:
            last = first + dimension - 1
            rows.append((place, number, search.agent_id, first, last))
            vectors.append(search.vectors[number])
            first = last + 1
    found: dict[int, dict[int, list[Hit]]] = defaultdict(lambda: defaultdict(list))
    names = ("search", "number", "agent", "first", "last")
    for place, number, similarity, *row in fetch(
        queries.NEAR_DUPLICATES,
        rows=to_json([dict(zip(names, row, strict=True)) for row in rows]),
        numbers=Reals(np.concatenate(vectors)),
        least=settings.ARBOR_DUPLICATE_SIMILARITY,
    ):
        found[place][number].append((similarity, row))
    return found


def _compare(search: NearSearch) -> Hits:
    hits: dict[int, list[tuple[float, UUID]]] = defaultdict(list)
    length = halfvec_length(search.vectors.shape[1])
    with connection.chunked_cursor() as cursor:
        cursor.execute(queries.VECTORS_ALONE, {"tenant": current_tenant(), "agent": search.agent_id})
        while rows := cursor.fetchmany(BLOCK):
            ids, block = decode_vectors(rows, length)
            for numbers in batched(search.numbers, COMPARED_AT_ONCE, strict=False):
                _add_near(hits, numbers, search.vectors[list(numbers)] @ block.T, ids)
    nearest = {number: sorted(near, key=_hit_order)[: queries.MAX_COMPARED] for number, near in hits.items()}
    named = {memory_id for near in nearest.values() for _, memory_id in near}
    found = {row[0]: row for row in fetch(queries.ROWS_OF, ids=list(named))} if named else {}
    return {
        number: [(cosine, found[memory_id]) for cosine, memory_id in near] for number, near in nearest.items()
    }


def _hit_order(hit: tuple[float, UUID]) -> tuple[float, UUID]:
    return -hit[0], hit[1]


def _add_near(
    hits: dict[int, list[tuple[float, UUID]]], numbers: Sequence[int], cosines: Vectors, ids: Sequence[UUID]
) -> None:
    near = cosines >= settings.ARBOR_DUPLICATE_SIMILARITY
    for row in np.flatnonzero(near.any(axis=1)).tolist():
        places = np.flatnonzero(near[row])
        best = places[np.argsort(-cosines[row, places], kind="stable")[: queries.MAX_COMPARED]]
        hits[numbers[row]] += [(float(cosines[row, place]), ids[place]) for place in best]


class UnwrittenMemories:
    """The memories of one agent that earlier steps placed and that are not written yet, compared as `find_near` compares rows."""

    def __init__(self) -> None:
        self._placed: list[PlacedMemory] = []
        self._vectors: list[Vectors] = []

    def add(self, placed: PlacedMemory, vector: Vectors) -> None:
        """Add a memory without a session, with its vector."""
        self._placed.append(placed)
        self._vectors.append(_as_stored(vector))

    def clear(self) -> None:
        """Remove all memories, once they are written."""
        self._placed.clear()
        self._vectors.clear()

    def near(self, vector: Vectors) -> Iterator[tuple[float, PlacedMemory]]:
        """Yield the memories that are near to a vector, with their cosines."""
        if self._placed:
            cosines = np.stack(self._vectors) @ _as_stored(vector)
            for place in np.flatnonzero(cosines >= settings.ARBOR_DUPLICATE_SIMILARITY).tolist():
                yield float(cosines[place]), self._placed[place]


def _as_stored(vector: Vectors) -> Vectors:
    """Round a vector to half precision, as the database stores it."""
    return vector.astype(np.float16).astype(np.float32)


class StepDuplicates:
    """The new memories of one step without a session, and the near duplicates among them."""

    def __init__(self, memories: Mapping[int, NewMemory], vectors: Vectors | None) -> None:
        self._memories = memories
        self._placed: dict[int, PlacedMemory] = {}
        self._near: dict[int, list[tuple[float, int]]] = defaultdict(list)
        numbers = [number for number, memory in memories.items() if not memory.session]
        if vectors is not None and len(numbers) > 1:
            rows = vectors[numbers]
            cosines = rows @ rows.T
            np.fill_diagonal(cosines, -1)
            for first, other in np.argwhere(cosines >= settings.ARBOR_DUPLICATE_SIMILARITY).tolist():
                self._near[numbers[first]].append((float(cosines[first, other]), numbers[other]))

    def add(self, number: int, placed: PlacedMemory) -> None:
        """Add a memory that will be written."""
        self._placed[number] = placed

    def near(self, number: int, found: ScoredMemories) -> list[PlacedMemory]:
        """Return the memories with the same meaning as a new memory, of `found` and of the step so far, the nearest first."""
        memory = self._memories.get(number)
        near = [*found]
        for similarity, other in self._near.get(number, ()):
            placed = self._placed.get(other)
            if placed is not None and memory is not None and has_same_meaning(placed, memory):
                near.append((similarity, placed))
        return [placed for _, placed in sorted(near, key=by_nearness)]
