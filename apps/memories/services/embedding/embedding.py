"""Embed texts, never inside a transaction: from this process's cache, the tenant's cache, or the embedder."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from uuid import UUID

import numpy as np
import structlog
from django.conf import settings
from django.db import DatabaseError, connections
from django.db.models.functions import Now
from pgvector import HalfVector

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.default_model import credentials
from apps.memories.models import EmbeddingCacheEntry
from apps.memories.services.embedding import queries
from apps.memories.services.embedding.minds import check_dimension, installation_model, model_of
from apps.memories.services.jobs.job_runs import JobRunResult
from apps.tenants.models import Tenant
from apps.tenants.scope import APP, OPS, tenant_transaction
from apps.tenants.statements import change
from arbor.adapters.embedders import connect_embedder
from arbor.adapters.embedding_http import MAX_TEXT_BYTES
from arbor.embedding.backoff import FIRST_RETRY_DELAY
from arbor.embedding.models import EmbedAtStorage, EmbeddingModel
from arbor.embedding.ports import Embedder, Vectors, unit_rows
from arbor.errors import ConfigurationInvalid, EmbeddingFailed
from arbor.memory.content import content_hash

log = structlog.get_logger(__name__)

#: The most vectors that a process caches: for repeated queries, and for texts that are first recalled with and then stored.
_CACHE_SIZE = 4096
#: The most embedders that a process caches.
_EMBEDDERS = 32
#: The duration of a failed call above which the process pauses its calls, because callers wait for them.
_LONG_WAIT_S = 2.0
#: How often at most the time of use is written in the tenant's cache, so that reads are cheap.
_USE_PERIOD = timedelta(days=1)

#: The time without use after which a cached vector is deleted; the text is embedded again if it returns.
CACHE_AGE = timedelta(days=30)
#: The time after which one job run trims no further tenant; the next run, an hour later, continues.
CACHE_TRIM_DURATION = timedelta(seconds=60)

#: The most entries that one transaction deletes.
_MAX_TRIMMED = 5_000


def embedder() -> Embedder:
    """Return the installation's embedder. Raises ConfigurationInvalid."""
    return embedder_for(installation_model())


@lru_cache(maxsize=_EMBEDDERS)
def embedder_for(model: EmbeddingModel) -> Embedder:
    """Return the embedder of a model, without connecting to it.

    Raises ConfigurationInvalid if the settings do not name its address, or its vectors are too long for the index of
    memories, or do not have the model's dimension.
    """
    check_dimension(model)
    is_own = model.name == settings.ARBOR_EMBEDDING_MODEL
    # An address is used for its own model only: a server may ignore the model's name and answer with the model it serves.
    url = settings.ARBOR_EMBEDDING_URLS.get(model.name) or (settings.ARBOR_EMBEDDING_URL if is_own else "")
    connected = connect_embedder(model.name, credentials(), dimension=model.dimension, url=url)
    if connected.dimension != model.dimension:
        raise ConfigurationInvalid(
            f"{connected.model} makes vectors of {connected.dimension} numbers, and {model.dimension} are configured"
        )
    return connected


def embeds_here(model: EmbeddingModel | None) -> bool:
    """Return whether the model's vectors are computed in this process: in about a millisecond, without the network."""
    try:
        return embedder_for(model or installation_model()).in_process
    except ConfigurationInvalid:
        return False


class _VectorCache:
    """A thread-safe cache of this process's most recently used vectors.

    The key includes the tenant: otherwise the time to embed a text would reveal to one tenant which texts another has.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._vectors: OrderedDict[tuple[UUID, str, bytes], Vectors] = OrderedDict()

    def find(self, tenant_id: UUID, model: str, hashes: Sequence[bytes]) -> dict[bytes, Vectors]:
        with self._lock:
            vectors_by_hash = {}
            for digest in hashes:
                key = (tenant_id, model, digest)
                vector = self._vectors.get(key)
                if vector is not None:
                    self._vectors.move_to_end(key)
                    vectors_by_hash[digest] = vector
            return vectors_by_hash

    def put(self, tenant_id: UUID, model: str, vectors: dict[bytes, Vectors]) -> None:
        with self._lock:
            for key, vector in vectors.items():
                self._vectors[(tenant_id, model, key)] = vector
            while len(self._vectors) > _CACHE_SIZE:
                self._vectors.popitem(last=False)


_vector_cache = _VectorCache()
#: The time until which this process does not call a slow, failing embedder, by model (monotonic clock).
_paused_until: dict[EmbeddingModel | None, float] = {}


def embed_query(*, tenant_id: UUID, texts: Sequence[str], model: EmbeddingModel | None = None) -> Vectors:
    """Embed texts like `embed_texts`, for callers that wait for an answer and have a fallback.

    For FIRST_RETRY_DELAY after a failure that took long, this process raises EmbeddingFailed at once.
    """
    paused_until = _paused_until.get(model)
    if paused_until is not None and time.monotonic() < paused_until:
        raise EmbeddingFailed(
            f"{model or 'the embedder'} did not answer, and is not called again for some seconds"
        )
    started = time.monotonic()
    try:
        vectors = embed_texts(tenant_id=tenant_id, texts=texts, model=model)
    except EmbeddingFailed:
        if time.monotonic() - started > _LONG_WAIT_S:
            _paused_until[model] = time.monotonic() + FIRST_RETRY_DELAY.total_seconds()
        raise
    _paused_until.pop(model, None)
    return vectors


def embed_texts(*, tenant_id: UUID, texts: Sequence[str], model: EmbeddingModel | None = None) -> Vectors:
    """Return one vector per text, in order: float32, (len(texts), dimension), rows of length 1.

    `model` is the model of the agent with whose memories the vectors are compared (`minds.model_of`), by default the
    installation's. Raises EmbeddingFailed, also for a model whose address is no longer configured, and RuntimeError
    inside a transaction for an embedder that is called over the network.
    """
    try:
        connected = embedder_for(model or installation_model())
    except ConfigurationInvalid as error:
        raise EmbeddingFailed(f"{model or 'the embedder'} cannot be reached: {error}") from error
    if not connected.in_process and connections[APP].in_atomic_block:
        raise RuntimeError("texts must be embedded before a transaction opens, not inside it")
    if not texts:
        return np.zeros((0, connected.dimension), dtype=np.float32)
    cached_as = f"{connected.model} {connected.dimension}"
    hashes = [content_hash(text) for text in texts]
    known = _vector_cache.find(tenant_id, cached_as, hashes)
    if not connected.in_process:
        stored = _read_tenant_cache(
            tenant_id, cached_as, [digest for digest in hashes if digest not in known]
        )
        _vector_cache.put(tenant_id, cached_as, stored)
        known |= stored
    missing = {key: text for key, text in zip(hashes, texts, strict=True) if key not in known}
    if missing:
        fresh = dict(zip(missing, call_embedder(connected, list(missing.values())), strict=True))
        if not connected.in_process:
            _write_tenant_cache(tenant_id, cached_as, fresh, cut=_sizes_of_truncated(missing))
        _vector_cache.put(tenant_id, cached_as, fresh)
        known |= fresh
    return np.stack([known[key] for key in hashes])


@dataclass(frozen=True, kw_only=True)
class EmbeddedTexts:
    """The vectors of texts to be stored, one for each in order, or None if the backlog will embed the texts, and the agent's model."""

    vectors: Vectors | None
    model: EmbeddingModel


def embed_agent_texts(*, tenant_id: UUID, agent_id: UUID, texts: Sequence[str]) -> EmbeddedTexts:
    """Embed texts to be stored by their agent's model. Call it outside any transaction."""
    with tenant_transaction(tenant_id):
        model = model_of(agent_id)
    return EmbeddedTexts(
        vectors=embed_for_storage(tenant_id=tenant_id, texts=texts, model=model), model=model
    )


def embed_for_storage(
    *, tenant_id: UUID, texts: Sequence[str], model: EmbeddingModel | None
) -> Vectors | None:
    """Return the vectors of texts to be stored.

    None if the backlog will embed the texts: `ARBOR_EMBED_AT_STORAGE` excludes the embedder, or it fails.
    """
    try:
        in_process = embedder_for(model or installation_model()).in_process
        if not EmbedAtStorage.parse(settings.ARBOR_EMBED_AT_STORAGE).waits(in_process=in_process):
            return None
        return embed_texts(tenant_id=tenant_id, texts=texts, model=model)
    except (EmbeddingFailed, ConfigurationInvalid) as error:
        log.warning("stored_without_vectors", model=str(model or ""), texts=len(texts), error=str(error))
        return None


def call_embedder(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """Call the embedder and return its vectors, checked and normalized, without caching them. Raises EmbeddingFailed."""
    if not embedder.in_process and settings.ARBOR_DB_POOL_SIZE:
        # Return the connections to their pools: a thread that waits for a server must not occupy one.
        for alias in (APP, OPS):
            connections[alias].close()
    return unit_rows(
        embedder.embed(texts), count=len(texts), dimension=embedder.dimension, model=embedder.model
    )


def _read_tenant_cache(tenant_id: UUID, model: str, hashes: Sequence[bytes]) -> dict[bytes, Vectors]:
    if not hashes:
        return {}
    with tenant_transaction(tenant_id):
        entries = list(EmbeddingCacheEntry.objects.filter(model=model, content_hash__in=hashes))
        written_before = datetime.now(UTC) - _USE_PERIOD
        _write_use(model, [bytes(entry.content_hash) for entry in entries if entry.used_at < written_before])
    return {bytes(entry.content_hash): np.asarray(entry.embedding, dtype=np.float32) for entry in entries}


def _write_use(model: str, hashes: Sequence[bytes]) -> None:
    """Mark entries as used, so that they are not trimmed; entries locked by another worker are skipped."""
    if hashes:
        free = EmbeddingCacheEntry.objects.select_for_update(skip_locked=True).filter(
            model=model, content_hash__in=hashes
        )
        EmbeddingCacheEntry.objects.filter(model=model, content_hash__in=free.values("content_hash")).update(
            used_at=Now()
        )


def _sizes_of_truncated(texts: Mapping[bytes, str]) -> dict[str, int]:
    """Return the sizes in bytes, by content hash, of the texts that are too long to be sent whole."""
    sizes = {key.hex(): len(text.encode(errors="replace")) for key, text in texts.items()}
    return {key: size for key, size in sizes.items() if size > MAX_TEXT_BYTES}


def _write_tenant_cache(
    tenant_id: UUID, model: str, vectors: dict[bytes, Vectors], *, cut: Mapping[str, int]
) -> None:
    """Store vectors in the tenant's cache, and record in the audit log which texts were truncated."""
    with tenant_transaction(tenant_id):
        if cut:
            log.warning("texts_truncated", model=model, texts=len(cut), bytes=MAX_TEXT_BYTES)
            record(
                action=AuditAction.TRUNCATED,
                actor="system:embedding",
                message=f"{model} read the first {MAX_TEXT_BYTES:,} bytes of {len(cut)} longer texts",
                detail={"bytes_by_content_hash": dict(cut)},
            )
        EmbeddingCacheEntry.objects.bulk_create(
            [
                EmbeddingCacheEntry(
                    tenant_id=tenant_id, model=model, content_hash=key, embedding=HalfVector(vector)
                )
                # Sorted, so that two workers with the same texts do not deadlock.
                for key, vector in sorted(vectors.items())
            ],
            ignore_conflicts=True,
        )


def trim_embedding_cache() -> JobRunResult:
    """Delete cached vectors that were not used for CACHE_AGE, in steps of one tenant each, for about CACHE_TRIM_DURATION."""
    ends_at = time.monotonic() + CACHE_TRIM_DURATION.total_seconds()
    steps = done = failed = 0
    pending: list[UUID] = list(Tenant.objects.using(OPS).order_by("?").values_list("id", flat=True))
    while pending and time.monotonic() < ends_at:
        tenant_id = pending.pop(0)
        steps += 1
        try:
            with tenant_transaction(tenant_id):
                trimmed = change(queries.TRIM_CACHE, age=CACHE_AGE, most=_MAX_TRIMMED)
        except DatabaseError:
            # An error in one tenant must not stop the trimming of the others.
            log.exception("cache_trim_failed", tenant_id=str(tenant_id))
            failed += 1
            continue
        done += trimmed
        if trimmed == _MAX_TRIMMED:
            pending.append(tenant_id)
    return JobRunResult(steps=steps, done=done, failed=failed)
