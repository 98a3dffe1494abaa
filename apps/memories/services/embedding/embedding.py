"""Embed texts, never inside a transaction: from this process's cache, the tenant's cache, or the embedder."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from uuid import UUID

import numpy as np
import numpy.typing as npt
import structlog
from django.conf import settings
from django.db import DatabaseError, connections
from django.db.models.functions import Now
from pgvector import HalfVector

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.memories.models import EmbeddingCacheEntry
from apps.memories.services.embedding import queries
from apps.memories.services.embedding.minds import checked, installation_model
from apps.memories.services.jobs.rounds import Round
from apps.providers import credentials
from apps.tenants.models import Tenant
from apps.tenants.scope import APP, OPS, tenant_transaction
from apps.tenants.statements import change
from arbor.adapters.embedders import connect_embedder
from arbor.adapters.embedding_http import MAX_TEXT_BYTES
from arbor.embedding.backoff import FIRST_RETRY_DELAY
from arbor.embedding.models import AtStorage, EmbeddingModel
from arbor.embedding.ports import Embedder
from arbor.embedding.vectors import unit_rows
from arbor.errors import ConfigurationInvalid, EmbeddingFailed
from arbor.memory.content import content_hash

log = structlog.get_logger(__name__)

type Vectors = npt.NDArray[np.float32]

#: Vectors that one process keeps: a query that comes again, a text that is recalled about and then stored.
_CACHE_SIZE = 4096
#: Embedders that one process keeps.
_EMBEDDERS = 32
#: A failure that came sooner delayed nobody.
_LONG_WAIT_S = 2.0
#: A use of the tenant's cache is noted once in so long: reading it writes nothing else.
_USE_NOTED = timedelta(days=1)

#: Age at which an unused cached vector is deleted; the text is embedded again if it returns.
CACHE_KEPT = timedelta(days=30)
#: How long one call goes on: what is left is trimmed in the next hour.
CACHE_TRIM_TAKES = timedelta(seconds=60)

#: Entries that are deleted in one transaction.
_TRIMMED = 5_000


def embedder() -> Embedder:
    """Return the installation's embedder. Raises ConfigurationInvalid."""
    return embedder_for(installation_model())


@lru_cache(maxsize=_EMBEDDERS)
def embedder_for(model: EmbeddingModel) -> Embedder:
    """Return the embedder of these vectors; nothing is asked yet.

    Raises ConfigurationInvalid when the settings do not say how to reach it, or its vectors are longer than the index of
    the mind holds.
    """
    checked(model)
    own = model.name == settings.ARBOR_EMBEDDING_MODEL
    # An address is never used for another model than it was given for: a server answers with whatever it serves.
    url = settings.ARBOR_EMBEDDING_URLS.get(model.name) or (settings.ARBOR_EMBEDDING_URL if own else "")
    made = connect_embedder(model.name, credentials(), dimension=model.dimension, url=url)
    if made.dimension != model.dimension:
        raise ConfigurationInvalid(
            f"{made.model} makes vectors of {made.dimension} numbers, and {model.dimension} are asked for"
        )
    return made


def embeds_here(model: EmbeddingModel | None) -> bool:
    """Return whether these vectors are computed in this process, in about a millisecond, without waiting."""
    try:
        return embedder_for(model or installation_model()).in_process
    except ConfigurationInvalid:
        return False


class _VectorCache:
    """The vectors used last in this process. Safe for threads.

    By tenant too: otherwise the time to embed a text would reveal to one tenant what another has.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._vectors: OrderedDict[tuple[UUID, str, bytes], Vectors] = OrderedDict()

    def find(self, tenant_id: UUID, model: str, hashes: Sequence[bytes]) -> dict[bytes, Vectors]:
        with self._lock:
            found = {}
            for digest in hashes:
                key = (tenant_id, model, digest)
                vector = self._vectors.get(key)
                if vector is not None:
                    self._vectors.move_to_end(key)
                    found[digest] = vector
            return found

    def keep(self, tenant_id: UUID, model: str, vectors: dict[bytes, Vectors]) -> None:
        with self._lock:
            for key, vector in vectors.items():
                self._vectors[(tenant_id, model, key)] = vector
            while len(self._vectors) > _CACHE_SIZE:
                self._vectors.popitem(last=False)


_kept = _VectorCache()
#: Until when a model's embedder is not waited for, by this process's clock.
_rests: dict[EmbeddingModel | None, float] = {}


def embed_query(*, tenant_id: UUID, texts: Sequence[str], model: EmbeddingModel | None = None) -> Vectors:
    """Embed as `embed_texts` does, for somebody who waits for an answer and can do without.

    An embedder that kept a caller of this process waiting for long, in vain, is not waited for again for 10 s.
    """
    rests_until = _rests.get(model)
    if rests_until is not None and time.monotonic() < rests_until:
        raise EmbeddingFailed(
            f"{model or 'the embedder'} did not answer just now, and is left alone for some seconds"
        )
    started = time.monotonic()
    try:
        vectors = embed_texts(tenant_id=tenant_id, texts=texts, model=model)
    except EmbeddingFailed:
        if time.monotonic() - started > _LONG_WAIT_S:
            _rests[model] = time.monotonic() + FIRST_RETRY_DELAY.total_seconds()
        raise
    _rests.pop(model, None)
    return vectors


def embed_texts(*, tenant_id: UUID, texts: Sequence[str], model: EmbeddingModel | None = None) -> Vectors:
    """Return one vector per text, in order: float32, (len(texts), dimension), rows of length 1.

    `model` is that of the agent whose memories they will be compared with (`minds.model_of`); none is the
    installation's. Raises EmbeddingFailed, also when the settings do not say any more how that model is reached, and
    RuntimeError inside a transaction for an embedder that is a network away.
    """
    try:
        made = embedder_for(model or installation_model())
    except ConfigurationInvalid as error:
        raise EmbeddingFailed(f"{model or 'the embedder'} cannot be reached: {error}") from error
    if not made.in_process and connections[APP].in_atomic_block:
        raise RuntimeError("texts are embedded before the transaction opens, not inside it")
    if not texts:
        return np.zeros((0, made.dimension), dtype=np.float32)
    cached_as = f"{made.model} {made.dimension}"
    hashes = [content_hash(text) for text in texts]
    known = _kept.find(tenant_id, cached_as, hashes)
    if not made.in_process:
        known |= _from_tenant(tenant_id, cached_as, [digest for digest in hashes if digest not in known])
    missing = {key: text for key, text in zip(hashes, texts, strict=True) if key not in known}
    if missing:
        fresh = dict(zip(missing, ask(made, list(missing.values())), strict=True))
        if not made.in_process:
            _to_tenant(tenant_id, cached_as, fresh, cut=_cut(missing))
        _kept.keep(tenant_id, cached_as, fresh)
        known |= fresh
    return np.stack([known[key] for key in hashes])


def embed_for_storage(
    *, tenant_id: UUID, texts: Sequence[str], model: EmbeddingModel | None
) -> Vectors | None:
    """Return the vectors of texts that are about to be stored; none where upkeep is to embed them.

    That is so when `ARBOR_EMBED_AT_STORAGE` says not to wait for that embedder, and when it fails.
    """
    try:
        in_process = embedder_for(model or installation_model()).in_process
        if not AtStorage.parse(settings.ARBOR_EMBED_AT_STORAGE).waits(in_process=in_process):
            return None
        return embed_texts(tenant_id=tenant_id, texts=texts, model=model)
    except (EmbeddingFailed, ConfigurationInvalid) as error:
        log.warning("stored_without_vectors", model=str(model or ""), memories=len(texts), error=str(error))
        return None


def ask(made: Embedder, texts: Sequence[str]) -> Vectors:
    """Return the embedder's vectors of the texts; wrong ones are refused here, whatever an adapter accepts.

    Raises EmbeddingFailed. Nothing is kept.
    """
    if not made.in_process and settings.ARBOR_DB_POOL_SIZE:
        # Threads that wait for a server share a few connections, and occupy none.
        for alias in (APP, OPS):
            connections[alias].close()
    return unit_rows(made.embed(texts), count=len(texts), dimension=made.dimension, model=made.model)


def _from_tenant(tenant_id: UUID, model: str, hashes: Sequence[bytes]) -> dict[bytes, Vectors]:
    if not hashes:
        return {}
    with tenant_transaction(tenant_id):
        entries = list(EmbeddingCacheEntry.objects.filter(model=model, content_hash__in=hashes))
        before = datetime.now(UTC) - _USE_NOTED
        _note_use(model, [bytes(entry.content_hash) for entry in entries if entry.used_at < before])
    return {bytes(entry.content_hash): np.asarray(entry.embedding, dtype=np.float32) for entry in entries}


def _note_use(model: str, hashes: Sequence[bytes]) -> None:
    """Mark these entries as used, so that they are not trimmed; entries locked by another worker are skipped."""
    if hashes:
        free = EmbeddingCacheEntry.objects.select_for_update(skip_locked=True).filter(
            model=model, content_hash__in=hashes
        )
        EmbeddingCacheEntry.objects.filter(model=model, content_hash__in=free.values("content_hash")).update(
            used_at=Now()
        )


def _cut(texts: Mapping[bytes, str]) -> dict[str, int]:
    """Return of which texts, by their content hash, a server is sent no more than the beginning, and their bytes."""
    sizes = {key.hex(): len(text.encode(errors="replace")) for key, text in texts.items()}
    return {key: size for key, size in sizes.items() if size > MAX_TEXT_BYTES}


def _to_tenant(tenant_id: UUID, model: str, vectors: dict[bytes, Vectors], *, cut: Mapping[str, int]) -> None:
    """Store vectors in the tenant's cache; a truncated text is logged with its vector, once."""
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
                # In one order for all: two workers with the same texts would else wait for each other.
                for key, vector in sorted(vectors.items())
            ],
            ignore_conflicts=True,
        )


def trim_embedding_cache() -> Round:
    """Delete cached vectors that were not used for a month, a step of each tenant in turn, until CACHE_TRIM_TAKES is over."""
    ends_at = time.monotonic() + CACHE_TRIM_TAKES.total_seconds()
    steps = done = failed = 0
    left: list[UUID] = list(Tenant.objects.using(OPS).order_by("?").values_list("id", flat=True))
    while left and time.monotonic() < ends_at:
        tenant_id = left.pop(0)
        steps += 1
        try:
            with tenant_transaction(tenant_id):
                trimmed = change(queries.TRIM_CACHE, kept=CACHE_KEPT, most=_TRIMMED)
        except DatabaseError:
            # One tenant's fault is on record, and the others' caches are trimmed.
            log.exception("cache_trim_failed", tenant_id=str(tenant_id))
            failed += 1
            continue
        done += trimmed
        if trimmed == _TRIMMED:
            left.append(tenant_id)
    return Round(steps=steps, done=done, failed=failed)
