"""Find documents, and read their texts, passages and counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Length, Substr

from apps.knowledge.models import Document, DocumentVersion, Passage
from arbor.errors import Invalid, NotFound
from arbor.knowledge.values import DocumentStatus, IndexingStatus

#: The most characters of a document that are read at once.
MAX_CHARACTERS = 20_000
#: The last place at which a part may begin: PostgreSQL counts characters by integers of 4 bytes.
_LAST_START = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class DocumentFilter:
    """The wanted documents; None and an empty text do not filter."""

    status: DocumentStatus | None = None
    indexing: IndexingStatus | None = None
    #: "" means documents without a category.
    category: str | None = None
    #: A part of the name or title.
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class CategoryCount:
    """A category, empty for none, with the numbers of its documents and of the published ones among them."""

    category: str
    documents: int
    published: int


@dataclass(frozen=True, kw_only=True)
class DocumentText:
    """A part of a document's text."""

    document: Document
    version: int
    text: str
    start: int
    #: The length of the whole text, in characters.
    length: int


def find_documents(wanted: DocumentFilter) -> QuerySet[Document]:
    """Return the wanted documents of the tenant."""
    rows = Document.objects.all()
    if wanted.status is not None:
        rows = rows.filter(status=wanted.status)
    if wanted.indexing is not None:
        rows = rows.filter(indexing=wanted.indexing)
    if wanted.category is not None:
        rows = rows.filter(category=wanted.category)
    if wanted.text:
        rows = rows.filter(Q(name__icontains=wanted.text) | Q(title__icontains=wanted.text))
    return rows


def versions_of(document_id: UUID) -> QuerySet[DocumentVersion]:
    """Return the versions of a document, the latest first, without their files and texts."""
    return (
        DocumentVersion.objects.filter(document_id=document_id).defer("content", "text").order_by("-number")
    )


def version_of(document_id: UUID, number: int | None) -> DocumentVersion:
    """Return a version of a document with its file, by default the latest. Raises NotFound."""
    versions = DocumentVersion.objects.filter(document_id=document_id).order_by("-number")
    found = (versions if number is None else versions.filter(number=number)).first()
    if found is None:
        raise NotFound(f"the document {document_id} has no version {'yet' if number is None else number}")
    return found


def passages_of(document_id: UUID) -> QuerySet[Passage]:
    """Return the passages of a document in order, without vectors."""
    return Passage.objects.filter(document_id=document_id).defer("embedding", "lexical").order_by("position")


def read_text(*, document: Document, start: int = 0, length: int = MAX_CHARACTERS) -> DocumentText:
    """Read a part of the text of a document's indexed version.

    Raises Invalid for a length that is not 1 to MAX_CHARACTERS or a start out of range, and NotFound for a document that has not
    been indexed.
    """
    if not 1 <= length <= MAX_CHARACTERS or not 0 <= start <= _LAST_START:
        raise Invalid(
            f"a part begins at 0 to {_LAST_START} and has 1 to {MAX_CHARACTERS:,} characters, got {length} from {start}"
        )
    part = (
        DocumentVersion.objects.filter(document=document, number=document.indexed_version)
        # PostgreSQL counts from 1; no text is so long that its last start differs from the one before.
        .values_list(Substr("text", min(start + 1, _LAST_START), length), Length("text"))
        .first()
    )
    if part is None:
        raise NotFound(f"the document {document.name!r} has not been indexed yet: it is {document.indexing}")
    text, whole = part
    return DocumentText(
        document=document, version=document.indexed_version, text=text, start=start, length=whole
    )


def count_categories() -> list[CategoryCount]:
    """Count the tenant's documents by category."""
    counts = Document.objects.values("category").order_by("category")
    published = Count("id", filter=Q(status=DocumentStatus.PUBLISHED))
    return [
        CategoryCount(category=row["category"], documents=row["documents"], published=row["published"])
        for row in counts.annotate(documents=Count("id"), published=published)
    ]


def count_by_indexing(document_ids: Iterable[UUID]) -> dict[IndexingStatus, int]:
    """Count documents by the status of their indexing."""
    rows = Document.objects.filter(id__in=document_ids)
    counts = dict(rows.order_by().values_list("indexing").annotate(Count("id")))
    return {status: counts.get(status.value, 0) for status in IndexingStatus}
