"""Index documents: read the file, split it, embed the passages, and replace those of the version before.

A worker has a document under a lease. Reading and embedding happen outside transactions; each later write compares the lease, so a new version
of the document, or another worker, ends the work. When a worker dies, no vectors of a remote embedder are lost: they are in the tenant's cache.
"""

from __future__ import annotations

import atexit
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from uuid import UUID, uuid4

import numpy as np
import numpy.typing as npt
import structlog
from django.conf import settings
from django.db.models import F, Q
from django.db.models.functions import Now

from apps.knowledge.models import Document, DocumentVersion, Passage
from apps.knowledge.services.documents import document_facts, enqueue_indexing, lock_document
from apps.knowledge.services.passages import embedded_passages, replace_passages
from apps.memories.services.embedding.embedders import name_of
from apps.memories.services.embedding.embedding import embed_texts
from apps.memories.services.embedding.minds import installation_model
from apps.signals.services.emission import emit
from apps.tenants.scope import tenant_transaction
from arbor.adapters.document_formats import FormatLimits
from arbor.adapters.documents import DocumentReader, ReadingLimits
from arbor.errors import DocumentUnreadable, EmbeddingFailed, NotFound, ReaderKilled, StaleLease
from arbor.knowledge.blocks import ParsedDocument
from arbor.knowledge.chunking import PassageDraft, PassageSize, split_document
from arbor.knowledge.files import title_of
from arbor.knowledge.values import DocumentKind, IndexingStatus
from arbor.memory.content import content_hash
from arbor.quotations import counted
from arbor.signals import SignalName, label, signal

log = structlog.get_logger(__name__)

#: The time for which a worker may index a document; renewed with each step of embedding.
LEASE = timedelta(minutes=5)
#: Passages that are embedded in one step.
EMBEDDED_AT_ONCE = 64
#: How long one attempt embeds; the next attempt finds the vectors so far in the cache.
EMBEDDING_DURATION = timedelta(seconds=35)
#: The attempts without a result after which a document counts as failed, and the delay after the first one, which doubles.
MAX_ATTEMPTS = 5
_FIRST_DELAY = timedelta(seconds=30)
_ERROR_LENGTH = 1_000
_OWN_ERROR = "indexing failed with an error of Arbor's own; the log of the workers has it"

type _Vectors = list[npt.NDArray[np.float32] | None]
#: Vectors by the hash of the text and the headings above it.
type _StoredVectors = dict[tuple[bytes, tuple[str, ...]], npt.NDArray[np.float32]]


@dataclass(frozen=True, kw_only=True)
class IndexedDocument:
    """The result of indexing a document."""

    status: IndexingStatus
    passages: int = 0
    #: Why indexing failed, or why passages have no vectors; empty for no error.
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class _ClaimedDocument:
    document_id: UUID
    tenant_id: UUID
    lease: UUID
    version: DocumentVersion


class _OutOfTime(Exception):
    """The time of an attempt is over; the next attempt continues."""


def index_document(*, document_id: UUID, tenant_id: UUID) -> IndexedDocument | None:
    """Index the latest version of a document.

    Returns None if another worker has the document, it is not due, or it changed meanwhile. A file that cannot be read is a result,
    not an error.
    """
    claimed = _claim(document_id, tenant_id)
    if claimed is None:
        return None
    try:
        return _index(claimed)
    except DocumentUnreadable as error:
        return _settle_failure(claimed, str(error))
    except StaleLease:
        log.info("document_indexing_superseded", document_id=str(document_id))
        return None
    except _OutOfTime:
        return _release(claimed)
    except ReaderKilled as error:
        log.warning("document_reader_killed", document_id=str(document_id), error=str(error))
        return _record_failed_attempt(claimed, str(error))
    except Exception:
        # One document must not stop the others, nor be tried for ever.
        log.exception("document_indexing_failed", document_id=str(document_id), tenant_id=str(tenant_id))
        return _record_failed_attempt(claimed, _OWN_ERROR)


def document_reader() -> DocumentReader:
    """Return this process's reader of files, with the limits from the settings."""
    return _reader(reading_limits())


def reading_limits() -> ReadingLimits:
    """Return the limits from the settings."""
    return ReadingLimits(
        seconds=settings.ARBOR_DOCUMENT_READ_S,
        memory_bytes=settings.ARBOR_DOCUMENT_READ_MB * 2**20,
        formats=FormatLimits(
            pages=settings.ARBOR_DOCUMENT_PAGES, characters=settings.ARBOR_DOCUMENT_CHARACTERS
        ),
    )


@lru_cache(maxsize=1)
def _reader(limits: ReadingLimits) -> DocumentReader:
    reader = DocumentReader(limits)
    atexit.register(reader.close)
    return reader


def passage_size() -> PassageSize:
    """Return the size of passages from the settings."""
    return PassageSize(target=settings.ARBOR_PASSAGE_TOKENS, overlap=settings.ARBOR_PASSAGE_OVERLAP)


def _claim(document_id: UUID, tenant_id: UUID) -> _ClaimedDocument | None:
    """Lease a document that is pending, whose worker is lost, or whose vectors are of another embedder; None if it is not due.

    A document that has lost too many workers is not leased, but settled as failed.
    """
    lease = uuid4()
    with tenant_transaction(tenant_id):
        now = datetime.now(UTC)
        model = name_of(installation_model())
        due = (
            Q(indexing=IndexingStatus.PENDING)
            | Q(indexing=IndexingStatus.INDEXING, lease_until__lte=now)
            | Q(indexing=IndexingStatus.INDEXED) & ~Q(embedding_model=model)
        ) & (Q(retry_at=None) | Q(retry_at__lte=now))
        document = Document.objects.select_for_update().filter(due, id=document_id).first()
        if document is None:
            return None
        if document.indexing == IndexingStatus.INDEXING:
            document.failures += 1
        document.indexing = IndexingStatus.INDEXING
        document.lease, document.lease_until = lease, now + LEASE
        document.save()
        version = DocumentVersion.objects.get(document=document, number=document.version)
        claimed = _ClaimedDocument(document_id=document_id, tenant_id=tenant_id, lease=lease, version=version)
    if document.failures >= MAX_ATTEMPTS:
        _settle_failure(
            claimed,
            f"{document.failures} attempts failed; in the last one the worker ended before the document was indexed",
        )
        return None
    return claimed


def _index(claimed: _ClaimedDocument) -> IndexedDocument:
    version = claimed.version
    parsed = document_reader().read(kind=DocumentKind(version.kind), content=bytes(version.content))
    drafts = split_document(parsed, passage_size())
    stored = _store_text(claimed, parsed, drafts)
    model = name_of(installation_model())
    vectors, error = _embed(claimed, drafts, stored)
    passages = embedded_passages(drafts, vectors)
    with tenant_transaction(claimed.tenant_id):
        document = _lock_leased(claimed)
        replace_passages(document=document, version=version, passages=passages, embedding_model=model)
        document.indexed_version = version.number
        document.embedding_model = model
        document.embedded = sum(vector is not None for vector in vectors)
        document.title = title_of(document.name, parsed.title, parsed.heading)
        _settle(document, IndexingStatus.INDEXED, error)
        DocumentVersion.objects.filter(id=version.id).update(indexed_at=Now(), error="")
        emit(signal(SignalName.DOCUMENT_INDEXED, None, **document_facts(document), passages=len(passages)))
    return IndexedDocument(status=IndexingStatus.INDEXED, passages=len(passages), error=error)


def _store_text(
    claimed: _ClaimedDocument, parsed: ParsedDocument, drafts: Sequence[PassageDraft]
) -> _StoredVectors:
    """Store the text and the number of passages; return the vectors of the passages that exist. Raises StaleLease."""
    model = name_of(installation_model())
    with tenant_transaction(claimed.tenant_id):
        document = _lock_leased(claimed)
        document.passages, document.embedded, document.refused = len(drafts), 0, 0
        document.save()
        DocumentVersion.objects.filter(id=claimed.version.id).update(text=parsed.text, pages=parsed.pages)
        rows = Passage.objects.filter(document=document, embedding_model=model, embedding__isnull=False)
        return {
            (bytes(digest), tuple(headings)): np.asarray(vector, dtype=np.float32)
            for digest, headings, vector in rows.values_list("content_hash", "headings", "embedding")
        }


def _embed(
    claimed: _ClaimedDocument,
    drafts: Sequence[PassageDraft],
    stored: _StoredVectors,
) -> tuple[_Vectors, str]:
    """Return the vectors of the passages, and why some are missing, empty if none is. Raises _OutOfTime, StaleLease."""
    vectors: _Vectors = [stored.get((content_hash(draft.text), draft.headings)) for draft in drafts]
    missing = [number for number, vector in enumerate(vectors) if vector is None]
    ends_at = time.monotonic() + EMBEDDING_DURATION.total_seconds()
    for first in range(0, len(missing), EMBEDDED_AT_ONCE):
        step = missing[first : first + EMBEDDED_AT_ONCE]
        if first:
            if time.monotonic() > ends_at:
                raise _OutOfTime
            _record_progress(claimed, embedded=len(drafts) - len(missing) + first)
        try:
            fresh = embed_texts(
                tenant_id=claimed.tenant_id, texts=[drafts[number].context for number in step]
            )
        except EmbeddingFailed as error:
            log.warning("passages_without_vectors", document_id=str(claimed.document_id), error=str(error))
            left = len(missing) - first
            passages = counted(left, "passage is", "passages are")
            return vectors, f"{passages} found by words alone until embedded: {error}"
        for number, vector in zip(step, fresh, strict=True):
            vectors[number] = vector
    return vectors, ""


def _record_progress(claimed: _ClaimedDocument, *, embedded: int) -> None:
    """Write the progress, and renew the lease. Raises StaleLease."""
    with tenant_transaction(claimed.tenant_id):
        leased = Document.objects.filter(id=claimed.document_id, lease=claimed.lease)
        if not leased.update(embedded=embedded, lease_until=Now() + LEASE):
            raise StaleLease


def _lock_leased(claimed: _ClaimedDocument) -> Document:
    """Lock and return the leased document. Raises StaleLease if another worker has it, it has a new version, or it is deleted."""
    try:
        document = lock_document(claimed.document_id)
    except NotFound as error:
        raise StaleLease from error
    if document.lease != claimed.lease:
        raise StaleLease
    return document


def _settle(document: Document, status: IndexingStatus, error: str) -> None:
    document.indexing = status
    document.error = error[:_ERROR_LENGTH]
    document.failures = 0
    document.lease = document.lease_until = document.retry_at = None
    document.save()


def _settle_failure(claimed: _ClaimedDocument, error: str) -> IndexedDocument | None:
    """Record that the version cannot be indexed; passages of the version before stay."""
    log.info("document_failed", document_id=str(claimed.document_id), error=error)
    try:
        with tenant_transaction(claimed.tenant_id):
            document = _lock_leased(claimed)
            _settle(document, IndexingStatus.FAILED, error)
            DocumentVersion.objects.filter(id=claimed.version.id).update(error=error[:_ERROR_LENGTH])
            emit(signal(SignalName.DOCUMENT_FAILED, None, **document_facts(document), error=label(error)))
    except StaleLease:
        return None
    return IndexedDocument(status=IndexingStatus.FAILED, error=error)


def _release(claimed: _ClaimedDocument) -> IndexedDocument | None:
    """End the lease on a document and enqueue it; the next attempt continues."""
    try:
        with tenant_transaction(claimed.tenant_id):
            document = _lock_leased(claimed)
            document.indexing = IndexingStatus.PENDING
            document.lease = document.lease_until = None
            document.save()
            enqueue_indexing(document)
    except StaleLease:
        return None
    return IndexedDocument(status=IndexingStatus.PENDING)


def _record_failed_attempt(claimed: _ClaimedDocument, reason: str) -> IndexedDocument | None:
    """Count a failed attempt: schedule the next one after a growing delay, or settle the failure after MAX_ATTEMPTS."""
    with tenant_transaction(claimed.tenant_id):
        leased = Document.objects.filter(id=claimed.document_id, lease=claimed.lease)
        failures = leased.values_list("failures", flat=True).first()
        if failures is None:
            return None
        if failures + 1 < MAX_ATTEMPTS:
            leased.update(
                failures=F("failures") + 1,
                indexing=IndexingStatus.PENDING,
                error=reason,
                retry_at=Now() + _FIRST_DELAY * 2**failures,
                lease=None,
                lease_until=None,
            )
            return IndexedDocument(status=IndexingStatus.PENDING, error=reason)
    return _settle_failure(claimed, reason)
