"""Maintenance of memories: it decides nothing. Each call is a bounded, idempotent chunk that says what it did."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from itertools import groupby
from uuid import UUID

import structlog
from django.db import connections
from django.db.models.functions import Now
from pgvector import HalfVector

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.memories.models import EmbeddingCacheEntry, Memory
from apps.memories.services.embedding import embed_texts, embedder
from apps.memories.services.remember import count_terms
from apps.tenants.models import Tenant
from apps.tenants.scope import OPS, tenant_transaction
from arbor.errors import EmbeddingFailed
from arbor.memory.values import MemoryStatus

log = structlog.get_logger(__name__)

ACTOR = "system:maintenance"
#: Memories in one chunk: well under a minute with the slowest embedder.
CHUNK = 500
#: A text nobody has embedded for so long is embedded anew when it comes back.
CACHE_KEPT = timedelta(days=30)

_UNEMBEDDED = """
SELECT tenant_id, id, content FROM memories_memory WHERE embedding IS NULL AND status = 'active'
ORDER BY tenant_id, created_at LIMIT %s
"""
_EXPIRED = """
SELECT tenant_id, id FROM memories_memory WHERE expires_at <= now() AND status = 'active'
ORDER BY tenant_id LIMIT %s
"""


def embed_backlog() -> int:
    """Embed up to a chunk of the memories that have no vector; return how many got one."""
    with connections[OPS].cursor() as cursor:
        cursor.execute(_UNEMBEDDED, [CHUNK])
        rows: list[tuple[UUID, UUID, str]] = cursor.fetchall()
    done = 0
    for tenant_id, group in groupby(rows, key=lambda row: row[0]):
        batch = list(group)
        try:
            vectors = embed_texts(tenant_id=tenant_id, texts=[content for _, _, content in batch])
        except EmbeddingFailed as error:
            log.warning("embedding_backlog_stands", error=str(error), waiting=len(rows) - done)
            return done
        with tenant_transaction(tenant_id):
            for (_, memory_id, _), vector in zip(batch, vectors, strict=True):
                done += Memory.objects.filter(id=memory_id, embedding__isnull=True).update(
                    embedding=HalfVector(vector), embedding_model=embedder().model
                )
    if done:
        log.info("embedded", memories=done)
    return done


def expire_memories() -> int:
    """Archive up to a chunk of the memories whose time is over; return how many."""
    with connections[OPS].cursor() as cursor:
        cursor.execute(_EXPIRED, [CHUNK])
        rows: list[tuple[UUID, UUID]] = cursor.fetchall()
    done = 0
    for tenant_id, group in groupby(rows, key=lambda row: row[0]):
        with tenant_transaction(tenant_id):
            done += _archive_expired([memory_id for _, memory_id in group])
    return done


def _archive_expired(ids: list[UUID]) -> int:
    expired = list(
        Memory.objects.select_for_update()
        .filter(id__in=ids, status=MemoryStatus.ACTIVE, expires_at__lte=Now())
        .values_list("id", "agent_id", "lexical")
    )
    Memory.objects.filter(id__in=[memory_id for memory_id, _, _ in expired]).update(
        status=MemoryStatus.ARCHIVED, archived_at=Now()
    )
    by_agent: dict[UUID, list[list[int]]] = defaultdict(list)
    for _, agent_id, lexical in expired:
        by_agent[agent_id].append([place + 1 for place in lexical.indices()] if lexical else [])
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
