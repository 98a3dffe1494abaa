"""Documents for tests, with rows as indexing leaves them, and passages that searches find."""

from __future__ import annotations

import hashlib
from uuid import UUID

import factory
from pgvector import HalfVector, SparseVector

from apps.knowledge.models import AgentKnowledge, Document, DocumentVersion, Passage
from apps.knowledge.services.passages import set_searchable
from apps.memories.services.embedding.embedding import embed_texts
from apps.tenants.scope import tenant_transaction
from arbor.memory.content import content_hash
from arbor.memory.text.lexical import LEXICAL_DIMENSIONS, document_vector
from tests.factories.rows import TenantRowFactory, minutes_ago


class DocumentFactory(TenantRowFactory[Document]):
    class Meta:
        model = Document

    name = factory.Sequence(lambda n: f"document-{n}.md")
    title = "The handbook"
    kind = "markdown"
    status = "published"
    indexed_version = 1
    indexing = "indexed"
    embedding_model = "wordllama 256"
    passages = 1
    created_by = "user:ann"


class DocumentVersionFactory(TenantRowFactory[DocumentVersion]):
    class Meta:
        model = DocumentVersion

    document = factory.SubFactory(DocumentFactory)
    number = 1
    kind = "markdown"
    content = b"# The handbook"
    text = factory.LazyAttribute(lambda version: bytes(version.content).decode())
    digest = factory.LazyAttribute(lambda version: hashlib.sha256(version.content).digest())
    size = factory.LazyAttribute(lambda version: len(version.content))
    created_by = "user:ann"
    indexed_at = factory.LazyFunction(lambda: minutes_ago(1))


class PassageFactory(TenantRowFactory[Passage]):
    class Meta:
        model = Passage

    version = factory.SubFactory(DocumentVersionFactory)
    document = factory.SelfAttribute("version.document")
    position = factory.Sequence(lambda n: n)
    text = "The handbook"
    start = 0
    end = factory.LazyAttribute(lambda passage: len(passage.text))
    content_hash = factory.LazyAttribute(lambda passage: content_hash(passage.text))
    tokens = 3
    searchable = True
    written_at = factory.LazyFunction(lambda: minutes_ago(5))
    lexical = factory.LazyAttribute(
        lambda passage: SparseVector(
            {term - 1: weight for term, weight in document_vector(passage.text).items()}, LEXICAL_DIMENSIONS
        )
    )


class AgentKnowledgeFactory(TenantRowFactory[AgentKnowledge]):
    class Meta:
        model = AgentKnowledge

    categories = factory.LazyFunction(lambda: ["policies"])
    changed_by = "user:ann"


def published_passage(tenant_id: UUID, text: str) -> Passage:
    """Store a passage of a published document with its vector, and count its terms."""
    (vector,) = embed_texts(tenant_id=tenant_id, texts=[text])
    with tenant_transaction(tenant_id):
        version = DocumentVersionFactory.create(document=DocumentFactory.create(title="Travel"))
        passage: Passage = PassageFactory.create(
            version=version,
            text=text,
            embedding=HalfVector(vector),
            embedding_model="wordllama 256",
            searchable=False,
        )
        set_searchable(version.document, searchable=True)
    return passage
