"""Precompute neighborhoods, in batches of one agent's memories.

A step reads versions first and what they are computed from afterwards, and writes only where the version still holds:
whatever changes in between leaves the neighborhood stale. It waits for no row, so it holds up no heartbeat.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import batched
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import connection

from apps.memories.services.embedding.literals import AT_ONCE, BLOCK, VectorBlock, decoded
from apps.memories.services.graph import queries
from apps.memories.services.jobs.rounds import Round, make_round
from apps.tenants.scope import current_tenant, tenant_transaction
from apps.tenants.statements import change, fetch
from arbor.memory.neighborhood import (
    BESIDE_REACH,
    Nearest,
    accepts,
    neighborhood,
    similar_enough,
    weight,
)

#: Neighborhoods of one step: the agent's vectors are read once for all of them.
BATCH = 256
#: Edges that are followed from one node, the weightiest: the hundreds at a hub say nothing about each other.
MOST_EDGES = 50
#: Sets this lock apart from others on the same agent.
_LOCK = 0x6E656967


type _Pairs = dict[UUID, dict[UUID, int]]


class _Waiting(NamedTuple):
    """A memory whose neighborhood is to be computed."""

    id: UUID
    #: Of its row, when it was read.
    version: str
    #: By id as text, as they were computed last, if ever.
    before: dict[str, float] | None
    active: bool
    vector: bytes | None


class _Fresh(NamedTuple):
    """A memory whose neighborhood is up to date, as far as is known."""

    id: UUID
    #: By id as text: thousands of them are looked at, and few are used.
    neighbors: dict[str, float]


def mark_stale(memory_ids: Collection[UUID], *, listed: bool = True) -> int:
    """Mark the neighborhoods of these memories stale; return how many were marked. One statement.

    In the open transaction, with the change itself. `listed` marks those that these memories are near to as well, whose
    own neighborhoods change with them. Ids that are no memory's are ignored.
    """
    if not memory_ids:
        return 0
    return change(queries.MARK_NEIGHBORHOODS, ids=sorted(set(memory_ids)), listed=listed, ends=[], agents=[])


def mark_around(agent_id: UUID, ends: Collection[UUID], memory_ids: Collection[UUID]) -> int:
    """Mark what an edge between these ends bears on: memories at its ends, and those one edge away. One statement."""
    return change(
        queries.MARK_NEIGHBORHOODS,
        ids=sorted(set(memory_ids)),
        listed=False,
        ends=sorted(set(ends)),
        agents=[agent_id],
    )


def mark_around_all(ends: Mapping[UUID, Collection[UUID]]) -> int:
    """Mark what edges between memories bear on, for several agents: for each agent, the ends of its edges. One statement."""
    ids = sorted({end for of_agent in ends.values() for end in of_agent})
    return change(queries.MARK_NEIGHBORHOODS, ids=ids, listed=False, ends=ids, agents=sorted(ends))


def refresh_neighborhoods() -> Round:
    """Compute stale and missing neighborhoods, agent after agent, until there are none or the round is over."""
    return make_round("neighborhoods", waiting=queries.WAITING_NEIGHBORHOODS, step=refresh_batch)


def refresh_batch(tenant_id: UUID, agent_id: UUID) -> int:
    """Compute up to BATCH neighborhoods of one agent; return how many. Ten statements at most.

    0 when another worker is at it. Those whose rows change meanwhile stay stale, and are not counted.
    """
    with tenant_transaction(tenant_id):
        if not fetch(queries.TRY_LOCK_AGENT, lock=_LOCK, agent=agent_id)[0][0]:
            return 0
        batch = [_Waiting(*row) for row in fetch(queries.STALE_NEIGHBORHOODS, agent=agent_id, batch=BATCH)]
        if not batch:
            return 0
        surroundings = _Surroundings(agent_id, batch)
        computed = surroundings.neighborhoods()
        postponed = surroundings.mark_neighbors(computed)
        return _write([row for row in batch if row.id not in postponed], computed)


class AgentVectors:
    """An agent's vectors in the open transaction. Cached between questions if they fit into one block."""

    def __init__(self, agent_id: UUID) -> None:
        self._agent_id = agent_id
        self._cached: VectorBlock | None = None

    def nearest(self, asked: Sequence[tuple[UUID, bytes | None]]) -> dict[UUID, dict[UUID, float]]:
        """Return the nearest memories of each, with their cosines; of those without a vector, nothing.

        Vectors come as `halfvec_send` gives them. Where their lengths differ, in the moment an agent is moved to another
        model, those of the commonest length are answered.
        """
        having = [(memory_id, vector) for memory_id, vector in asked if vector]
        if not having:
            return {}
        length = Counter(len(vector) for _, vector in having).most_common(1)[0][0]
        found: dict[UUID, dict[UUID, float]] = {}
        for some in batched(having, AT_ONCE, strict=False):
            search = Nearest(*decoded(some, length))
            for ids, vectors in self._blocks(length):
                search.look_at(ids, vectors)
            found |= search.found()
        return found

    def _blocks(self, length: int) -> Iterator[VectorBlock]:
        if self._cached is not None:
            yield self._cached
            return
        for number, block in enumerate(self._read(length)):
            self._cached = None if number else block
            yield block

    def _read(self, length: int) -> Iterator[VectorBlock]:
        with connection.chunked_cursor() as cursor:
            cursor.execute(queries.ALL_VECTORS, {"tenant": current_tenant(), "agent": self._agent_id})
            while rows := cursor.fetchmany(BLOCK):
                yield decoded(rows, length)


class _Surroundings:
    """The inputs from which the neighborhoods of a batch are computed."""

    def __init__(self, agent_id: UUID, batch: Sequence[_Waiting]) -> None:
        self._batch = [row for row in batch if row.active]
        ids = [row.id for row in self._batch]
        self._vectors = AgentVectors(agent_id)
        nearest = self._vectors.nearest([(row.id, row.vector) for row in self._batch])
        threshold = settings.ARBOR_NEIGHBOR_SIMILARITY
        self._similar = {
            memory_id: similar_enough(nearest.get(memory_id, {}), threshold) for memory_id in ids
        }
        self._hops: _Pairs = {memory_id: {} for memory_id in ids}
        for root, other, hops in fetch(
            queries.NODES_WITHIN_TWO_HOPS, agent=agent_id, ids=ids, most=MOST_EDGES
        ):
            self._hops[root][other] = hops
        self._beside: dict[UUID, set[UUID]] = {memory_id: set() for memory_id in ids}
        for root, other in fetch(queries.BESIDE_IN_EPISODE, agent=agent_id, ids=ids, reach=BESIDE_REACH):
            self._beside[root].add(other)

    def neighborhoods(self) -> dict[UUID, dict[UUID, float]]:
        """Return the neighborhood of each memory of the batch that is active."""
        return {
            row.id: neighborhood(
                hops=self._hops[row.id],
                similar=self._similar[row.id],
                beside=self._beside[row.id],
            )
            for row in self._batch
        }

    def mark_neighbors(self, computed: Mapping[UUID, Mapping[UUID, float]]) -> set[UUID]:
        """Mark the neighborhoods stale that these memories are new to and would enter.

        Only what is new to a neighborhood marks another, so that a round comes to rest. Returns the memories whose
        neighbors another worker had locked: they are computed again at the next step.
        """
        met: dict[UUID, set[UUID]] = {}
        for waiting in self._batch:
            for other in computed[waiting.id]:
                if other not in computed and str(other) not in (waiting.before or ()):
                    met.setdefault(other, set()).add(waiting.id)
        fresh = [_Fresh(*row) for row in fetch(queries.FRESH_NEIGHBORHOODS, ids=sorted(met))] if met else []
        takers = self._takers(fresh, met)
        marked = {row[0] for row in fetch(queries.MARK_FRESH_STALE, ids=sorted(takers))} if takers else set()
        return {root for other, roots in takers.items() if other not in marked for root in roots}

    def _takers(self, fresh: Sequence[_Fresh], met: Mapping[UUID, set[UUID]]) -> dict[UUID, set[UUID]]:
        """Return which neighbors would take which memories of the batch in, that they lack."""
        takers: dict[UUID, set[UUID]] = {}
        by_meaning: dict[UUID, set[UUID]] = {}
        for other in fresh:
            weights = other.neighbors.values()
            for root in met[other.id]:
                if str(root) in other.neighbors:
                    continue
                hops, beside = self._hops[root].get(other.id), other.id in self._beside[root]
                similarity = self._similar[root].get(other.id)
                if accepts(weights, weight(hops=hops, beside=beside)):
                    takers.setdefault(other.id, set()).add(root)
                elif accepts(weights, weight(hops=hops, similarity=similarity, beside=beside)):
                    by_meaning.setdefault(other.id, set()).add(root)
        # It is among the nearest of the one; only where that decides is it asked whether it is of the other, too.
        asked = fetch(queries.VECTORS_OF, ids=sorted(by_meaning)) if by_meaning else []
        for other_id, nearest in self._vectors.nearest([(row[0], row[1]) for row in asked]).items():
            if roots := by_meaning[other_id] & nearest.keys():
                takers.setdefault(other_id, set()).update(roots)
        return takers


def _write(batch: Sequence[_Waiting], computed: Mapping[UUID, Mapping[UUID, float]]) -> int:
    """Store the neighborhoods of a batch; an archived memory keeps the one it had."""
    rows = []
    for row in batch:
        found = computed.get(row.id)
        neighbors = row.before if found is None else {str(other): worth for other, worth in found.items()}
        rows.append({"id": str(row.id), "version": row.version, "neighbors": neighbors})
    return change(queries.WRITE_NEIGHBORHOODS, rows=json.dumps(rows))
