"""Precompute neighborhoods, in batches of one agent's memories.

A step reads the versions of rows before the inputs, and writes only rows that still have that version: after a change in
between, the neighborhood stays stale. Locked rows are skipped, so that no heartbeat waits.
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

from apps.memories.services.embedding.literals import BLOCK, COMPARED_AT_ONCE, VectorBlock, decode_vectors
from apps.memories.services.graph import queries
from apps.memories.services.jobs.job_runs import JobRunResult, run_job
from apps.tenants.scope import current_tenant, tenant_transaction
from apps.tenants.statements import change, fetch
from arbor.memory.neighborhood import (
    BESIDE_REACH,
    NearestSearch,
    neighbor_weight,
    neighborhood,
    similar_enough,
    would_enter,
)

#: The most neighborhoods computed in one step, for which the agent's vectors are read once.
BATCH = 256
#: The most edges followed from one node, by weight: the neighbors of a hub with hundreds of edges are hardly related.
MAX_EDGES = 50
#: The namespace of this advisory lock on an agent.
_LOCK = 0x6E656967


class _Waiting(NamedTuple):
    """A memory whose neighborhood is to be computed."""

    id: UUID
    #: The version of the row when it was read.
    version: str
    #: The previous neighbors: weights by id as text; None if never computed.
    before: dict[str, float] | None
    active: bool
    vector: bytes | None


class _Fresh(NamedTuple):
    """A memory whose neighborhood is not stale."""

    id: UUID
    #: Weights by id as text, because only few of thousands are converted.
    neighbors: dict[str, float]


def mark_stale(memory_ids: Collection[UUID], *, with_neighbors: bool = True) -> int:
    """Mark the neighborhoods of memories stale, and by default those of their neighbors; return how many were marked. One statement.

    Call this in the transaction of the change itself. Unknown ids are ignored.
    """
    if not memory_ids:
        return 0
    return change(
        queries.MARK_NEIGHBORHOODS,
        ids=sorted(set(memory_ids)),
        with_neighbors=with_neighbors,
        ends=[],
        agents=[],
    )


def mark_around(agent_id: UUID, *, ends: Collection[UUID], memory_ids: Collection[UUID]) -> int:
    """Mark the neighborhoods stale that an edge affects: of memories at its ends and one edge away. One statement.

    `memory_ids` are the memories among the `ends`.
    """
    return change(
        queries.MARK_NEIGHBORHOODS,
        ids=sorted(set(memory_ids)),
        with_neighbors=False,
        ends=sorted(set(ends)),
        agents=[agent_id],
    )


def mark_around_all(ends: Mapping[UUID, Collection[UUID]]) -> int:
    """Mark the neighborhoods stale that edges of several agents affect; `ends` are memory ids by agent. One statement."""
    ids = sorted({end for of_agent in ends.values() for end in of_agent})
    return change(queries.MARK_NEIGHBORHOODS, ids=ids, with_neighbors=False, ends=ids, agents=sorted(ends))


def refresh_neighborhoods() -> JobRunResult:
    """Compute stale and missing neighborhoods, agent after agent, until none is left or the run's time is over."""
    return run_job("neighborhoods", waiting=queries.WAITING_NEIGHBORHOODS, step=refresh_batch)


def refresh_batch(tenant_id: UUID, agent_id: UUID) -> int:
    """Compute up to BATCH neighborhoods of one agent; return their number. Ten statements at most.

    Returns 0 while another worker has the agent's lock. Rows that change in the meantime stay stale and are not counted.
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
    """The vectors of an agent, read in the open transaction, and cached between searches if they fit into one block."""

    def __init__(self, agent_id: UUID) -> None:
        self._agent_id = agent_id
        #: The only block, by the length of its vectors in bytes.
        self._cached: dict[int, VectorBlock] = {}

    def nearest(self, memories: Sequence[tuple[UUID, bytes | None]]) -> dict[UUID, dict[UUID, float]]:
        """Return the nearest memories of each memory with a vector, with their cosines.

        Vectors are bytes of `halfvec_send`. If their lengths differ, while an agent moves to another model, only vectors of
        the most frequent length are compared.
        """
        embedded = [(memory_id, vector) for memory_id, vector in memories if vector]
        if not embedded:
            return {}
        length = Counter(len(vector) for _, vector in embedded).most_common(1)[0][0]
        nearest: dict[UUID, dict[UUID, float]] = {}
        for chunk in batched(embedded, COMPARED_AT_ONCE, strict=False):
            search = NearestSearch(*decode_vectors(chunk, length))
            for ids, vectors in self._blocks(length):
                search.compare_block(ids, vectors)
            nearest |= search.found()
        return nearest

    def _blocks(self, length: int) -> Iterator[VectorBlock]:
        if length in self._cached:
            yield self._cached[length]
            return
        for number, block in enumerate(self._read(length)):
            self._cached = {} if number else {length: block}
            yield block

    def _read(self, length: int) -> Iterator[VectorBlock]:
        with connection.chunked_cursor() as cursor:
            cursor.execute(queries.ALL_VECTORS, {"tenant": current_tenant(), "agent": self._agent_id})
            while rows := cursor.fetchmany(BLOCK):
                yield decode_vectors(rows, length)


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
        self._hops: dict[UUID, dict[UUID, int]] = {memory_id: {} for memory_id in ids}
        for root, other, hops in fetch(
            queries.MEMORIES_WITHIN_TWO_HOPS, agent=agent_id, ids=ids, most=MAX_EDGES
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
        """Mark the neighborhoods stale that memories of the batch would enter as new neighbors.

        A memory marks only its new neighbors, so that the marking ends. Returns the memories of the batch that could not mark a
        neighbor, because another worker had locked its row; the next step computes them again.
        """
        new_roots: dict[UUID, set[UUID]] = {}
        for waiting in self._batch:
            for other in computed[waiting.id]:
                if other not in computed and str(other) not in (waiting.before or ()):
                    new_roots.setdefault(other, set()).add(waiting.id)
        fresh = (
            [_Fresh(*row) for row in fetch(queries.FRESH_NEIGHBORHOODS, ids=sorted(new_roots))]
            if new_roots
            else []
        )
        entered = self._entered_neighborhoods(fresh, new_roots)
        marked = (
            {row[0] for row in fetch(queries.MARK_FRESH_STALE, ids=sorted(entered))} if entered else set()
        )
        return {root for other, roots in entered.items() if other not in marked for root in roots}

    def _entered_neighborhoods(
        self, fresh: Sequence[_Fresh], new_roots: Mapping[UUID, set[UUID]]
    ) -> dict[UUID, set[UUID]]:
        """Return the memories of the batch that would enter the neighborhood of each neighbor, by neighbor."""
        entered: dict[UUID, set[UUID]] = {}
        by_meaning: dict[UUID, set[UUID]] = {}
        for other in fresh:
            weights = other.neighbors.values()
            for root in new_roots[other.id]:
                if str(root) in other.neighbors:
                    continue
                hops, beside = self._hops[root].get(other.id), other.id in self._beside[root]
                similarity = self._similar[root].get(other.id)
                if would_enter(weights, neighbor_weight(hops=hops, beside=beside)):
                    entered.setdefault(other.id, set()).add(root)
                elif would_enter(weights, neighbor_weight(hops=hops, similarity=similarity, beside=beside)):
                    by_meaning.setdefault(other.id, set()).add(root)
        # Nearness must be mutual, so the neighbors for which similarity decides are searched from their side too.
        rows = fetch(queries.VECTORS_OF, ids=sorted(by_meaning)) if by_meaning else []
        for other_id, nearest in self._vectors.nearest([(row[0], row[1]) for row in rows]).items():
            if roots := by_meaning[other_id] & nearest.keys():
                entered.setdefault(other_id, set()).update(roots)
        return entered


def _write(batch: Sequence[_Waiting], computed: Mapping[UUID, Mapping[UUID, float]]) -> int:
    """Store the neighborhoods of a batch and return their number; the neighborhood of an archived memory stays unchanged."""
    rows = []
    for row in batch:
        neighbors = computed.get(row.id)
        stored = (
            row.before if neighbors is None else {str(other): weight for other, weight in neighbors.items()}
        )
        rows.append({"id": str(row.id), "version": row.version, "neighbors": stored})
    return change(queries.WRITE_NEIGHBORHOODS, rows=json.dumps(rows), ids=[row.id for row in batch])
