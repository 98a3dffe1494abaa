"""Add documents and their versions; publish, withdraw, categorize, index again and delete documents."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.db import transaction

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.knowledge.models import Document, DocumentVersion
from apps.knowledge.services.passages import copy_category, remove_passages, set_searchable
from apps.queues import Task, TaskMessage, enqueue
from apps.signals.services.emission import emit
from apps.tenants.scope import current_tenant
from arbor.errors import DocumentUnreadable, Invalid, NotFound, TransitionIllegal
from arbor.ids import read_id
from arbor.knowledge.files import checked_category, checked_name, kind_of, title_of
from arbor.knowledge.values import TRANSITIONS, DocumentStatus, IndexingStatus
from arbor.signals import SignalName, label, signal

#: The audited act of a change to a status, and its verb.
_STATUS_ACTS = {
    DocumentStatus.DRAFT: (AuditAction.DOCUMENT_CHANGED, "made a draft of"),
    DocumentStatus.PUBLISHED: (AuditAction.DOCUMENT_PUBLISHED, "published"),
    DocumentStatus.WITHDRAWN: (AuditAction.DOCUMENT_WITHDRAWN, "withdrew"),
}


@dataclass(frozen=True, kw_only=True)
class NewDocument:
    """A file to add."""

    #: The file's name, perhaps with folders; its ending decides the kind.
    name: str
    content: bytes
    #: None: an existing document keeps its category, and a new one has none.
    category: str | None = None
    #: Publish the document; otherwise a new document is a draft, and an existing one keeps its status.
    publish: bool = False
    #: Leave category and status of an existing document as people chose them. A document that the actor itself withdrew gets back
    #: its status before that; with a changed file only if `publish` is set.
    defer_to_people: bool = False


@dataclass(frozen=True, kw_only=True)
class AddedDocument:
    """A document after its file was added."""

    document: Document
    #: Whether the document did not exist before, and whether it got a new version; both are false if it has this file already.
    is_new: bool
    is_changed: bool


@transaction.atomic
def add_document(*, new: NewDocument, actor: str) -> AddedDocument:
    """Add a file as a document, or as the next version of the document of that name, and enqueue its indexing.

    A file that the document has already changes only category and status. Raises Invalid for a name, category or size that is not allowed.
    """
    name = checked_name(new.name)
    kind = kind_of(name)
    category = None if new.category is None else checked_category(new.category)
    if not new.content:
        raise Invalid(f"a document needs a file with content, and {name!r} is empty")
    check_size(len(new.content))
    digest = hashlib.sha256(new.content).digest()
    tenant_id = current_tenant()
    document, is_new = Document.objects.get_or_create(
        name=name,
        defaults={
            "tenant_id": tenant_id,
            "title": title_of(name),
            "category": category or "",
            "kind": kind.value,
            "created_by": actor,
        },
    )
    document = lock_document(document.id)
    is_changed = not is_new and not _has_digest(document, digest)
    if is_new or is_changed:
        document.version = 1 if is_new else document.version + 1
        document.kind = kind.value
        DocumentVersion.objects.create(
            tenant_id=tenant_id,
            document=document,
            number=document.version,
            kind=kind.value,
            digest=digest,
            content=new.content,
            size=len(new.content),
            created_by=actor,
        )
        request_indexing(document)
        action = AuditAction.DOCUMENT_ADDED if is_new else AuditAction.DOCUMENT_CHANGED
        _record(
            document,
            action,
            actor,
            f"{'added' if is_new else 'changed'} the document {name!r}, version {document.version}",
        )
        if document.status == DocumentStatus.PUBLISHED:
            _emit(SignalName.DOCUMENT_CHANGED, document, actor)
    may_change = is_new or not new.defer_to_people
    if category is not None and may_change and not is_new:
        _set_category(document, category, actor)
    if new.publish and may_change:
        _set_status(document, DocumentStatus.PUBLISHED, actor)
    was_withdrawn_by_actor = document.status == DocumentStatus.WITHDRAWN and document.status_by == actor
    if was_withdrawn_by_actor and not may_change and (new.publish or not is_changed):
        _set_status(document, DocumentStatus(document.status_before or DocumentStatus.PUBLISHED), actor)
    return AddedDocument(document=document, is_new=is_new, is_changed=is_changed)


def check_size(size: int) -> None:
    """Raise DocumentUnreadable for a file that is larger than the setting allows."""
    most = settings.ARBOR_DOCUMENT_MB * 2**20
    if size > most:
        raise DocumentUnreadable(
            f"a document has at most {settings.ARBOR_DOCUMENT_MB} MB (ARBOR_DOCUMENT_MB), got {size / 2**20:.1f} MB"
        )


def _has_digest(document: Document, digest: bytes) -> bool:
    latest = DocumentVersion.objects.filter(document=document, number=document.version)
    return bytes(latest.values_list("digest", flat=True)[0]) == digest


@transaction.atomic
def publish_document(*, document_id: UUID, actor: str) -> Document:
    """Publish a document, so that agents find it. Nothing changes for a published document. Raises NotFound."""
    document = lock_document(document_id)
    _set_status(document, DocumentStatus.PUBLISHED, actor)
    return document


@transaction.atomic
def withdraw_document(*, document_id: UUID, actor: str) -> Document:
    """Hide a document from agents; its versions stay. Nothing changes for a withdrawn document. Raises NotFound."""
    document = lock_document(document_id)
    _set_status(document, DocumentStatus.WITHDRAWN, actor)
    return document


@transaction.atomic
def file_document(*, document_id: UUID, category: str, actor: str) -> Document:
    """Move a document to another category, empty for none. Raises NotFound, and Invalid for a category that is too long."""
    document = lock_document(document_id)
    _set_category(document, checked_category(category), actor)
    return document


@transaction.atomic
def reindex_document(*, document_id: UUID, actor: str) -> Document:
    """Enqueue the indexing of a document's latest version again. Raises NotFound."""
    document = lock_document(document_id)
    request_indexing(document)
    _record(
        document, AuditAction.DOCUMENT_CHANGED, actor, f"requested that {document.name!r} is indexed again"
    )
    return document


@transaction.atomic
def delete_document(*, document_id: UUID, actor: str) -> Document:
    """Delete a document with its versions and passages for good. Raises NotFound."""
    document = lock_document(document_id)
    if document.status == DocumentStatus.PUBLISHED:
        _emit(SignalName.DOCUMENT_WITHDRAWN, document, actor)
    remove_passages(document)
    _record(document, AuditAction.DOCUMENT_DELETED, actor, f"deleted the document {document.name!r}")
    Document.objects.filter(id=document.id).delete()
    return document


def lock_document(document_id: UUID) -> Document:
    """Lock a document until the end of the transaction, and return it. Raises NotFound."""
    document = Document.objects.select_for_update().filter(id=document_id).first()
    if document is None:
        raise NotFound(f"there is no document {document_id} in this tenant")
    return document


def document_by_name(text: str) -> Document:
    """Return the document of that name or id, in the open transaction. Raises NotFound."""
    document_id = read_id(text)
    found = Document.objects.filter(id=document_id) if document_id else Document.objects.filter(name=text)
    document = found.first()
    if document is None:
        raise NotFound(f"there is no document {text!r}; `arbor document list` shows them")
    return document


def request_indexing(document: Document) -> None:
    """Mark the latest version of a locked document as pending, end the lease of its worker, and enqueue the indexing."""
    document.indexing = IndexingStatus.PENDING
    document.passages = document.embedded = document.refused = document.failures = 0
    document.error = ""
    document.lease = document.lease_until = document.retry_at = None
    document.save()
    enqueue_indexing(document)


def enqueue_indexing(document: Document) -> None:
    """Enqueue the indexing of a document after the commit."""
    enqueue(
        TaskMessage(
            task=Task.INDEX_DOCUMENT,
            tenant_id=document.tenant_id,
            arguments={"document_id": str(document.id)},
            shown=f"document {document.name}",
        )
    )


def _set_status(document: Document, status: DocumentStatus, actor: str) -> None:
    before = DocumentStatus(document.status)
    if before is status:
        return
    if status not in TRANSITIONS[before]:
        raise TransitionIllegal(f"the document {document.name!r} is {before} and cannot become {status}")
    document.status, document.status_by, document.status_before = status, actor, before
    document.save(update_fields=["status", "status_by", "status_before", "updated_at"])
    published = status is DocumentStatus.PUBLISHED
    set_searchable(document, searchable=published)
    action, verb = _STATUS_ACTS[status]
    _record(document, action, actor, f"{verb} the document {document.name!r}, before {before}")
    if published or before is DocumentStatus.PUBLISHED:
        _emit(SignalName.DOCUMENT_PUBLISHED if published else SignalName.DOCUMENT_WITHDRAWN, document, actor)


def _set_category(document: Document, category: str, actor: str) -> None:
    before = document.category
    if category == before:
        return
    document.category = category
    document.save(update_fields=["category", "updated_at"])
    copy_category(document)
    message = f"filed the document {document.name!r} under {category or 'no category'!r}, before {before or 'none'!r}"
    _record(document, AuditAction.DOCUMENT_CHANGED, actor, message)
    if document.status == DocumentStatus.PUBLISHED:
        _emit(SignalName.DOCUMENT_CHANGED, document, actor)


def _record(document: Document, action: AuditAction, actor: str, message: str) -> None:
    detail = {"document_id": str(document.id), "version": document.version, "category": document.category}
    record(action=action, actor=actor, message=message, detail=detail)


def _emit(name: SignalName, document: Document, actor: str) -> None:
    emit(signal(name, None, **document_facts(document), actor=actor))


def document_facts(document: Document) -> dict[str, object]:
    """Return the fields that all signals about documents have."""
    return {
        "document": document.id,
        "title": label(document.title),
        "category": document.category,
        "version": document.version,
    }
