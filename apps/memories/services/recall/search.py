"""Search an agent's memories by similarity of meaning alone, exactly (seed 004).

What an agent recalls is `recall`'s to say; this one answers which of its texts are nearest to a text.
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
from arbor.memory.recall_request import RecallFilter, check_query
from arbor.memory.values import MemoryType

#: An agent is seldom moved to another model, and never twice in a moment.
_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Similar:
    """A memory that says nearly what was asked for."""

    id: UUID
    type: MemoryType
    content: str
    role: str
    session: str
    occurred_at: datetime
    #: Cosine of its meaning and the query's, -1 to 1.
    similarity: float


def search_similar_memories(
    *, tenant_id: UUID, agent_id: UUID, text: str, limit: int = 10, types: Iterable[MemoryType] = ()
) -> list[Similar]:
    """Return the memories of one agent that are nearest to a text in meaning, of these types if any, the nearest first.

    Exact: every vector is compared. What has none yet is not found, and nothing counts as recalled. Two statements,
    with the embedder asked between their transactions; again, where the agent was moved to another model meanwhile.
    Raises Invalid for an empty or too long text, a limit outside 1 to 200 or what is no type, and EmbeddingFailed.
    """
    check_query(text, limit)
    only = RecallFilter(types=frozenset(types))
    for _ in range(_TRIES):
        vector, model = embed_asked(tenant_id=tenant_id, agent_id=agent_id, text=text)
        with tenant_transaction(tenant_id):
            found = _nearest(agent_id, vector, model, limit, only)
        if found is not None:
            return found
    raise EmbeddingFailed(
        f"agent {agent_id} is being moved to another embedding model: ask again in a moment"
    )


def embed_asked(*, tenant_id: UUID, agent_id: UUID, text: str) -> tuple[list[float], EmbeddingModel]:
    """Return a query's vector by the model of the agent's vectors, and that model. Raises EmbeddingFailed."""
    with tenant_transaction(tenant_id):
        model = model_of(agent_id)
    vector: list[float] = embed_query(tenant_id=tenant_id, texts=[text], model=model)[0].tolist()
    return vector, model


def _nearest(
    agent_id: UUID, vector: Sequence[float], model: EmbeddingModel, limit: int, only: RecallFilter
) -> list[Similar] | None:
    """Return what is nearest; None where the vector is of another model than the agent's by now."""
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
        Similar(**dict(zip(names, (row[1], MemoryType(row[2]), *row[3:]), strict=True)))
        for row in rows
        if row[1] is not None
    ]
