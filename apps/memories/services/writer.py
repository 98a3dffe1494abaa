"""The memories that one transaction stores for several agents of a tenant: placed as they come up, written once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from apps.memories.services.batch import Remembered
from apps.memories.services.embedding import Vectors
from apps.memories.services.remember import store
from apps.memories.services.words import lock_minds
from arbor.embedding.models import EmbeddingModel
from arbor.memory.values import NewMemory


@dataclass(frozen=True, kw_only=True)
class ToRemember:
    """Memories of one agent to store, with their vectors, if any, one for each memory in order."""

    agent_id: UUID
    memories: Sequence[NewMemory]
    vectors: Vectors | None = None
    #: The model that made the vectors.
    model: EmbeddingModel | None = None


class MemoryWriter:
    """Collect the memories of a transaction and write them at its end."""

    def lock(self, agent_ids: Collection[UUID]) -> None:
        """Lock the minds of these agents at once, in the order that excludes deadlocks. One statement, none if locked."""
        if agent_ids:
            lock_minds(agent_ids)

    def place(self, wanted: Sequence[ToRemember]) -> list[Remembered]:
        """Decide what each memory becomes: a new one, or one that exists already."""
        return [
            store(agent_id=each.agent_id, memories=each.memories, vectors=each.vectors, model=each.model)
            for each in wanted
        ]

    def write(self) -> None:
        """Write all that was placed."""
