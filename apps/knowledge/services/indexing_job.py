"""The periodic job that indexes documents whose message was lost, and embeds passages that have no vector."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import structlog
from django.db import connections
from pgvector import HalfVector

from apps.knowledge.models import Document, Passage
from apps.knowledge.services import queries
from apps.knowledge.services.indexing import index_document
from apps.memories.services.embedding.embedders import (
    can_embed,
    embedder_faults,
    is_resting,
    name_of,
    record_embedder_failure,
    record_embedder_recovery,
)
from apps.memories.services.embedding.embedding import embed_texts
from apps.memories.services.embedding.minds import installation_model
from apps.memories.services.embedding.missing_vectors import REFUSED_BY_EMBEDDER, WAITS_FOR_VECTOR
from apps.memories.services.jobs.job_runs import JobRunResult
from apps.tenants.scope import OPS, tenant_transaction
from arbor.embedding.models import REFUSED
from arbor.errors import EmbeddingFailed
from arbor.knowledge.values import IndexingStatus
from arbor.quotations import counted

log = structlog.get_logger(__name__)

#: The time after which one run begins no new work: well below the time limit of a maintenance task.
_JOB_RUN_DURATION = timedelta(seconds=15)
#: The most documents that one run indexes, and those of one tenant among them.
_MAX_DOCUMENTS = 50
_MAX_OF_TENANT = 10
#: The most passages that one step embeds.
_EMBEDDED_AT_ONCE = 100


def index_due_documents() -> JobRunResult:
    """Index the documents that wait, tenants in turns, then embed passages without vectors, in a limited time."""
    ends_at = time.monotonic() + _JOB_RUN_DURATION.total_seconds()
    model = installation_model()
    rests = any(
        fault.embedding_model == name_of(model) and is_resting(fault, datetime.now(UTC))
        for fault in embedder_faults()
    )
    steps = done = 0
    for tenant_id, document_id in _due(rests=rests):
        if time.monotonic() >= ends_at:
            break
        steps += 1
        done += index_document(document_id=document_id, tenant_id=tenant_id) is not None
    failed = 0
    if not rests:
        embedded, failed = _embed_missing(ends_at)
        done += embedded
    return JobRunResult(steps=steps, done=done, failed=failed)


def _due(*, rests: bool) -> list[tuple[UUID, UUID]]:
    """Return the documents to index, as (tenant, document).

    Indexed documents whose vectors are of another embedder are among them, unless the embedder rests.
    """
    values: dict[str, Any] = {
        "model": name_of(installation_model()),
        "rests": rests,
        "per_tenant": _MAX_OF_TENANT,
        "most": _MAX_DOCUMENTS,
    }
    with connections[OPS].cursor() as cursor:
        cursor.execute(queries.DUE_DOCUMENTS, values)
        return list(cursor.fetchall())


def _embed_missing(ends_at: float) -> tuple[int, int]:
    """Embed passages without vectors, tenant by tenant; return how many were embedded or refused, and 1 if the embedder failed."""
    with connections[OPS].cursor() as cursor:
        cursor.execute(queries.TENANTS_WITHOUT_VECTORS)
        tenants: list[UUID] = [tenant_id for (tenant_id,) in cursor.fetchall()]
    done = 0
    for tenant_id in tenants:
        while time.monotonic() < ends_at:
            try:
                embedded = _embed_step(tenant_id, _EMBEDDED_AT_ONCE)
            except EmbeddingFailed as error:
                record_embedder_failure(installation_model(), error=error)
                return done, 1
            if embedded == 0:
                break
            done += embedded
    if done:
        record_embedder_recovery(installation_model())
    return done, 0


def _embed_step(tenant_id: UUID, most: int) -> int:
    """Embed some passages of a tenant; return how many were embedded or refused. Raises EmbeddingFailed if the embedder fails."""
    with tenant_transaction(tenant_id):
        waiting = list(
            Passage.objects.filter(WAITS_FOR_VECTOR)
            .order_by("id")
            .only("id", "document_id", "headings", "text")[:most]
        )
    if not waiting:
        return 0
    try:
        vectors = embed_texts(tenant_id=tenant_id, texts=[passage.context for passage in waiting])
    except EmbeddingFailed as error:
        if not can_embed(installation_model()):
            raise
        if len(waiting) > 1:
            return _embed_step(tenant_id, len(waiting) // 2)
        return _mark_refused(tenant_id, waiting[0], error)
    with tenant_transaction(tenant_id):
        documents = _lock_documents({passage.document_id for passage in waiting})
        for passage, vector in zip(waiting, vectors, strict=True):
            passage.embedding, passage.embedding_model = HalfVector(vector), name_of(installation_model())
        unembedded = Passage.objects.filter(embedding__isnull=True)
        unembedded.bulk_update(waiting, ["embedding", "embedding_model"])
        _update_progress(documents)
    return len(waiting)


def _mark_refused(tenant_id: UUID, passage: Passage, error: EmbeddingFailed) -> int:
    """Mark a passage that the embedder cannot embed, though it embeds others; words alone find it."""
    model = installation_model()
    log.warning("passage_refused", id=str(passage.id), model=str(model), error=str(error))
    with tenant_transaction(tenant_id):
        documents = _lock_documents({passage.document_id})
        rows = Passage.objects.filter(id=passage.id, embedding__isnull=True)
        marked = rows.update(embedding_model=(REFUSED + name_of(model))[:100])
        _update_progress(documents, refusal=str(error))
    return marked


def _lock_documents(document_ids: set[UUID]) -> list[Document]:
    """Lock documents before their passages, as every other transaction does."""
    return list(Document.objects.filter(id__in=document_ids).order_by("id").select_for_update())


def _update_progress(documents: Iterable[Document], *, refusal: str = "") -> None:
    """Count the vectors and refusals of locked documents that were indexed without vectors.

    The reason of a refusal becomes the document's error; without refusals, the last vector clears the error. Documents whose latest
    version is being indexed, or could not be, have the counts and error of that version, and do not change.
    """
    for document in documents:
        if document.indexing != IndexingStatus.INDEXED:
            continue
        rows = Passage.objects.filter(document=document, embedding__isnull=True)
        missing = rows.count()
        document.refused = rows.filter(REFUSED_BY_EMBEDDER).count()
        document.embedded = document.passages - missing
        if refusal:
            passages = counted(document.refused, "passage is", "passages are")
            document.error = f"{passages} found by words alone, refused by the embedder: {refusal}"
        elif not missing:
            document.error = ""
        document.save(update_fields=["embedded", "refused", "error", "updated_at"])
