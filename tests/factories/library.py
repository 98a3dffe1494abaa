"""A published document with one passage that searches find."""

from __future__ import annotations

from uuid import UUID

from pgvector import HalfVector

from apps.knowledge.models import Passage
from apps.knowledge.services.passages import set_searchable
from apps.memories.services.embedding.embedding import embed_texts
from apps.tenants.scope import tenant_transaction
from tests.factories.knowledge import DocumentFactory, DocumentVersionFactory, PassageFactory


def published_passage(tenant_id: UUID, text: str, *, title: str = "Travel") -> Passage:
    """Store a passage of a published document with its vector, and count its terms."""
    (vector,) = embed_texts(tenant_id=tenant_id, texts=[text])
    with tenant_transaction(tenant_id):
        version = DocumentVersionFactory.create(document=DocumentFactory.create(title=title))
        passage: Passage = PassageFactory.create(
            version=version,
            text=text,
            embedding=HalfVector(vector),
            embedding_model="wordllama 256",
            searchable=False,
        )
        set_searchable(version.document, searchable=True)
    return passage
