"""Maintenance of memories: it decides nothing. Each call is bounded, idempotent, and says what it did."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from itertools import groupby
from uuid import UUID, uuid4

import structlog
from django.db import connection, connections
from django.db.models.functions import Now

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.memories.models import EmbeddingCacheEntry, Memory
from apps.memories.services.embedding import Vectors, embed_texts, embedder
from apps.memories.services.literals import halfvec_texts
from apps.memories.services.remember import count_terms, lock_minds, terms_of
from apps.tenants.models import Tenant
from apps.tenants.scope import OPS, current_tenant, tenant_transaction
from arbor.errors import EmbeddingFailed
from arbor.memory.values import MemoryStatus

log = structlog.get_logger(__name__)

ACTOR = "system:maintenance"
#: Memories in one chunk, and of one tenant in it while others wait.
CHUNK = 500
CHUNK_OF_TENANT = 100
#: How long one call goes on taking chunks: below the period in which it is called.
BACKLOG_TAKES = timedelta(seconds=8)
#: A text nobody has embedded for so long is embedded anew when it comes back.
CACHE_KEPT = timedelta(days=30)
#: Before the name of a model that could not embed a text, though it could embed others.
REFUSED = "refused: "

_UNEMBEDDED = """
WITH tenants AS MATERIALIZED (SELECT id FROM tenants_tenant ORDER BY (id < %(pivot)s), id)
SELECT m.tenant_id, m.id, m.content FROM tenants t CROSS JOIN LATERAL (
    SELECT tenant_id, id, content FROM memories_memory
    WHERE tenant_id = t.id AND embedding IS NULL AND status = 'active' AND embedding_model = ''
    ORDER BY created_at LIMIT %(per_tenant)s
) m LIMIT %(chunk)s
"""
# Rows are locked in the order of their ids, and left to whoever has them already.
_EMBEDDED = """
WITH mine AS MATERIALIZED (
    SELECT r.id, r.embedding FROM json_to_recordset(%(rows)s::json) AS r(id uuid, embedding halfvec)
    JOIN memories_memory m ON m.tenant_id = %(tenant)s AND m.id = r.id AND m.embedding IS NULL
    ORDER BY r.id FOR UPDATE OF m SKIP LOCKED
)
UPDATE memories_memory m SET embedding = mine.embedding, embedding_model = %(model)s
FROM mine WHERE m.tenant_id = %(tenant)s AND m.id = mine.id
"""
_EXPIRED = """
SELECT tenant_id, agent_id, id FROM memories_memory WHERE expires_at <= now() AND status = 'active'
ORDER BY tenant_id LIMIT %s
"""

type _Waiting = Sequence[tuple[UUID, str]]


def embed_backlog() -> int:
    """Embed the memories that have no vector until there are none, or BACKLOG_TAKES is over; return how many got one.

    A text that the embedder cannot read is marked, and stays to be found by its words. When the embedder does not answer
    at all, the rest waits for the next call.
    """
    ends_at = time.monotonic() + BACKLOG_TAKES.total_seconds()
    done = 0
    try:
        while time.monotonic() < ends_at and (rows := _unembedded()):
            before = done
            for tenant_id, group in groupby(rows, key=lambda row: row[0]):
                done += _embed_waiting(tenant_id, [(memory_id, content) for _, memory_id, content in group])
            if len(rows) < CHUNK_OF_TENANT or done == before:
                break
    except EmbeddingFailed as error:
        log.warning("embedding_backlog_stands", error=str(error))
    if done:
        log.info("embedded", memories=done)
    return done


def _unembedded() -> list[tuple[UUID, UUID, str]]:
    with connections[OPS].cursor() as cursor:
        cursor.execute(_UNEMBEDDED, {"pivot": uuid4(), "per_tenant": CHUNK_OF_TENANT, "chunk": CHUNK})
        rows: list[tuple[UUID, UUID, str]] = cursor.fetchall()
        return rows


def _embed_waiting(tenant_id: UUID, waiting: _Waiting) -> int:
    """Embed memories of one tenant; return how many got a vector. Raises EmbeddingFailed when nothing can be embedded."""
    try:
        vectors = embed_texts(tenant_id=tenant_id, texts=[content for _, content in waiting])
    except EmbeddingFailed as error:
        # Is it one of the texts, or the embedder? If it cannot read this, it is the embedder.
        embedder().embed(["Good morning."])
        if len(waiting) == 1:
            _mark_refused(tenant_id, waiting[0][0], error)
            return 0
        half = len(waiting) // 2
        return _embed_waiting(tenant_id, waiting[:half]) + _embed_waiting(tenant_id, waiting[half:])
    with tenant_transaction(tenant_id):
        return _store_vectors([memory_id for memory_id, _ in waiting], vectors)


def _store_vectors(ids: Sequence[UUID], vectors: Vectors) -> int:
    rows = [
        {"id": str(memory_id), "embedding": text}
        for memory_id, text in zip(ids, halfvec_texts(vectors), strict=True)
    ]
    with connection.cursor() as cursor:
        cursor.execute(
            _EMBEDDED, {"rows": json.dumps(rows), "tenant": current_tenant(), "model": embedder().model}
        )
        stored: int = cursor.rowcount
        return stored


def _mark_refused(tenant_id: UUID, memory_id: UUID, error: EmbeddingFailed) -> None:
    model = embedder().model
    log.warning("text_not_embedded", memory_id=str(memory_id), model=model, error=str(error))
    with tenant_transaction(tenant_id):
        Memory.objects.filter(id=memory_id, embedding__isnull=True).update(embedding_model=REFUSED + model)


def expire_memories() -> int:
    """Archive up to a chunk of the memories whose time is over; return how many."""
    with connections[OPS].cursor() as cursor:
        cursor.execute(_EXPIRED, [CHUNK])
        rows: list[tuple[UUID, UUID, UUID]] = cursor.fetchall()
    done = 0
    for tenant_id, group in groupby(rows, key=lambda row: row[0]):
        batch = list(group)
        with tenant_transaction(tenant_id):
            lock_minds(agent_id for _, agent_id, _ in batch)
            done += _archive_expired([memory_id for _, _, memory_id in batch])
    return done


def _archive_expired(ids: list[UUID]) -> int:
    expired = list(
        Memory.objects.select_for_update()
        .filter(id__in=ids, status=MemoryStatus.ACTIVE, expires_at__lte=Now())
        .order_by("id")
        .values_list("id", "agent_id", "lexical")
    )
    Memory.objects.filter(id__in=[memory_id for memory_id, _, _ in expired]).update(
        status=MemoryStatus.ARCHIVED, archived_at=Now()
    )
    by_agent: dict[UUID, list[list[int]]] = defaultdict(list)
    for _, agent_id, lexical in expired:
        by_agent[agent_id].append(terms_of(lexical))
    for agent_id, words in by_agent.items():
        count_terms(agent_id, words, sign=-1)
        record(
            action=AuditAction.MEMORIES_EXPIRED,
            actor=ACTOR,
            agent_id=agent_id,
            message=f"{len(words)} memories reached their expiry and were archived",
        )
    return len(expired)


def trim_embedding_cache() -> int:
    """Delete cached vectors that were not used for a month; return how many."""
    done = 0
    for tenant_id in Tenant.objects.using(OPS).values_list("id", flat=True):
        with tenant_transaction(tenant_id):
            deleted, _ = EmbeddingCacheEntry.objects.filter(used_at__lt=Now() - CACHE_KEPT).delete()
            done += deleted
    return done
