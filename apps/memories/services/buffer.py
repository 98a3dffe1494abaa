"""Holding things for a while: one statement to hold, one to search, and a job that keeps what mattered."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.memories.services.forgetting import ACTOR
from apps.memories.services.literals import fitting, sparsevec_text
from apps.memories.services.minds import QUERY_VECTOR, query_vector
from apps.memories.services.remember import remember
from apps.memories.services.rounds import Round, make_round
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import change, fetch
from arbor.embedding.models import EmbeddingModel
from arbor.errors import LimitReached, NotFound
from arbor.ids import uuid7
from arbor.memory.buffer import CAPACITY, MATTERS_AFTER, MATTERS_FROM, NEAR, SHARED, ToHold, shared_words
from arbor.memory.content import content_hash
from arbor.memory.decay import effective_importance
from arbor.memory.lexical import document_vector
from arbor.memory.recall_request import check_query
from arbor.memory.values import NewMemory

#: Things that one step promotes: their texts are embedded together.
STEP = 50

# Written out, as it is in the index of what matters.
_MATTERS = f"promoted_to_id IS NULL AND (importance >= {MATTERS_FROM} OR accesses >= {MATTERS_AFTER})"
# Held again, a thing is held longer. What makes room: what was promoted, then the least important, then the oldest.
_HOLD = """
WITH incoming AS (
    SELECT * FROM json_to_recordset(%(rows)s::json)
        AS r(id uuid, content text, content_hash text, role text, importance float8, source text, lexical sparsevec,
            lasts float8)
), room AS (
    DELETE FROM memories_bufferitem b USING (
        SELECT id FROM memories_bufferitem
        WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s
            AND encode(content_hash, 'hex') NOT IN (SELECT content_hash FROM incoming)
        ORDER BY promoted_to_id IS NULL DESC, importance DESC, created_at DESC, id OFFSET %(room)s
    ) extra
    WHERE b.tenant_id = %(tenant)s AND b.id = extra.id RETURNING b.promoted_to_id
), held AS (
    INSERT INTO memories_bufferitem AS b (tenant_id, agent_id, id, content, content_hash, role, importance, source,
        lexical, embedding_model, accesses, created_at, expires_at)
    SELECT %(tenant)s, %(agent)s, id, content, decode(content_hash, 'hex'), role, importance, source, lexical, '', 0,
        now(), now() + lasts * interval '1 second'
    FROM incoming ORDER BY content_hash
    ON CONFLICT (tenant_id, agent_id, content_hash) DO UPDATE
    SET expires_at = greatest(b.expires_at, EXCLUDED.expires_at),
        importance = greatest(b.importance, EXCLUDED.importance)
    RETURNING b.id, encode(b.content_hash, 'hex') AS content_hash
)
SELECT id, content_hash, (SELECT count(*) FROM room WHERE promoted_to_id IS NULL) FROM held
"""
_SEARCH = f"""
WITH scored AS (
    SELECT id, content, role, source, importance, accesses, created_at, expires_at,
        coalesce(CASE WHEN vector_dims(embedding) = %(vector_dimension)s
            THEN -(embedding <#> {QUERY_VECTOR}) END, 0) AS meaning,
        coalesce(-(lexical <#> %(lexical)s::sparsevec), 0) AS words
    FROM memories_bufferitem
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND expires_at > now() AND promoted_to_id IS NULL
), chosen AS MATERIALIZED (
    SELECT * FROM scored WHERE meaning >= %(near)s OR words >= %(shared)s
    ORDER BY meaning + words DESC, created_at DESC, id LIMIT %(limit)s
), touched AS (
    UPDATE memories_bufferitem b SET accesses = b.accesses + 1
    FROM chosen WHERE %(counts)s AND b.tenant_id = %(tenant)s AND b.id = chosen.id
)
SELECT id, content, role, source, importance, accesses + %(counts)s::int, created_at, expires_at, meaning + words
FROM chosen ORDER BY meaning + words DESC, created_at DESC, id
"""  # noqa: S608 (our own parts)
_WORTH = """
SELECT id, content, role, source, importance, accesses, created_at FROM memories_bufferitem
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND {which} ORDER BY id LIMIT %(step)s
"""
_PROMOTED = """
UPDATE memories_bufferitem b SET promoted_to_id = became.memory_id
FROM unnest(%(ids)s::uuid[], %(memories)s::uuid[]) AS became (id, memory_id)
WHERE b.tenant_id = %(tenant)s AND b.id = became.id
"""
_LET_GO = f"""
DELETE FROM memories_bufferitem WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND expires_at <= now()
    AND NOT ({_MATTERS}) RETURNING promoted_to_id IS NULL
"""  # noqa: S608
# Agents that hold something that is over, or that mattered.
_WAITING = f"""
SELECT agent_id FROM memories_bufferitem WHERE tenant_id = t.id AND expires_at <= now()
UNION
SELECT agent_id FROM memories_bufferitem WHERE tenant_id = t.id AND {_MATTERS}
"""  # noqa: S608


@dataclass(frozen=True, kw_only=True)
class Holding:
    """A held thing that came to mind."""

    id: UUID
    content: str
    role: str
    source: str
    importance: float
    #: How often the agent came back to it, this time included.
    accesses: int
    held_at: datetime
    expires_at: datetime
    #: How near its meaning is, and the share of the query's words that it has.
    score: float


def hold(*, agent_id: UUID, things: Sequence[ToHold]) -> list[UUID]:
    """Hold things in the transaction that is open, and return their ids in order. One statement.

    What is held already is held longer. The buffer's CAPACITY holds at once: the least important make room, on record.
    Meanings follow: the embedding backlog reads what has no vector. Raises LimitReached for more things than it holds.
    """
    if not things:
        return []
    digests = [content_hash(each.content).hex() for each in things]
    rows = {digest: _row(digest, each) for digest, each in zip(digests, things, strict=True)}
    if len(rows) > CAPACITY:
        raise LimitReached(f"a buffer holds at most {CAPACITY} things, got {len(rows)}")
    held = fetch(_HOLD, agent=agent_id, rows=json.dumps(list(rows.values())), room=CAPACITY - len(rows))
    if lost := held[0][2]:
        _record(agent_id, lost, "to make room for others")
    ids = {digest: item_id for item_id, digest, _ in held}
    return [ids[digest] for digest in digests]


def hold_for(things: Mapping[UUID, Sequence[ToHold]]) -> dict[UUID, list[UUID]]:
    """Buffer things for several agents, and return their ids in order, by agent."""
    return {agent_id: hold(agent_id=agent_id, things=some) for agent_id, some in things.items()}


@dataclass(frozen=True, kw_only=True)
class BufferSearch:
    """A search of one agent's buffer, with the vector of its text, if any, and the model that made it."""

    agent_id: UUID
    text: str
    vector: Sequence[float] | None = None
    model: EmbeddingModel | None = None
    limit: int = 10
    #: The agent itself searches: what is found counts as accessed.
    counts: bool = False


def search_buffers(searches: Sequence[BufferSearch]) -> list[list[Holding]]:
    """Return what each search finds in its agent's buffer, best first."""
    return [
        search_buffer(
            agent_id=search.agent_id,
            text=search.text,
            vector=search.vector,
            model=search.model,
            limit=search.limit,
            counts=search.counts,
        )
        for search in searches
    ]


def search_buffer(
    *,
    agent_id: UUID,
    text: str,
    vector: Sequence[float] | None = None,
    model: EmbeddingModel | None = None,
    limit: int = 10,
    counts: bool = False,
) -> list[Holding]:
    """Return what an agent holds that bears on a text, best first, in the transaction that is open. One statement.

    `vector` is the query's, made by `model`. `counts` says that the agent itself looks: what is found counts as come back
    to. A person's look never does that. Raises Invalid for what recall would not take either.
    """
    check_query(text, limit)
    rows = fetch(
        _SEARCH,
        agent=agent_id,
        lexical=sparsevec_text(shared_words(text)),
        near=NEAR,
        shared=SHARED,
        limit=limit,
        counts=counts,
        **query_vector(vector, model),
    )
    names = ("id", "content", "role", "source", "importance", "accesses", "held_at", "expires_at", "score")
    return [Holding(**dict(zip(names, row, strict=True))) for row in rows]


def promote(*, tenant_id: UUID, agent_id: UUID, item_id: UUID, actor: str) -> UUID:
    """Make a memory of a held thing now, whatever it weighs, and return the memory's id. In transactions of its own.

    It is on record who did. Raises NotFound when this agent holds no such thing.
    """
    with tenant_transaction(tenant_id):
        rows = fetch(_WORTH.format(which="id = %(item)s"), agent=agent_id, item=item_id, step=1)
    if not rows:
        raise NotFound(f"agent {agent_id} holds no thing {item_id}")
    return _promote(tenant_id, agent_id, rows, actor=actor)[0]


def tend_buffers() -> Round:
    """Make memories of what mattered and let go of what is over, agent by agent."""
    return make_round("buffer", waiting=_WAITING, tend=_tend)


def _tend(tenant_id: UUID, agent_id: UUID) -> int:
    with tenant_transaction(tenant_id):
        rows = fetch(_WORTH.format(which=_MATTERS), agent=agent_id, step=STEP)
    if rows:
        _promote(tenant_id, agent_id, rows)
    with tenant_transaction(tenant_id):
        gone = [never_promoted for (never_promoted,) in fetch(_LET_GO, agent=agent_id)]
        if any(gone):
            _record(agent_id, sum(gone), "whose time was over")
    return len(rows) + len(gone)


def _promote(
    tenant_id: UUID, agent_id: UUID, rows: Sequence[tuple[Any, ...]], *, actor: str | None = None
) -> list[UUID]:
    """Store held things as memories, embedded outside any transaction. Cut short, it is done again to the same effect."""
    memories = [
        NewMemory(
            content=content,
            role=role,
            source=source,
            occurred_at=held_at,
            importance=effective_importance(importance=importance, uses=accesses),
        )
        for _, content, role, source, importance, accesses, held_at in rows
    ]
    ids = list(remember(tenant_id=tenant_id, agent_id=agent_id, memories=memories).ids)
    with tenant_transaction(tenant_id):
        change(_PROMOTED, ids=[row[0] for row in rows], memories=ids)
        if actor is not None:
            record(
                action=AuditAction.OPERATOR_ACT,
                actor=actor,
                agent_id=agent_id,
                message="made a memory of what was only held",
                detail={"item_ids": [str(row[0]) for row in rows], "memory_ids": [str(each) for each in ids]},
            )
    return ids


def _row(digest: str, thing: ToHold) -> dict[str, Any]:
    terms = document_vector(thing.content, speaker=thing.role)
    return {
        "id": str(uuid7()),
        "content": thing.content,
        "content_hash": digest,
        "role": thing.role,
        "importance": thing.weight,
        "source": thing.source,
        "lexical": sparsevec_text(fitting(terms, session="", dimension=0)),
        "lasts": thing.lasts.total_seconds(),
    }


def _record(agent_id: UUID, count: int, why: str) -> None:
    things = "thing" if count == 1 else "things"
    record(
        action=AuditAction.BUFFER_CLEARED,
        actor=ACTOR,
        agent_id=agent_id,
        message=f"let go of {count} held {things} {why}",
        detail={"count": count},
    )
