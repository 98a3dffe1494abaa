"""Texts to vectors, never inside a transaction: from this process's cache, the tenant's cache, or the embedder."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from uuid import UUID

import numpy as np
import numpy.typing as npt
from django.conf import settings
from django.db import connections
from django.db.models.functions import Now
from pgvector import HalfVector

from apps.memories.models import EmbeddingCacheEntry
from apps.memories.services.literals import MAX_DIMENSION
from apps.providers import credentials
from apps.tenants.scope import APP, tenant_transaction
from arbor.adapters.embedders import connect_embedder
from arbor.embedding.ports import Embedder
from arbor.errors import ConfigurationInvalid
from arbor.memory.content import content_hash

type Vectors = npt.NDArray[np.float32]

#: Vectors that one process keeps: a query that comes again, a text that is recalled about and then stored.
_KEPT = 4096
#: A use of the tenant's cache is noted once in so long: reading it writes nothing else.
_USE_NOTED = timedelta(days=1)


@lru_cache(maxsize=1)
def embedder() -> Embedder:
    """Return the installation's embedder.

    Raises ConfigurationInvalid when its vectors are of another length than the database's columns, or longer than the
    index of the mind holds.
    """
    if settings.ARBOR_EMBEDDING_DIMENSION > MAX_DIMENSION:
        raise ConfigurationInvalid(
            f"ARBOR_EMBEDDING_DIMENSION must be at most {MAX_DIMENSION}, got {settings.ARBOR_EMBEDDING_DIMENSION}; many"
            " models can be asked for shorter vectors, and lose little"
        )
    return connect_embedder(
        settings.ARBOR_EMBEDDING_MODEL,
        credentials(),
        dimension=settings.ARBOR_EMBEDDING_DIMENSION,
        url=settings.ARBOR_EMBEDDING_URL,
    )


class _Kept:
    """The vectors used last in this process. Safe for threads.

    By tenant too: how fast a text is embedded would else tell one tenant what another has.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._vectors: OrderedDict[tuple[UUID, str, bytes], Vectors] = OrderedDict()

    def find(self, tenant_id: UUID, model: str, hashes: Sequence[bytes]) -> dict[bytes, Vectors]:
        with self._lock:
            found = {}
            for each in hashes:
                key = (tenant_id, model, each)
                vector = self._vectors.get(key)
                if vector is not None:
                    self._vectors.move_to_end(key)
                    found[each] = vector
            return found

    def keep(self, tenant_id: UUID, model: str, vectors: dict[bytes, Vectors]) -> None:
        with self._lock:
            for key, vector in vectors.items():
                self._vectors[(tenant_id, model, key)] = vector
            while len(self._vectors) > _KEPT:
                self._vectors.popitem(last=False)


_kept = _Kept()


def embed_texts(*, tenant_id: UUID, texts: Sequence[str]) -> Vectors:
    """Return one vector per text, in order: float32, (len(texts), dimension), rows of length 1.

    Raises EmbeddingFailed, and RuntimeError inside a transaction: an embedder may be a network away.
    """
    if connections[APP].in_atomic_block:
        raise RuntimeError("texts are embedded before the transaction opens, not inside it")
    model = embedder()
    hashes = [content_hash(text) for text in texts]
    known = _kept.find(tenant_id, model.model, hashes)
    if not model.in_process:
        known |= _from_tenant(tenant_id, model.model, [each for each in hashes if each not in known])
    missing = {key: text for key, text in zip(hashes, texts, strict=True) if key not in known}
    if missing:
        fresh = dict(zip(missing, model.embed(list(missing.values())), strict=True))
        if not model.in_process:
            _to_tenant(tenant_id, model.model, fresh)
        _kept.keep(tenant_id, model.model, fresh)
        known |= fresh
    if not texts:
        return np.zeros((0, model.dimension), dtype=np.float32)
    return np.stack([known[key] for key in hashes])


def _from_tenant(tenant_id: UUID, model: str, hashes: Sequence[bytes]) -> dict[bytes, Vectors]:
    if not hashes:
        return {}
    with tenant_transaction(tenant_id):
        entries = list(EmbeddingCacheEntry.objects.filter(model=model, content_hash__in=hashes))
        _note_use(
            model, [entry.content_hash for entry in entries if entry.used_at < datetime.now(UTC) - _USE_NOTED]
        )
    return {bytes(entry.content_hash): np.asarray(entry.embedding, dtype=np.float32) for entry in entries}


def _note_use(model: str, hashes: Sequence[bytes]) -> None:
    """Keep these entries from being trimmed; those that another worker has in hand are noted by it."""
    if hashes:
        free = EmbeddingCacheEntry.objects.select_for_update(skip_locked=True).filter(
            model=model, content_hash__in=hashes
        )
        EmbeddingCacheEntry.objects.filter(model=model, content_hash__in=free.values("content_hash")).update(
            used_at=Now()
        )


def _to_tenant(tenant_id: UUID, model: str, vectors: dict[bytes, Vectors]) -> None:
    with tenant_transaction(tenant_id):
        EmbeddingCacheEntry.objects.bulk_create(
            [
                EmbeddingCacheEntry(
                    tenant_id=tenant_id, model=model, content_hash=key, embedding=HalfVector(vector)
                )
                # In one order for all: two workers with the same texts would else wait for each other.
                for key, vector in sorted(vectors.items())
            ],
            ignore_conflicts=True,
        )
