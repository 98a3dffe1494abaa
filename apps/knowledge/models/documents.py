"""Documents of a tenant, their versions, and the categories that an agent finds."""

from __future__ import annotations

from django.db import models

from apps.agents.models import Agent
from apps.tenants.fields import TenantForeignKey, TenantOneToOne, choices_of
from apps.tenants.models import TenantModel, TenantRow
from arbor.knowledge.values import (
    CATEGORY_LENGTH,
    NAME_LENGTH,
    TITLE_LENGTH,
    DocumentKind,
    DocumentStatus,
    IndexingStatus,
)


class Document(TenantRow):
    """A document that the tenant's agents share; its files are versions, and its latest version is indexed."""

    #: The file's name, with the folders below the watched one: a second file of the same name is a new version.
    name = models.CharField(max_length=NAME_LENGTH)
    #: The text of the first heading, the file's own title, or the name.
    title = models.CharField(max_length=TITLE_LENGTH)
    #: Empty for none.
    category = models.CharField(max_length=CATEGORY_LENGTH, blank=True, db_default="")
    kind = models.CharField(max_length=8, choices=choices_of(DocumentKind))
    status = models.CharField(max_length=9, choices=choices_of(DocumentStatus), default=DocumentStatus.DRAFT)
    #: Who published or withdrew the document last, in the form of `created_by`; empty: nobody.
    status_by = models.CharField(max_length=200, blank=True, db_default="")
    #: The status before its last change, restored when the file of a withdrawn document comes back; empty: none.
    status_before = models.CharField(
        max_length=9, choices=choices_of(DocumentStatus), blank=True, db_default=""
    )
    #: The number of the latest version, from 1, and of the one that has passages; 0: none.
    version = models.PositiveIntegerField(default=1)
    indexed_version = models.PositiveIntegerField(default=0)
    indexing = models.CharField(
        max_length=8, choices=choices_of(IndexingStatus), default=IndexingStatus.PENDING
    )
    #: The embedder of the passages, `NAME DIMENSION`; empty until a version is indexed.
    embedding_model = models.CharField(max_length=100, blank=True, db_default="")
    #: Numbers of passages of the version that is being indexed: all of them, once the file is parsed; those that are embedded; and
    #: those that the embedder refuses, which words alone find. The rest wait for their vectors.
    passages = models.PositiveIntegerField(default=0)
    embedded = models.PositiveIntegerField(default=0)
    refused = models.PositiveIntegerField(default=0, db_default=0)
    #: Why the latest version could not be indexed, or why passages have no vectors; empty for no error.
    error = models.TextField(blank=True, db_default="")
    #: Failed attempts at the latest version, and the time of the next one.
    failures = models.PositiveSmallIntegerField(default=0)
    retry_at = models.DateTimeField(null=True)
    #: The right of one worker to index the document, until a time: a token that each of its writes compares.
    lease = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    #: Who added the document: `user:NAME`, `token:NAME`, `cli:NAME`, `watch:FOLDER`.
    created_by = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(TenantModel.Meta):
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="knowledge_document_name"),
            models.CheckConstraint(
                condition=models.Q(indexed_version__lte=models.F("version")),
                name="knowledge_document_indexed",
            ),
        ]
        indexes = [
            models.Index(fields=["tenant", "-updated_at", "-id"], name="knowledge_document_recent"),
            models.Index(
                fields=["tenant", "created_at"],
                name="knowledge_document_due",
                condition=models.Q(indexing__in=[IndexingStatus.PENDING, IndexingStatus.INDEXING]),
            ),
            models.Index(fields=["tenant", "embedding_model"], name="knowledge_document_embedder"),
        ]

    def __str__(self) -> str:
        return self.title or self.name


class DocumentVersion(TenantRow):
    """One file of a document. Only the indexed version has passages."""

    document = TenantForeignKey(Document, related_name="versions")
    number = models.PositiveIntegerField()
    kind = models.CharField(max_length=8, choices=choices_of(DocumentKind))
    #: SHA-256 of the file.
    digest = models.BinaryField(max_length=32)
    #: The file, and its size in bytes.
    content = models.BinaryField()
    size = models.PositiveIntegerField()
    #: The text in which the places of passages count characters; empty until the file is parsed.
    text = models.TextField(blank=True, db_default="")
    #: Pages of a PDF; 0 for other kinds.
    pages = models.PositiveIntegerField(default=0)
    created_by = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)
    #: When the version was last indexed; empty: never.
    indexed_at = models.DateTimeField(null=True)
    #: Why the version could not be indexed; empty for no error.
    error = models.TextField(blank=True, db_default="")

    class Meta(TenantModel.Meta):
        verbose_name = "version of a document"
        verbose_name_plural = "versions of documents"
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "document", "number"], name="knowledge_version_number")
        ]

    def __str__(self) -> str:
        return f"version {self.number}"


class AgentKnowledge(TenantModel):
    """The categories of documents that an agent finds. An agent without a row finds all of them."""

    agent = TenantOneToOne(Agent, primary_key=True, related_name="knowledge")
    #: Names of categories, "" for documents without one. An empty list: the agent finds no document.
    categories = models.JSONField(default=list)
    changed_by = models.CharField(max_length=200)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta(TenantModel.Meta):
        verbose_name = "categories of an agent"
        verbose_name_plural = "categories of agents"

    def __str__(self) -> str:
        return ", ".join(self.categories)
