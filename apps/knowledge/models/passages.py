"""Passages of documents, and the counts of their words."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from pgvector.django import HalfVectorField, SparseVectorField

from apps.knowledge.models.documents import Document, DocumentVersion
from apps.tenants.fields import TenantForeignKey
from apps.tenants.models import TenantModel, TenantRow
from apps.tenants.vector_indexes import VectorIndex
from arbor.embedding.models import is_refused
from arbor.knowledge.blocks import place_of, with_headings
from arbor.knowledge.values import CATEGORY_LENGTH
from arbor.memory.text.lexical import LEXICAL_DIMENSIONS


class Passage(TenantRow):
    """A passage of a document's indexed version, with its place, and the vector and terms by which searches find it.

    Columns of the document are repeated here, so that a search joins no other table (decision 0036).
    """

    #: HNSW over the searchable passages of all tenants, for tenants too large for the exact scan.
    vector_indexes: ClassVar[tuple[VectorIndex, ...]] = (
        VectorIndex(name="knowledge_passage_hnsw", column="embedding", condition="searchable"),
    )

    document = TenantForeignKey(Document, related_name="all_passages")
    version = TenantForeignKey(DocumentVersion, related_name="passages")
    #: The place among the version's passages, from 0.
    position = models.PositiveIntegerField()
    #: The headings above the passage, the outermost first: [text].
    headings = models.JSONField(default=list)
    #: The first page of the passage, from 1; empty where a format has no pages.
    page = models.PositiveIntegerField(null=True)
    #: The characters of `DocumentVersion.text` that the passage covers: the first one, and the place after the last one.
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()
    text = models.TextField()
    #: SHA-256 of the text as `arbor.memory.content.content_hash` computes it, by which duplicates of other sources are found.
    content_hash = models.BinaryField(max_length=32)
    #: Estimated tokens of the text.
    tokens = models.PositiveIntegerField()
    #: The document is published. Passages of drafts and withdrawn documents exist, and no search finds them.
    searchable = models.BooleanField(default=False)
    #: The document's category.
    category = models.CharField(max_length=CATEGORY_LENGTH, blank=True, db_default="")
    #: When the version was added; a passage's recency is measured from this time.
    written_at = models.DateTimeField()
    #: Empty until the text is embedded, such as while the embedder is unreachable; until then words alone find the passage.
    embedding = HalfVectorField(null=True)
    #: `NAME DIMENSION`, after `refused: ` where there is no vector; other models' vectors are not compared with the query's.
    embedding_model = models.CharField(max_length=100, blank=True, db_default="")
    #: BM25 document weights by hashed term, of headings and text.
    lexical = SparseVectorField(dimensions=LEXICAL_DIMENSIONS)

    class Meta(TenantModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "version", "position"], name="knowledge_passage_place"),
            models.CheckConstraint(
                condition=models.Q(start__lte=models.F("end")), name="knowledge_passage_range"
            ),
        ]
        indexes = [
            # For the exact search, which scores every searchable passage of the tenant, or of some categories.
            models.Index(
                fields=["tenant", "category"],
                name="knowledge_passage_search",
                condition=models.Q(searchable=True),
            ),
            models.Index(fields=["tenant", "document", "position"], name="knowledge_passage_document"),
            models.Index(
                fields=["tenant", "id"],
                name="knowledge_passage_unembedded",
                condition=models.Q(embedding__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return self.text[:80]

    @property
    def context(self) -> str:
        """Return the text with the headings above it, from which the vector is made."""
        return with_headings(self.text, self.headings)

    @property
    def is_refused(self) -> bool:
        """Return whether the embedder refuses the text, so that words alone find it."""
        return is_refused(self.embedding_model)

    @property
    def is_embedded(self) -> bool:
        """Return whether the text has a vector."""
        return bool(self.embedding_model) and not self.is_refused

    @property
    def place(self) -> str:
        """Return the place in the document for people and prompts."""
        return place_of(headings=self.headings, page=self.page, start=self.start, end=self.end)


class PassageTerm(TenantModel):
    """The number of a tenant's searchable passages with a term, for BM25. Term 0 counts all of them."""

    pk = models.CompositePrimaryKey("tenant_id", "term")
    term = models.IntegerField()
    passages = models.IntegerField(default=0)

    class Meta(TenantModel.Meta):
        verbose_name = "term of passages"
        verbose_name_plural = "terms of passages"

    def __str__(self) -> str:
        return f"{self.term}: {self.passages}"
