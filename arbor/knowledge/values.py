"""Documents as values: kinds, statuses, and their legal transitions."""

from __future__ import annotations

from enum import StrEnum

#: Characters of a document's name and title, and of the name of a category.
NAME_LENGTH = 400
TITLE_LENGTH = 300
CATEGORY_LENGTH = 60


class DocumentKind(StrEnum):
    """The format of a document's file."""

    #: CommonMark with tables.
    MARKDOWN = "markdown"
    #: Plain text.
    TEXT = "text"
    #: A web page.
    HTML = "html"
    #: A Word document.
    DOCX = "docx"
    #: A PDF whose pages have text; scans have none.
    PDF = "pdf"


class DocumentStatus(StrEnum):
    """The status of a document, which decides whether agents find it."""

    #: Indexed like a published document, but not found by agents yet.
    DRAFT = "draft"
    #: Found by the tenant's agents.
    PUBLISHED = "published"
    #: Found no longer; its versions stay.
    WITHDRAWN = "withdrawn"


class IndexingStatus(StrEnum):
    """The progress of a document's latest version towards its passages."""

    #: No worker has begun yet.
    PENDING = "pending"
    #: A worker parses and embeds the version, under a lease.
    INDEXING = "indexing"
    #: The passages of the version are complete.
    INDEXED = "indexed"
    #: The version cannot be read; the document's error says why. An earlier version is still found.
    FAILED = "failed"


#: The statuses that a document can change to, by its status.
TRANSITIONS: dict[DocumentStatus, frozenset[DocumentStatus]] = {
    DocumentStatus.DRAFT: frozenset({DocumentStatus.PUBLISHED, DocumentStatus.WITHDRAWN}),
    DocumentStatus.PUBLISHED: frozenset({DocumentStatus.WITHDRAWN}),
    DocumentStatus.WITHDRAWN: frozenset({DocumentStatus.PUBLISHED, DocumentStatus.DRAFT}),
}
