"""Store memories: idempotent by content, found by their words at once and by their meaning once embedded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from apps.memories.services.embedding.embedding import Vectors, embed_for_storage
from apps.memories.services.embedding.minds import model_of
from apps.memories.services.store.placement import Remembered, ToRemember
from apps.memories.services.store.term_counts import ALL_MEMORIES, count_terms, lock_minds, terms_of
from apps.memories.services.store.writer import MemoryWriter
from apps.tenants.scope import tenant_transaction
from arbor.embedding.models import EmbeddingModel
from arbor.memory.values import NewMemory

__all__ = ["ALL_MEMORIES", "Remembered", "count_terms", "lock_minds", "remember", "store", "terms_of"]


def remember(*, tenant_id: UUID, agent_id: UUID, memories: Sequence[NewMemory]) -> Remembered:
    """Embed and store memories of one agent, in one transaction of its own.

    When the embedder fails, or is not to be waited for, they are stored without vectors, and upkeep embeds them later.
    """
    if not memories:
        return Remembered(ids=(), duplicates=frozenset())
    embedded = embed_memories(tenant_id=tenant_id, agent_id=agent_id, memories=memories)
    with tenant_transaction(tenant_id):
        return store(agent_id=agent_id, memories=memories, vectors=embedded.vectors, model=embedded.model)


@dataclass(frozen=True, kw_only=True)
class MemoryVectors:
    """The vectors of memories that are about to be stored, one for each in order, and what made them."""

    vectors: Vectors | None
    model: EmbeddingModel


def embed_memories(*, tenant_id: UUID, agent_id: UUID, memories: Sequence[NewMemory]) -> MemoryVectors:
    """Embed the texts of memories by their agent's model, outside any transaction; no vectors where upkeep is to do it."""
    with tenant_transaction(tenant_id):
        model = model_of(agent_id)
    texts = [memory.content for memory in memories]
    return MemoryVectors(
        vectors=embed_for_storage(tenant_id=tenant_id, texts=texts, model=model), model=model
    )


def store(
    *,
    agent_id: UUID,
    memories: Sequence[NewMemory],
    vectors: Vectors | None,
    model: EmbeddingModel | None = None,
) -> Remembered:
    """Store memories of one agent in the transaction that is open; `vectors`, if any, one per memory in order.

    The same content at the same place of the same session is one memory; if it was archived or its time was over, it
    is restored, and of two expiries the later wins. Of memories without a session, one type and the same words are one,
    at any position, and the memory is reinforced; events, if they happened at about the same time. Where their details
    disagree, they are two, and what is no event has evolved from the other. What has no importance or retention is
    appraised. `model` made the vectors; those of another than the agent's are not kept.

    Three statements, however many memories; one more with vectors of memories without a session (four for many), one
    more with episodic memories, up to five for what was remembered again, and two for what evolved. Raises Invalid for
    vectors that do not fit the memories or the model, and NotFound for the agent.
    """
    writer = MemoryWriter()
    (remembered,) = writer.place(
        [ToRemember(agent_id=agent_id, memories=memories, vectors=vectors, model=model)]
    )
    writer.write()
    return remembered
