"""Index the words of stored memories and of their details again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from apps.memories.models import NextEmbedding
from apps.memories.services.embedding.literals import fit_terms, sparsevec_text
from apps.memories.services.embedding.minds import model_of
from apps.memories.services.store import queries
from apps.memories.services.store.term_counts import count_terms, terms_of
from apps.tenants.encoding import to_json
from apps.tenants.statements import change
from arbor.memory.detail_text import indexed_terms
from arbor.memory.values import MemoryStatus

#: The columns of memories that `index_memories` reads.
INDEXED_COLUMNS = ("id", "content", "role", "session", "detail", "lexical", "status")


def index_memories(agent_id: UUID, *, memories: Sequence[Mapping[str, Any]]) -> None:
    """Write the lexical vectors of memories, as many terms as fit beside vectors of the agent's model, and count the terms.

    In the open transaction, with the mind locked. Up to five statements; none without memories.
    """
    if not memories:
        return
    dimension = model_of(agent_id).dimension
    vectors = {
        memory["id"]: fit_terms(
            indexed_terms(memory["content"], speaker=memory["role"], detail=memory["detail"]),
            session=memory["session"],
            dimension=dimension,
        )
        for memory in memories
    }
    active = [memory for memory in memories if memory["status"] == MemoryStatus.ACTIVE]
    count_terms(agent_id, terms=[terms_of(memory["lexical"]) for memory in active], sign=-1)
    count_terms(agent_id, terms=[vectors[memory["id"]] for memory in active], sign=1)
    rows = [{"id": memory_id, "lexical": sparsevec_text(terms)} for memory_id, terms in vectors.items()]
    change(queries.WRITE_LEXICAL, rows=to_json(rows), ids=list(vectors))
    # A move to another embedder that is under way has prepared the terms from before; it prepares these memories again.
    NextEmbedding.objects.filter(memory_id__in=list(vectors)).delete()
