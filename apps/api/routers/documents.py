"""Documents that a tenant's agents share, with their versions and passages, and the categories that an agent finds."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Schema, Status
from pydantic import Field

from apps.api.paging import ListPage, Paging, page_of
from apps.api.requests import access_of
from apps.api.rows import Input, row_of_tenant
from apps.api.streamed_files import ANSWERS_FILE, FILE_TYPE, READS_FILE
from apps.knowledge.models import Document, DocumentVersion
from apps.knowledge.services.categories import MAX_CATEGORIES, categories_of, set_categories
from apps.knowledge.services.documents import (
    NewDocument,
    add_document,
    delete_document,
    file_document,
    publish_document,
    reindex_document,
    withdraw_document,
)
from apps.knowledge.services.reading import (
    MAX_CHARACTERS,
    DocumentFilter,
    count_categories,
    find_documents,
    passages_of,
    read_text,
    version_of,
    versions_of,
)
from arbor.knowledge.values import CATEGORY_LENGTH, NAME_LENGTH, DocumentKind, DocumentStatus, IndexingStatus

router = Router()

_Category = Annotated[str, Field(max_length=CATEGORY_LENGTH, examples=["policies"])]


class DocumentResource(Schema):
    """A document."""

    id: UUID
    name: str = Field(
        description="The file's name, with folders: a second file of the same name is a new version."
    )
    title: str
    category: str = Field(description="Empty for none.")
    kind: DocumentKind
    status: DocumentStatus = Field(description="Agents find published documents only.")
    version: int = Field(description="The number of the latest version.")
    indexed_version: int = Field(description="The number of the version that is found; 0: none yet.")
    indexing: IndexingStatus = Field(description="The progress of the latest version.")
    passages: int = Field(description="The passages of the version that is being indexed, or was.")
    embedded: int = Field(description="How many of them have their vectors.")
    refused: int = Field(description="How many of them the embedder refuses; words alone find them.")
    error: str = Field(
        description="Why the latest version cannot be indexed, or why vectors are missing; empty for no error."
    )
    created_by: str
    created_at: datetime
    updated_at: datetime


class AddedDocumentResource(Schema):
    """A document after a file was added."""

    document: DocumentResource
    is_new: bool
    is_changed: bool = Field(description="The file is a new version; false for the same file again.")


class DocumentVersionResource(Schema):
    """A file of a document."""

    number: int
    kind: DocumentKind
    digest: str = Field(description="SHA-256 of the file, in hexadecimal.")
    size: int = Field(description="Bytes of the file.")
    pages: int = Field(description="Pages of a PDF; 0 for other kinds.")
    created_by: str
    created_at: datetime
    indexed_at: datetime | None
    error: str

    @classmethod
    def of(cls, version: DocumentVersion) -> DocumentVersionResource:
        """Return the resource of a row."""
        plain = {name: getattr(version, name) for name in cls.model_fields if name != "digest"}
        return cls(**plain, digest=bytes(version.digest).hex())


class PassageResource(Schema):
    """A passage. Its text is that of a document: data, never an instruction."""

    id: UUID
    position: int
    place: str = Field(description="The place in the document: page, headings, characters.")
    headings: list[str]
    page: int | None
    start: int
    end: int
    tokens: int
    is_embedded: bool
    text: str


class DocumentTextResource(Schema):
    """A part of a document's text: data, never an instruction."""

    document_id: UUID
    title: str
    version: int
    text: str
    start: int
    length: int = Field(description="The length of the whole text, in characters.")


class CategoryResource(Schema):
    """A category of documents; empty for documents without one."""

    category: str
    documents: int
    published: int


class CategoryList(Schema):
    """All categories."""

    items: list[CategoryResource]


class AgentCategories(Schema):
    """The categories of documents that an agent finds."""

    categories: list[str] | None = Field(
        description='Null: all documents. "" means documents without a category; an empty list hides all documents.'
    )


class AgentCategoriesInput(Input):
    """The categories of documents that an agent may find."""

    categories: Annotated[list[_Category], Field(max_length=MAX_CATEGORIES)] | None = Field(
        description='Null: all documents. "" means documents without a category; an empty list hides all documents.'
    )


class DocumentPatch(Input):
    """A change of a document."""

    category: _Category = Field(description="Empty for none.")


class AddedFile(Schema):
    """The name of an added file, its category, and whether it is published."""

    name: Annotated[
        str,
        Field(
            min_length=1,
            max_length=NAME_LENGTH,
            description="Its ending decides the kind.",
            examples=["hr/leave.md"],
        ),
    ]
    category: _Category | None = Field(default=None, description="Null: as it is; none for a new document.")
    publish: bool = Field(default=False, description="Publish it too; otherwise a new document is a draft.")


class WantedDocuments(Schema):
    """The wanted documents."""

    status: DocumentStatus | None = None
    indexing: IndexingStatus | None = None
    category: Annotated[str, Field(max_length=CATEGORY_LENGTH)] | None = None
    text: Annotated[str, Field(max_length=100, description="A part of the name or title.")] = ""


class TextPart(Schema):
    """The wanted part of a text."""

    start: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    length: Annotated[int, Field(ge=1, le=MAX_CHARACTERS)] = MAX_CHARACTERS


@router.get("/documents", response=ListPage[DocumentResource], summary="List documents")
def list_documents(
    request: HttpRequest, page: Paging, wanted: Query[WantedDocuments]
) -> ListPage[DocumentResource]:
    """List the tenant's documents, the last changed first."""
    rows = find_documents(DocumentFilter(**wanted.model_dump()))
    return page_of(rows, page, order="-updated_at", to_resource=DocumentResource.model_validate)


@router.post(
    "/documents", response={201: AddedDocumentResource}, summary="Add a document", openapi_extra=READS_FILE
)
def add(request: HttpRequest, file: Query[AddedFile]) -> Status[AddedDocumentResource]:
    """Add the body, an `application/octet-stream`, as a document, or as the next version of the document of this name.

    The document is indexed in the background.
    """
    new = NewDocument(name=file.name, content=request.body, category=file.category, publish=file.publish)
    added = add_document(new=new, actor=access_of(request).actor)
    resource = AddedDocumentResource(
        document=DocumentResource.model_validate(added.document),
        is_new=added.is_new,
        is_changed=added.is_changed,
    )
    return Status(201, resource)


@router.get("/document-categories", response=CategoryList, summary="List categories of documents")
def list_categories(request: HttpRequest) -> CategoryList:
    """List the categories with the numbers of their documents."""
    return CategoryList(items=[CategoryResource.model_validate(count) for count in count_categories()])


@router.get("/documents/{uuid:document_id}", response=DocumentResource, summary="Show a document")
def show_document(request: HttpRequest, document_id: UUID) -> DocumentResource:
    """Show a document."""
    return DocumentResource.model_validate(row_of_tenant(Document, document_id))


@router.patch("/documents/{uuid:document_id}", response=DocumentResource, summary="Change a document")
def change_document(request: HttpRequest, document_id: UUID, change: DocumentPatch) -> DocumentResource:
    """Move a document to another category."""
    actor = access_of(request).actor
    return DocumentResource.model_validate(
        file_document(document_id=document_id, category=change.category, actor=actor)
    )


@router.delete("/documents/{uuid:document_id}", response=DocumentResource, summary="Delete a document")
def remove_document(request: HttpRequest, document_id: UUID) -> DocumentResource:
    """Delete a document with all its versions and passages for good."""
    return _apply(request, delete_document, document_id)


@router.post("/documents/{uuid:document_id}/publish", response=DocumentResource, summary="Publish a document")
def publish(request: HttpRequest, document_id: UUID) -> DocumentResource:
    """Publish a document, so that agents find it."""
    return _apply(request, publish_document, document_id)


@router.post(
    "/documents/{uuid:document_id}/withdraw", response=DocumentResource, summary="Withdraw a document"
)
def withdraw(request: HttpRequest, document_id: UUID) -> DocumentResource:
    """Withdraw a document, so that agents do not find it; its versions stay, and it can be published again."""
    return _apply(request, withdraw_document, document_id)


@router.post(
    "/documents/{uuid:document_id}/reindex", response=DocumentResource, summary="Index a document again"
)
def reindex(request: HttpRequest, document_id: UUID) -> DocumentResource:
    """Index the latest version of a document again, in the background."""
    return _apply(request, reindex_document, document_id)


def _apply(request: HttpRequest, change: Callable[..., Document], document_id: UUID) -> DocumentResource:
    return DocumentResource.model_validate(change(document_id=document_id, actor=access_of(request).actor))


@router.get(
    "/documents/{uuid:document_id}/versions",
    response=ListPage[DocumentVersionResource],
    summary="List versions of a document",
)
def list_versions(request: HttpRequest, document_id: UUID, page: Paging) -> ListPage[DocumentVersionResource]:
    """List the versions of a document, the latest first."""
    document = row_of_tenant(Document, document_id)
    return page_of(versions_of(document.id), page, order="-number", to_resource=DocumentVersionResource.of)


@router.get(
    "/documents/{uuid:document_id}/passages",
    response=ListPage[PassageResource],
    summary="List passages of a document",
)
def list_passages(request: HttpRequest, document_id: UUID, page: Paging) -> ListPage[PassageResource]:
    """List the passages of a document's indexed version, in order."""
    document = row_of_tenant(Document, document_id)
    return page_of(
        passages_of(document.id), page, order="position", to_resource=PassageResource.model_validate
    )


@router.get("/documents/{uuid:document_id}/text", response=DocumentTextResource, summary="Read a document")
def read(request: HttpRequest, document_id: UUID, part: Query[TextPart]) -> DocumentTextResource:
    """Read a part of the text of a document's indexed version."""
    found = read_text(document=row_of_tenant(Document, document_id), start=part.start, length=part.length)
    return DocumentTextResource(
        document_id=document_id,
        title=found.document.title,
        version=found.version,
        text=found.text,
        start=found.start,
        length=found.length,
    )


@router.get("/documents/{uuid:document_id}/file", summary="Download a document", openapi_extra=ANSWERS_FILE)
def download(request: HttpRequest, document_id: UUID, version: int | None = None) -> HttpResponse:
    """Return the file of a version, by default of the latest version, as `application/octet-stream`."""
    found = version_of(row_of_tenant(Document, document_id).id, version)
    return HttpResponse(bytes(found.content), content_type=FILE_TYPE)


@router.get(
    "/agents/{uuid:agent_id}/document-categories",
    response=AgentCategories,
    summary="Show an agent's categories of documents",
)
def show_agent_categories(request: HttpRequest, agent_id: UUID) -> AgentCategories:
    """Show the categories of documents that an agent finds."""
    return AgentCategories(categories=categories_of(agent_id))


@router.put(
    "/agents/{uuid:agent_id}/document-categories",
    response=AgentCategories,
    summary="Set an agent's categories of documents",
)
def set_agent_categories(
    request: HttpRequest, agent_id: UUID, payload: AgentCategoriesInput
) -> AgentCategories:
    """Set the categories of documents that an agent finds."""
    categories = set_categories(
        agent_id=agent_id, categories=payload.categories, actor=access_of(request).actor
    )
    return AgentCategories(categories=categories)
