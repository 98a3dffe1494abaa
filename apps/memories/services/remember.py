"""Storing memories: idempotent by content, found by their words at once and by their meaning once embedded."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connection

from apps.memories.models import Memory
from apps.memories.services.embedding import Vectors, embed_texts, embedder
from apps.memories.services.literals import fitting, halfvec_texts, sparsevec_text
from apps.tenants.scope import current_tenant, tenant_transaction
from apps.tenants.statements import fetch
from arbor.errors import EmbeddingFailed
from arbor.ids import uuid7
from arbor.memory.content import content_hash
from arbor.memory.lexical import document_vector
from arbor.memory.values import MemoryStatus, NewMemory

log = structlog.get_logger(__name__)

#: The row of `memories_term` that counts the agent's memories.
ALL_MEMORIES = 0

type _Key = tuple[bytes, str, int]

# One parameter instead of 22 for each row: four times as fast as the ORM's insert, which spends its time on quoting.
_INSERT = """
INSERT INTO memories_memory (tenant_id, agent_id, id, type, status, content, content_hash, importance, decay_rate,
    trust, emotional_valence, session, position, role, source, detail, occurred_at, created_at, expires_at,
    embedding, embedding_model, lexical, retention, sequence)
SELECT %s, %s, r.id, r.type, 'active', r.content, decode(r.content_hash, 'hex'), r.importance, r.decay_rate,
    r.trust, r.emotional_valence, r.session, r."position", r.role, r.source, r.detail, r.occurred_at, now(), r.expires_at,
    r.embedding, r.embedding_model, r.lexical, 'lasting', 0
FROM json_to_recordset(%s::json) AS r(
    id uuid, type text, content text, content_hash text, importance float8, decay_rate float8, trust float8,
    emotional_valence float8, session text, "position" int, role text, source text, detail jsonb,
    occurred_at timestamptz, expires_at timestamptz, embedding halfvec, embedding_model text, lexical sparsevec
)
"""
_COUNT_TERMS = """
INSERT INTO memories_term (tenant_id, agent_id, term, memories)
SELECT %s, %s, * FROM unnest(%s::int[], %s::int[])
ON CONFLICT (tenant_id, agent_id, term) DO UPDATE SET memories = greatest(0, memories_term.memories + EXCLUDED.memories)
"""

_KNOWN = """
SELECT id, content_hash, session, position, status, expires_at FROM memories_memory
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND content_hash = ANY(%(digests)s::bytea[])
"""


@dataclass(frozen=True, kw_only=True)
class Remembered:
    """What became of memories that were to be stored: an id for each, in order, and which of them were there before."""

    ids: tuple[UUID, ...]
    duplicates: frozenset[UUID]

    @property
    def stored(self) -> int:
        """How many are new, or back."""
        return len(set(self.ids) - self.duplicates)


def remember(*, tenant_id: UUID, agent_id: UUID, memories: Sequence[NewMemory]) -> Remembered:
    """Embed and store memories of one agent, in one transaction of its own.

    When the embedder fails they are stored without vectors, and upkeep embeds them later.
    """
    try:
        vectors: Vectors | None = embed_texts(tenant_id=tenant_id, texts=[each.content for each in memories])
    except EmbeddingFailed as error:
        log.warning("stored_without_vectors", error=str(error), memories=len(memories))
        vectors = None
    with tenant_transaction(tenant_id):
        return store(agent_id=agent_id, memories=memories, vectors=vectors)


def store(*, agent_id: UUID, memories: Sequence[NewMemory], vectors: Vectors | None) -> Remembered:
    """Store memories of one agent in the transaction that is open; `vectors`, if any, one per memory in order.

    The same content at the same place of the same session is one memory; if it was archived or its time was over, it
    comes back, and of two expiries the later holds. Four statements, however many memories.
    """
    if not memories:
        return Remembered(ids=(), duplicates=frozenset())
    lock_minds([agent_id])
    keys: list[_Key] = [(content_hash(each.content), each.session, each.position) for each in memories]
    known = _find_known(agent_id, keys)
    back = _bring_back(agent_id, keys, memories, known)
    ids: dict[_Key, UUID] = {key: row.id for key, row in known.items()}
    before = frozenset(ids.values()) - back
    rows: list[dict[str, Any]] = []
    words: list[dict[int, float]] = []
    literals = halfvec_texts(vectors) if vectors is not None else [None] * len(keys)
    for key, memory, literal in zip(keys, memories, literals, strict=True):
        if key in ids:
            continue
        ids[key] = uuid7()
        terms = document_vector(memory.content, speaker=memory.role)
        words.append(fitting(terms, session=memory.session, dimension=settings.ARBOR_EMBEDDING_DIMENSION))
        rows.append(_row(ids[key], key, memory, literal, words[-1]))
    if rows:
        with connection.cursor() as cursor:
            cursor.execute(_INSERT, [current_tenant(), agent_id, json.dumps(rows, ensure_ascii=False)])
        count_terms(agent_id, words, sign=1)
    placed = tuple(ids[key] for key in keys)
    return Remembered(ids=placed, duplicates=before & set(placed))


def lock_minds(agent_ids: Iterable[UUID]) -> None:
    """Let one transaction at a time change what these agents remember. One statement.

    Two that store the same could otherwise wait for each other, and would count its words twice.
    """
    places = sorted({int.from_bytes(agent_id.bytes[8:], signed=True) for agent_id in agent_ids})
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(pg_advisory_xact_lock(place)) FROM unnest(%s::bigint[]) place", [places])


def count_terms(agent_id: UUID, words: Iterable[Mapping[int, float] | Sequence[int]], *, sign: int) -> None:
    """Count in (`sign` 1) or out (-1) the terms of memories, in one statement. The agent's mind is locked."""
    counts: Counter[int] = Counter()
    for terms in words:
        counts.update(dict.fromkeys(terms, sign))
        counts[ALL_MEMORIES] += sign
    if counts:
        terms, changes = zip(*sorted(counts.items()), strict=True)
        with connection.cursor() as cursor:
            cursor.execute(_COUNT_TERMS, [current_tenant(), agent_id, list(terms), list(changes)])


@dataclass(frozen=True, kw_only=True)
class _Known:
    """A memory that stands at its place already."""

    id: UUID
    status: str
    expires_at: datetime | None


def _find_known(agent_id: UUID, keys: Sequence[_Key]) -> dict[_Key, _Known]:
    """Return the memories that stand at these places already."""
    rows = fetch(_KNOWN, agent=agent_id, digests=list({digest for digest, _, _ in keys}))
    found = {
        (bytes(digest), session, position): _Known(id=memory_id, status=status, expires_at=expires_at)
        for memory_id, digest, session, position, status, expires_at in rows
    }
    return {key: found[key] for key in keys if key in found}


def _bring_back(
    agent_id: UUID, keys: Sequence[_Key], memories: Sequence[NewMemory], known: Mapping[_Key, _Known]
) -> frozenset[UUID]:
    """Let known memories that are remembered again live as long as is asked now; return those that were out of mind."""
    now = datetime.now(UTC)
    back: set[UUID] = set()
    for key, memory in zip(keys, memories, strict=True):
        row = known.get(key)
        if row is None or (memory.expires_at is not None and memory.expires_at <= now):
            continue
        archived = row.status != MemoryStatus.ACTIVE
        longer = row.expires_at is not None and (
            memory.expires_at is None or memory.expires_at > row.expires_at
        )
        if not (archived or longer):
            continue
        if archived or (row.expires_at is not None and row.expires_at <= now):
            back.add(row.id)
        if archived:
            lexical = Memory.objects.values_list("lexical", flat=True).get(id=row.id)
            count_terms(agent_id, [terms_of(lexical)], sign=1)
        Memory.objects.filter(id=row.id).update(
            status=MemoryStatus.ACTIVE, archived_at=None, expires_at=memory.expires_at
        )
    return frozenset(back)


def terms_of(lexical: Any) -> list[int]:
    """Return the terms of a stored vector: pgvector counts its places from 0 here, and from 1 in the database."""
    return [place + 1 for place in lexical.indices()] if lexical else []


def _row(
    memory_id: UUID, key: _Key, memory: NewMemory, embedding: str | None, terms: Mapping[int, float]
) -> dict[str, Any]:
    return {
        "id": str(memory_id),
        "type": memory.type,
        "content": memory.content,
        "content_hash": key[0].hex(),
        "importance": memory.importance,
        "decay_rate": memory.decay_rate,
        "trust": memory.trust,
        "emotional_valence": memory.emotional_valence,
        "session": memory.session,
        "position": memory.position,
        "role": memory.role,
        "source": memory.source,
        "detail": dict(memory.detail),
        "occurred_at": memory.occurred_at.isoformat(),
        "expires_at": memory.expires_at.isoformat() if memory.expires_at else None,
        "embedding": embedding,
        "embedding_model": embedder().model if embedding else "",
        "lexical": sparsevec_text(terms),
    }
