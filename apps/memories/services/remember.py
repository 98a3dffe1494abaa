"""Storing memories: idempotent by content, found by their words at once and by their meaning once embedded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import structlog
from django.db import connection
from pgvector import HalfVector, SparseVector

from apps.memories.models import LEXICAL_DIMENSIONS, Memory
from apps.memories.services.embedding import Vectors, embed_texts, embedder
from apps.tenants.scope import current_tenant, tenant_transaction
from arbor.errors import EmbeddingFailed
from arbor.memory.content import content_hash
from arbor.memory.lexical import document_vector
from arbor.memory.values import NewMemory

log = structlog.get_logger(__name__)

#: The row of `memories_term` that counts the agent's memories.
ALL_MEMORIES = 0

_COUNT_TERMS = """
INSERT INTO memories_term (tenant_id, agent_id, term, memories)
SELECT %s, %s, * FROM unnest(%s::int[], %s::int[])
ON CONFLICT (tenant_id, agent_id, term) DO UPDATE SET memories = greatest(0, memories_term.memories + EXCLUDED.memories)
"""


@dataclass(frozen=True, kw_only=True)
class Remembered:
    """What became of memories that were to be stored: an id for each, in order, and which of them were there before."""

    ids: tuple[UUID, ...]
    duplicates: frozenset[UUID]

    @property
    def stored(self) -> int:
        """How many are new."""
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

    The same content at the same place of the same session is one memory. Three statements, however many memories.
    """
    keys = [(content_hash(each.content), each.session, each.position) for each in memories]
    known: dict[tuple[bytes, str, int], UUID] = {
        (bytes(digest), session, position): memory_id
        for memory_id, digest, session, position in Memory.objects.filter(
            agent_id=agent_id, content_hash__in=[digest for digest, _, _ in keys]
        ).values_list("id", "content_hash", "session", "position")
    }
    before = frozenset(known.values())
    rows: list[Memory] = []
    words: list[dict[int, float]] = []
    for place, (key, memory) in enumerate(zip(keys, memories, strict=True)):
        if key in known:
            continue
        terms = document_vector(memory.content, speaker=memory.role)
        row = _row(agent_id, memory, key[0], terms, vectors[place] if vectors is not None else None)
        known[key] = row.id
        rows.append(row)
        words.append(terms)
    if rows:
        # A concurrent writer may have stored the same meanwhile; its row stands.
        Memory.objects.bulk_create(rows, ignore_conflicts=True)
        count_terms(agent_id, words, sign=1)
    ids = tuple(known[key] for key in keys)
    return Remembered(ids=ids, duplicates=before & set(ids))


def count_terms(agent_id: UUID, words: Iterable[Mapping[int, float] | Sequence[int]], *, sign: int) -> None:
    """Count in (`sign` 1) or out (-1) the terms of memories, in one statement.

    Rows are locked in the order of their terms, so two writers for one agent cannot wait for each other.
    """
    counts: Counter[int] = Counter()
    for terms in words:
        counts.update(dict.fromkeys(terms, sign))
        counts[ALL_MEMORIES] += sign
    terms = sorted(counts)
    with connection.cursor() as cursor:
        cursor.execute(_COUNT_TERMS, [current_tenant(), agent_id, terms, [counts[term] for term in terms]])


def _row(
    agent_id: UUID, memory: NewMemory, digest: bytes, terms: dict[int, float], vector: Vectors | None
) -> Memory:
    return Memory(
        tenant_id=current_tenant(),
        agent_id=agent_id,
        type=memory.type,
        content=memory.content,
        content_hash=digest,
        importance=memory.importance,
        decay_rate=memory.decay_rate,
        trust=memory.trust,
        emotional_valence=memory.emotional_valence,
        session=memory.session,
        position=memory.position,
        role=memory.role,
        source=memory.source,
        detail=dict(memory.detail),
        occurred_at=memory.occurred_at,
        expires_at=memory.expires_at,
        embedding=None if vector is None else HalfVector(vector),
        embedding_model="" if vector is None else embedder().model,
        # pgvector counts the places of a sparse vector from 0 here, and from 1 in the database.
        lexical=SparseVector({term - 1: weight for term, weight in terms.items()}, LEXICAL_DIMENSIONS),
    )
