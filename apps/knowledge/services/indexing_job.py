"""The periodic job that indexes documents whose message was lost, and embeds passages that have no vector."""

from __future__ import annotations

import time
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
from apps.memories.services.jobs.job_runs import JobRunResult
from apps.tenants.scope import OPS, tenant_transaction
from arbor.errors import EmbeddingFailed

log = structlog.get_logger(__name__)

#: How long one run begins new work: well below the time limit of a maintenance task.
RUN_TAKES = timedelta(seconds=15)
#: Documents found by one query, and those of one tenant among them.
_MOST = 50
_PER_TENANT = 10
#: Passages that are embedded in one step.
_STEP = 100
#: Prefix of the model's name in a passage that the model could not embed, though it embeds others.
REFUSED = "refused: "


def index_due_documents() -> JobRunResult:
    """Index the documents that wait, tenants in turns, then embed passages without vectors, for at most RUN_TAKES."""
    ends_at = time.monotonic() + RUN_TAKES.total_seconds()
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
    """Return documents that wait, with their tenants; while the embedder rests, no document only to replace another embedder's vectors."""
    values: dict[str, Any] = {
        "model": name_of(installation_model()),
        "rests": rests,
        "per_tenant": _PER_TENANT,
        "most": _MOST,
    }
    with connections[OPS].cursor() as cursor:
        cursor.execute(queries.DUE_DOCUMENTS, values)
        return list(cursor.fetchall())


def _embed_missing(ends_at: float) -> tuple[int, int]:
    """Embed passages without vectors, tenant by tenant; return how many, and 1 if the embedder failed."""
    with connections[OPS].cursor() as cursor:
        cursor.execute(queries.TENANTS_WITHOUT_VECTORS)
        tenants: list[UUID] = [tenant_id for (tenant_id,) in cursor.fetchall()]
    done = 0
    for tenant_id in tenants:
        while time.monotonic() < ends_at:
            try:
                embedded = _embed_step(tenant_id, _STEP)
            except EmbeddingFailed as error:
                record_embedder_failure(installation_model(), error)
                return done, 1
            if embedded == 0:
                break
            done += embedded
    if done:
        record_embedder_recovery(installation_model())
    return done, 0


def _embed_step(tenant_id: UUID, most: int) -> int:
    """Embed some passages of a tenant; return how many are settled. Raises EmbeddingFailed if the embedder fails."""
    with tenant_transaction(tenant_id):
        waiting = list(
            Passage.objects.filter(embedding__isnull=True, embedding_model="")
            .order_by("id")
            .only("id", "headings", "text")[:most]
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
        return _mark_refused(tenant_id, waiting[0].id, error)
    with tenant_transaction(tenant_id):
        documents = set()
        for passage, vector in zip(waiting, vectors, strict=True):
            row = Passage.objects.filter(id=passage.id, embedding__isnull=True)
            row.update(embedding=HalfVector(vector), embedding_model=name_of(installation_model()))
            documents.add(passage.document_id)
        _update_progress(documents)
    return len(waiting)


def _mark_refused(tenant_id: UUID, passage_id: UUID, error: EmbeddingFailed) -> int:
    """Mark a passage that its embedder cannot embed, though it embeds others: words find it."""
    model = installation_model()
    log.warning("passage_refused", id=str(passage_id), model=str(model), error=str(error))
    with tenant_transaction(tenant_id):
        return Passage.objects.filter(id=passage_id, embedding__isnull=True).update(
            embedding_model=(REFUSED + name_of(model))[:100]
        )


def _update_progress(document_ids: set[UUID]) -> None:
    """Count the vectors of documents that were indexed without them; the last one clears the error."""
    for document in Document.objects.filter(id__in=document_ids).order_by("id").select_for_update():
        missing = Passage.objects.filter(document=document, embedding__isnull=True).count()
        document.embedded = document.passages - missing
        if not missing:
            document.error = ""
        document.save(update_fields=["embedded", "error", "updated_at"])
