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
#: Waiting agents that one query returns; the others follow when these are done.
_MOST_AGENTS = 2_000

# Jumps from agent to agent in the index; how many of its memories wait makes no difference. In any order, so that no
# agent is always the last.
_WAITING = f"""
SELECT agent_id FROM (
    WITH RECURSIVE agents AS (
        (SELECT agent_id FROM memories_upkeep WHERE tenant_id = t.id AND stale ORDER BY agent_id LIMIT 1)
        UNION ALL
        SELECT (
            SELECT u.agent_id FROM memories_upkeep u WHERE u.tenant_id = t.id AND u.stale AND u.agent_id > agents.agent_id
            ORDER BY u.agent_id LIMIT 1
        ) FROM agents WHERE agents.agent_id IS NOT NULL
    )
    SELECT agent_id FROM agents WHERE agent_id IS NOT NULL LIMIT {_MOST_AGENTS}
) stale ORDER BY random()
"""  # noqa: S608 (our own number)
_LOCK_AGENT = "SELECT pg_try_advisory_xact_lock(%(lock)s, hashtext(%(agent)s::text))"
# `xmin` names the transaction that wrote this version of the row.
_CLAIM = """
WITH waiting AS MATERIALIZED (
    SELECT memory_id, xmin::text AS version, neighbors FROM memories_upkeep
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND stale ORDER BY memory_id DESC LIMIT %(batch)s
)
SELECT w.memory_id, w.version, w.neighbors::json, m.status = 'active', halfvec_send(m.embedding)
FROM waiting w JOIN memories_memory m ON m.tenant_id = %(tenant)s AND m.id = w.memory_id
"""
_AROUND = """
SELECT e.kind, e.id FROM (
    SELECT target_kind AS kind, target_id AS id, weight FROM memories_edge
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND source_id = {start}
    UNION ALL
    SELECT source_kind, source_id, weight FROM memories_edge
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND target_id = {start}
    ORDER BY weight DESC, id LIMIT %(most)s
) e
"""
_HOPS = f"""
WITH one AS MATERIALIZED (
    SELECT start.id AS root, near.kind, near.id
    FROM unnest(%(ids)s::uuid[]) start (id) CROSS JOIN LATERAL ({_AROUND.format(start="start.id")}) near
), reached AS (
    SELECT root, kind, id, 1 AS hops FROM one
    UNION ALL
    SELECT one.root, near.kind, near.id, 2 FROM one CROSS JOIN LATERAL ({_AROUND.format(start="one.id")}) near
)
SELECT r.root, r.id, min(r.hops) FROM reached r
JOIN memories_memory m ON m.tenant_id = %(tenant)s AND m.id = r.id AND m.agent_id = %(agent)s AND m.status = 'active'
WHERE r.kind = 'memory' AND r.id <> r.root GROUP BY r.root, r.id
"""  # noqa: S608
_BESIDE = """
SELECT m.id, o.id FROM memories_memory m
JOIN memories_memory o ON o.tenant_id = %(tenant)s AND o.episode_id = m.episode_id AND o.id <> m.id
    AND o.sequence BETWEEN m.sequence - %(reach)s AND m.sequence + %(reach)s
    AND o.agent_id = %(agent)s AND o.status = 'active'
WHERE m.tenant_id = %(tenant)s AND m.id = ANY(%(ids)s::uuid[])
"""
_FRESH = """
SELECT u.memory_id, u.neighbors::json FROM memories_upkeep u
JOIN memories_memory m ON m.tenant_id = %(tenant)s AND m.id = u.memory_id AND m.status = 'active'
WHERE u.tenant_id = %(tenant)s AND u.memory_id = ANY(%(ids)s::uuid[]) AND NOT u.stale AND u.neighbors IS NOT NULL
"""
_VECTORS_OF = """
SELECT id, halfvec_send(embedding) FROM memories_memory WHERE tenant_id = %(tenant)s AND id = ANY(%(ids)s::uuid[])
"""
_MARK_FRESH = """
WITH mine AS MATERIALIZED (
    SELECT memory_id FROM memories_upkeep
    WHERE tenant_id = %(tenant)s AND memory_id = ANY(%(ids)s::uuid[]) AND NOT stale
    ORDER BY memory_id FOR UPDATE SKIP LOCKED
)
UPDATE memories_upkeep u SET stale = true FROM mine
WHERE u.tenant_id = %(tenant)s AND u.memory_id = mine.memory_id RETURNING u.memory_id
"""
_WRITE = """
WITH mine AS MATERIALIZED (
    SELECT u.memory_id, r.neighbors
    FROM json_to_recordset(%(rows)s::json) AS r (id uuid, version text, neighbors jsonb)
    JOIN memories_upkeep u ON u.tenant_id = %(tenant)s AND u.memory_id = r.id AND u.xmin::text = r.version
    ORDER BY u.memory_id FOR UPDATE OF u SKIP LOCKED
)
UPDATE memories_upkeep u SET neighbors = mine.neighbors, computed_at = now(), stale = false
FROM mine WHERE u.tenant_id = %(tenant)s AND u.memory_id = mine.memory_id
"""
# Marked again, a row gets a new version even if it was stale: a step that is under way must not take it for done.
_MARK = """
WITH touched AS (
    SELECT unnest(%(ids)s::uuid[]) AS id
    UNION
    SELECT neighbor::uuid FROM memories_upkeep u, jsonb_object_keys(u.neighbors) neighbor
    WHERE %(listed)s AND u.tenant_id = %(tenant)s AND u.memory_id = ANY(%(ids)s::uuid[])
    UNION
    SELECT near.id FROM memories_edge e CROSS JOIN LATERAL (
        VALUES (e.source_kind, e.source_id), (e.target_kind, e.target_id)
    ) near (kind, id)
    WHERE e.tenant_id = %(tenant)s AND e.agent_id = ANY(%(agents)s::uuid[]) AND near.kind = 'memory'
        AND (e.source_id = ANY(%(ends)s::uuid[]) OR e.target_id = ANY(%(ends)s::uuid[]))
)
INSERT INTO memories_upkeep (tenant_id, memory_id, agent_id, stale, unclustered, unextracted, unweighed)
SELECT m.tenant_id, m.id, m.agent_id, true, true, true, false
FROM touched JOIN memories_memory m ON m.tenant_id = %(tenant)s AND m.id = touched.id ORDER BY m.id
ON CONFLICT (tenant_id, memory_id) DO UPDATE SET stale = true
"""

# All vectors of the mind, in blocks.
_VECTORS = """
SELECT id, halfvec_send(embedding) FROM memories_memory
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND status = 'active' AND embedding IS NOT NULL
    AND (expires_at IS NULL OR expires_at > now())
"""

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
    return change(_MARK, ids=sorted(set(memory_ids)), listed=listed, ends=[], agents=[])


def mark_around(agent_id: UUID, ends: Collection[UUID], memory_ids: Collection[UUID]) -> int:
    """Mark what an edge between these ends bears on: memories at its ends, and those one edge away. One statement."""
    return change(_MARK, ids=sorted(set(memory_ids)), listed=False, ends=sorted(set(ends)), agents=[agent_id])


def mark_around_all(ends: Mapping[UUID, Collection[UUID]]) -> int:
    """Mark what edges between memories bear on, for several agents: for each agent, the ends of its edges. One statement."""
    ids = sorted({end for of_agent in ends.values() for end in of_agent})
    return change(_MARK, ids=ids, listed=False, ends=ids, agents=sorted(ends))


def refresh_neighborhoods() -> Round:
    """Compute stale and missing neighborhoods, agent after agent, until there are none or the round is over."""
    return make_round("neighborhoods", waiting=_WAITING, tend=refresh_batch)


def refresh_batch(tenant_id: UUID, agent_id: UUID) -> int:
    """Compute up to BATCH neighborhoods of one agent; return how many. Ten statements at most.

    0 when another worker is at it. Those whose rows change meanwhile stay stale, and are not counted.
    """
    with tenant_transaction(tenant_id):
        if not fetch(_LOCK_AGENT, lock=_LOCK, agent=agent_id)[0][0]:
            return 0
        batch = [_Waiting(*row) for row in fetch(_CLAIM, agent=agent_id, batch=BATCH)]
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
            cursor.execute(_VECTORS, {"tenant": current_tenant(), "agent": self._agent_id})
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
        for root, other, hops in fetch(_HOPS, agent=agent_id, ids=ids, most=MOST_EDGES):
            self._hops[root][other] = hops
        self._beside: dict[UUID, set[UUID]] = {memory_id: set() for memory_id in ids}
        for root, other in fetch(_BESIDE, agent=agent_id, ids=ids, reach=BESIDE_REACH):
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
        fresh = [_Fresh(*row) for row in fetch(_FRESH, ids=sorted(met))] if met else []
        takers = self._takers(fresh, met)
        marked = {row[0] for row in fetch(_MARK_FRESH, ids=sorted(takers))} if takers else set()
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
        asked = fetch(_VECTORS_OF, ids=sorted(by_meaning)) if by_meaning else []
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
    return change(_WRITE, rows=json.dumps(rows))
