"""Messages to the workers about documents."""

from __future__ import annotations

from apps.knowledge.models import Document
from apps.queues import Task, TaskMessage, enqueue


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
