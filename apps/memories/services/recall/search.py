"""Search an agent's memories by similarity of meaning alone, exactly (seed 004).

A recall (`recaller.py`) ranks by many score components; this search compares vectors and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from apps.memories.services.embedding.embedding import embed_query
from apps.memories.services.embedding.minds import model_of, query_vector
from apps.memories.services.recall import queries
from apps.memories.services.recall.scan import filter_conditions
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import fetch
from arbor.embedding.models import EmbeddingModel
from arbor.errors import EmbeddingFailed
from arbor.memory.recall.recall_request import RecallFilter, check_query
from arbor.memory.values import MemoryType

#: The most tries of a search: again if the agent was moved to another embedding model meanwhile, which is rare.
_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarMemory:
    """A memory that a search found, with its similarity to the query."""

    id: UUID
    type: MemoryType
    content: str
    role: str
    session: str
    occurred_at: datetime
    #: The cosine of the memory's vector and the query's, -1 to 1.
    similarity: float


def search_similar_memories(
    *, tenant_id: UUID, agent_id: UUID, text: str, limit: int = 10, types: Iterable[MemoryType] = ()
) -> list[SimilarMemory]:
    """Return the memories of one agent that are nearest to a text in meaning, the nearest first.

    Without `types`, memories of all types are searched. The search is exact: every vector is compared. Memories without
    a vector are not found, and no memory counts as recalled. Two statements in transactions of their own, with a call of
    the embedder in between; all of this is repeated if the agent was moved to another model meanwhile.
    Raises Invalid for an empty or too long text, a limit outside 1 to 200 or an unknown type, and EmbeddingFailed.
    """
    check_query(text, limit)
    only = RecallFilter(types=frozenset(types))
    for _ in range(_TRIES):
        vector, model = embed_for_agent(tenant_id=tenant_id, agent_id=agent_id, text=text)
        with tenant_transaction(tenant_id):
            found = _nearest(agent_id, vector, model, limit, only)
        if found is not None:
            return found
    raise EmbeddingFailed(
        f"agent {agent_id} is being moved to another embedding model: search again in a moment"
    )


def embed_for_agent(*, tenant_id: UUID, agent_id: UUID, text: str) -> tuple[list[float], EmbeddingModel]:
    """Return a query's vector by the embedding model of the agent, and that model. Raises EmbeddingFailed."""
    with tenant_transaction(tenant_id):
        model = model_of(agent_id)
    vector: list[float] = embed_query(tenant_id=tenant_id, texts=[text], model=model)[0].tolist()
    return vector, model


def _nearest(
    agent_id: UUID, vector: Sequence[float], model: EmbeddingModel, limit: int, only: RecallFilter
) -> list[SimilarMemory] | None:
    """Return the nearest memories, or None if the agent has been moved to another model than the vector's."""
    conditions, filtered = filter_conditions(only)
    rows = fetch(
        queries.NEAREST_MEMORIES.format(conditions=conditions),
        agent=agent_id,
        limit=limit,
        **query_vector(vector, model),
        **filtered,
    )
    if not rows[0][0]:
        return None
    names = ("id", "type", "content", "role", "session", "occurred_at", "similarity")
    return [
        SimilarMemory(**dict(zip(names, (row[1], MemoryType(row[2]), *row[3:]), strict=True)))
        for row in rows
        if row[1] is not None
    ]
