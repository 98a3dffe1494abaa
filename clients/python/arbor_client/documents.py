"""Documents that a tenant's agents share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from arbor_client.calls import (
    Call,
    Id,
    PagedCall,
    Rows,
    decoder,
    delete,
    get,
    listed,
    patch,
    post,
    rows_of,
    segment,
)
from arbor_client.groups import Group, listing, operation
from arbor_client.json_values import encode

if TYPE_CHECKING:
    from arbor_client.clients import Arbor, AsyncArbor


@dataclass(frozen=True, kw_only=True)
class Document:
    """A document."""

    id: UUID
    #: The file's name, with folders: a second file of the same name is a new version.
    name: str
    title: str
    #: Empty for none.
    category: str
    #: markdown, text, html, docx or pdf.
    kind: str
    #: draft, published or withdrawn; agents find published documents only.
    status: str
    version: int
    #: The number of the version that is found; 0: none yet.
    indexed_version: int
    #: pending, indexing, indexed or failed: the progress of the latest version.
    indexing: str
    passages: int
    embedded: int
    #: Passages that the embedder refuses; words alone find them.
    refused: int
    #: Why the latest version cannot be indexed, or why vectors are missing; empty for no error.
    error: str
    created_by: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, kw_only=True)
class AddedDocument:
    """A document after a file was added."""

    document: Document
    is_new: bool
    is_changed: bool


@dataclass(frozen=True, kw_only=True)
class DocumentVersion:
    """A file of a document."""

    number: int
    kind: str
    #: SHA-256 of the file, in hexadecimal.
    digest: str
    size: int
    pages: int
    created_by: str
    created_at: datetime
    indexed_at: datetime | None
    error: str


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A passage of a document."""

    id: UUID
    position: int
    #: The place in the document: page, headings, characters.
    place: str
    headings: list[str]
    page: int | None
    start: int
    end: int
    tokens: int
    is_embedded: bool
    text: str


@dataclass(frozen=True, kw_only=True)
class DocumentText:
    """A part of a document's text."""

    document_id: UUID
    title: str
    version: int
    text: str
    start: int
    #: The length of the whole text, in characters.
    length: int


@dataclass(frozen=True, kw_only=True)
class DocumentCategory:
    """A category of documents; empty for documents without one."""

    category: str
    documents: int
    published: int


@dataclass(frozen=True, kw_only=True)
class AgentCategories:
    """The categories of documents that an agent finds; None: all."""

    categories: list[str] | None


class Documents[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about documents."""

    @listing
    def list(
        self,
        *,
        status: str | None = None,
        indexing: str | None = None,
        category: str | None = None,
        text: str = "",
    ) -> PagedCall[Document]:
        """List the tenant's documents, the last changed first."""
        return listed(
            Document, "/documents", status=status, indexing=indexing, category=category, text=text or None
        )

    @operation
    def add(
        self, name: str, content: bytes, *, category: str | None = None, publish: bool = False
    ) -> Call[AddedDocument]:
        """Add a file as a document, or as the next version of the document of that name; it is indexed in the background."""
        return Call(
            method="POST",
            path="/documents",
            parse=decoder(AddedDocument),
            kind=AddedDocument,
            query={"name": name, "category": category, "publish": publish},
            content=content,
            idempotency_key=str(uuid4()),
        )

    @operation
    def get(self, document_id: Id) -> Call[Document]:
        """Return a document."""
        return get(Document, f"/documents/{segment(document_id)}")

    @operation
    def file(self, document_id: Id, *, category: str) -> Call[Document]:
        """Move a document to another category, empty for none."""
        return patch(Document, f"/documents/{segment(document_id)}", {"category": category})

    @operation
    def publish(self, document_id: Id) -> Call[Document]:
        """Publish a document, so that agents find it."""
        return post(Document, f"/documents/{segment(document_id)}/publish")

    @operation
    def withdraw(self, document_id: Id) -> Call[Document]:
        """Hide a document from agents; its versions stay, and it can be published again."""
        return post(Document, f"/documents/{segment(document_id)}/withdraw")

    @operation
    def reindex(self, document_id: Id) -> Call[Document]:
        """Index the latest version of a document again."""
        return post(Document, f"/documents/{segment(document_id)}/reindex")

    @operation
    def delete(self, document_id: Id) -> Call[Document | None]:
        """Delete a document with its versions and passages for good."""
        return delete(Document, f"/documents/{segment(document_id)}")

    @listing
    def versions(self, document_id: Id) -> PagedCall[DocumentVersion]:
        """List the versions of a document, the latest first."""
        return listed(DocumentVersion, f"/documents/{segment(document_id)}/versions")

    @listing
    def passages(self, document_id: Id) -> PagedCall[Passage]:
        """List the passages of a document's indexed version, in order."""
        return listed(Passage, f"/documents/{segment(document_id)}/passages")

    @operation
    def read(self, document_id: Id, *, start: int = 0, length: int = 20_000) -> Call[DocumentText]:
        """Read a part of the text of a document's indexed version."""
        return get(DocumentText, f"/documents/{segment(document_id)}/text", start=start, length=length)

    @operation
    def download(self, document_id: Id, *, version: int | None = None) -> Call[bytes]:
        """Return the file of a version, by default the latest."""
        path = f"/documents/{segment(document_id)}/file"
        return Call(method="GET", path=path, parse=bytes, query={"version": version}, answers_file=True)

    @operation
    def categories(self) -> Call[Rows[DocumentCategory]]:
        """List the categories with the numbers of their documents."""
        return rows_of(get(DocumentCategory, "/document-categories"))

    @operation
    def categories_of_agent(self, agent_id: Id) -> Call[AgentCategories]:
        """Return the categories of documents that an agent finds."""
        return get(AgentCategories, f"/agents/{segment(agent_id)}/document-categories")

    @operation
    def set_categories_of_agent(
        self, agent_id: Id, *, categories: Iterable[str] | None
    ) -> Call[AgentCategories]:
        """Set the categories of documents that an agent finds; None: all."""
        # Not by `put`, which leaves out values that are None.
        return Call(
            method="PUT",
            path=f"/agents/{segment(agent_id)}/document-categories",
            parse=decoder(AgentCategories),
            kind=AgentCategories,
            body=encode({"categories": categories}),
        )
