"""Memories that stand alone and say nearly the same as others: among those that stand, and within a batch."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import batched
from uuid import UUID

import numpy as np
from django.conf import settings
from django.db import connection

from apps.memories.services.embedding import Vectors
from apps.memories.services.literals import halfvec_texts
from apps.memories.services.reinforcement import COLUMNS, Standing
from apps.memories.services.vectors import AT_ONCE, BLOCK, decoded
from apps.tenants.scope import current_tenant
from apps.tenants.statements import fetch
from arbor.memory.duplicates import says_the_same
from arbor.memory.values import NewMemory

#: Near ones that are looked at for each memory: the nearest may say something else (`says_the_same`).
_LOOKED_AT = 20
#: From so many memories on, the agent's vectors are read once for all of them instead of scanned for each.
_IN_BULK = 8
#: Before the numbers of a `halfvec` on the wire stand four bytes, and each takes two.
_HEAD_BYTES, _NUMBER_BYTES = 4, 2

_ALONE = """
tenant_id = %(tenant)s AND agent_id = %(agent)s AND status = 'active' AND session = '' AND embedding IS NOT NULL
    AND (expires_at IS NULL OR expires_at > now())
"""
# Only what stands alone: conversations fall out of the index before their vectors are looked at. All that is wanted of a
# memory is taken where it is found: joined by id it would be sought in all of the tenant's, for the planner expects many.
_NEAR = f"""
SELECT r.number, found.*
FROM json_to_recordset(%(rows)s::json) AS r(number int, embedding halfvec)
CROSS JOIN LATERAL (
    SELECT -(m.embedding <#> r.embedding) AS similarity, {COLUMNS} FROM memories_memory m
    WHERE {_ALONE} AND -(m.embedding <#> r.embedding) >= %(least)s
    ORDER BY m.embedding <#> r.embedding LIMIT {_LOOKED_AT}
) found
ORDER BY r.number, found.similarity DESC
"""  # noqa: S608 (our own words)
_VECTORS = f"SELECT id, halfvec_send(embedding) FROM memories_memory WHERE {_ALONE}"  # noqa: S608
_HITS = (
    f"SELECT {COLUMNS} FROM memories_memory m WHERE m.tenant_id = %(tenant)s AND m.id = ANY(%(ids)s::uuid[])"  # noqa: S608
)

type _Similar = list[tuple[float, Standing]]


def find_near(
    agent_id: UUID,
    memories: Mapping[int, NewMemory],
    vectors: Vectors | None,
) -> dict[int, _Similar]:
    """Return, by the number of each memory that has some, those that say the same, with their cosines, nearest first.

    None without a memory that stands alone and has a vector; for a few memories one statement, for many the agent's
    vectors are read once, and those that are near enough after them.
    """
    alone = [number for number, memory in memories.items() if not memory.session]
    if not alone or vectors is None or settings.ARBOR_DUPLICATE_SIMILARITY > 1:
        return {}
    hits = _scan(agent_id, alone, vectors) if len(alone) < _IN_BULK else _compare(agent_id, alone, vectors)
    found: dict[int, _Similar] = defaultdict(list)
    for number, similarity, standing in hits:
        if same_meaning(standing, memories[number]):
            found[number].append((similarity, standing))
    return found


def same_meaning(standing: Standing, memory: NewMemory) -> bool:
    """Return whether a memory of nearly the same meaning says the same, as the same kind of thing."""
    return standing.type is memory.type and says_the_same(standing.content, memory.content)


def _scan(agent_id: UUID, numbers: Sequence[int], vectors: Vectors) -> Iterator[tuple[int, float, Standing]]:
    literals = halfvec_texts(vectors[list(numbers)])
    asked = [
        {"number": number, "embedding": literal} for number, literal in zip(numbers, literals, strict=True)
    ]
    least = settings.ARBOR_DUPLICATE_SIMILARITY
    # Two memories may be near the same one.
    standings: dict[UUID, Standing] = {}
    for number, similarity, *row in fetch(_NEAR, agent=agent_id, rows=json.dumps(asked), least=least):
        yield number, similarity, standings.setdefault(row[0], Standing.of_row(row))


def _compare(
    agent_id: UUID, numbers: Sequence[int], vectors: Vectors
) -> Iterator[tuple[int, float, Standing]]:
    hits: dict[int, list[tuple[float, UUID]]] = defaultdict(list)
    length = _HEAD_BYTES + _NUMBER_BYTES * vectors.shape[1]
    with connection.chunked_cursor() as cursor:
        cursor.execute(_VECTORS, {"tenant": current_tenant(), "agent": agent_id})
        while rows := cursor.fetchmany(BLOCK):
            ids, block = decoded(rows, length)
            for some in batched(numbers, AT_ONCE, strict=False):
                _look_at(hits, some, vectors[list(some)] @ block.T, ids)
    nearest = {number: sorted(near, key=lambda each: -each[0])[:_LOOKED_AT] for number, near in hits.items()}
    named = {each for near in nearest.values() for _, each in near}
    standings = {row[0]: Standing.of_row(row) for row in fetch(_HITS, ids=list(named))} if named else {}
    for number, near in nearest.items():
        for similarity, each in near:
            yield number, similarity, standings[each]


def _look_at(
    hits: dict[int, list[tuple[float, UUID]]], numbers: Sequence[int], cosines: Vectors, ids: Sequence[UUID]
) -> None:
    near = cosines >= settings.ARBOR_DUPLICATE_SIMILARITY
    for row in np.flatnonzero(near.any(axis=1)).tolist():
        places = np.flatnonzero(near[row])
        best = places[np.argsort(-cosines[row, places], kind="stable")[:_LOOKED_AT]]
        hits[numbers[row]] += [(float(cosines[row, place]), ids[place]) for place in best]


class Alike:
    """The new memories of one batch that stand alone, and which of them are nearly the same."""

    def __init__(self, memories: Mapping[int, NewMemory], vectors: Vectors | None) -> None:
        self._memories = memories
        self._numbers = [number for number, memory in memories.items() if not memory.session]
        self._standings: dict[int, Standing] = {}
        self._near: dict[int, list[tuple[float, int]]] = defaultdict(list)
        if vectors is not None and len(self._numbers) > 1:
            rows = vectors[self._numbers]
            cosines = rows @ rows.T
            np.fill_diagonal(cosines, -1)
            for one, other in np.argwhere(cosines >= settings.ARBOR_DUPLICATE_SIMILARITY):
                self._near[self._numbers[one]].append((float(cosines[one, other]), self._numbers[other]))

    def add(self, number: int, standing: Standing) -> None:
        """Take note of a memory that will be written."""
        self._standings[number] = standing

    def near(self, number: int, stored: _Similar) -> list[Standing]:
        """Return what says the same as this memory, of `stored` and of the batch so far, the nearest first."""
        memory = self._memories.get(number)
        found = [*stored]
        for similarity, other in self._near.get(number, ()):
            standing = self._standings.get(other)
            if standing is not None and memory is not None and same_meaning(standing, memory):
                found.append((similarity, standing))
        return [standing for _, standing in sorted(found, key=lambda each: -each[0])]
