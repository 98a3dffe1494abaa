"""The draft of one agent's mind: the memories that the open transaction has read, and those that it has placed and not written yet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import structlog

from apps.memories.services.store.duplicates import UnwrittenMemories
from apps.memories.services.store.reinforcement import PlacedMemory
from arbor.embedding.models import EmbeddingModel
from arbor.embedding.ports import Vectors
from arbor.errors import Invalid
from arbor.memory.content import content_hash
from arbor.memory.values import NewMemory

log = structlog.get_logger(__name__)

_LAST_POSITION = 2**31 - 1


class MemoryKey(NamedTuple):
    """The key by which two memories have the same words; without a session, the position is always 0."""

    digest: bytes
    type: str
    session: str
    position: int

    @classmethod
    def of(cls, memory: NewMemory) -> MemoryKey:
        """Return the key of a new memory."""
        position = memory.position if memory.session else 0
        return cls(content_hash(memory.content), memory.type.value, memory.session, position)


@dataclass(frozen=True, kw_only=True, slots=True)
class Insertion:
    """A new memory to write: as it was given and as it was placed, with its hash, position and vector."""

    memory: NewMemory
    placed: PlacedMemory
    digest: bytes
    position: int
    vector: Vectors | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Evolution:
    """An existing memory that evolved into a new one with the same words or meaning; `origin` is the source of the new one."""

    old_id: UUID
    new_id: UUID
    origin: str


class MindDraft:
    """The memories of one agent with which memories to store are compared: rows that were read, and memories that were placed.

    The caller must have locked the mind.
    """

    def __init__(self, agent_id: UUID, model: EmbeddingModel, *, exists: bool) -> None:
        self.agent_id = agent_id
        self.model = model
        #: Whether the mind has a row.
        self.exists = exists
        self.unwritten = UnwrittenMemories()
        #: The new memories of each step, and the evolutions of existing memories, that are not written yet.
        self.steps: list[list[Insertion]] = []
        self.evolved: list[Evolution] = []
        #: The memories that the steps created or merged into, by id.
        self.touched: dict[UUID, PlacedMemory] = {}
        self._memories: dict[UUID, PlacedMemory] = {}
        self._by_key: defaultdict[MemoryKey, list[PlacedMemory]] = defaultdict(list)
        #: The positions of memories without a session, by their key.
        self._positions: defaultdict[MemoryKey, set[int]] = defaultdict(set)
        self._digests: set[bytes] = set()

    def unread(self, digests: Iterable[bytes]) -> set[bytes]:
        """Return the digests whose memories are not read yet."""
        return set(digests) - self._digests

    def mark_read(self, digests: Iterable[bytes]) -> None:
        """Mark the digests as read."""
        self._digests.update(digests)

    def add_row(self, digest: bytes, session: str, position: int, row: Sequence[Any]) -> None:
        """Add an existing memory that was read by its digest."""
        placed = self.existing(row)
        key = MemoryKey(digest, placed.type.value, session, position if session else 0)
        self._by_key[key].append(placed)
        if not session:
            self._positions[key].add(position)

    def existing(self, row: Sequence[Any]) -> PlacedMemory:
        """Return the memory of a row of `queries.PLACED_COLUMNS`, with the changes of the steps so far."""
        placed = self._memories.get(row[0])
        if placed is None:
            placed = self._memories[row[0]] = PlacedMemory.of_row(row)
        return placed

    def of_key(self, key: MemoryKey) -> list[PlacedMemory]:
        """Return the memories of a key, active ones before archived ones."""
        return sorted(self._by_key[key], key=lambda placed: (placed.archived, placed.id))

    def insert(
        self, memory: NewMemory, placed: PlacedMemory, key: MemoryKey, vector: Vectors | None
    ) -> Insertion:
        """Add a new memory; without a session, at a position that no memory with the same words has."""
        self._memories[placed.id] = placed
        self._by_key[key].append(placed)
        return Insertion(
            memory=memory,
            placed=placed,
            digest=key.digest,
            position=memory.position if memory.session else self._free_position(memory.position, key),
            vector=vector,
        )

    def end_step(self, placed: Iterable[PlacedMemory], inserted: Sequence[Insertion]) -> None:
        """Add placed memories to the draft, so that the next step finds them as if they had been written."""
        for memory in placed:
            self.touched[memory.id] = memory
            memory.end_step()
        if inserted:
            self.steps.append([*inserted])
        for insertion in inserted:
            if insertion.vector is not None and not insertion.memory.session:
                self.unwritten.add(insertion.placed, insertion.vector)

    @property
    def hides_rows(self) -> bool:
        """Return whether this draft reactivates memories whose rows are still archived or expired."""
        return any(placed.unarchived or placed.reactivated for placed in self.touched.values())

    def mark_written(self) -> None:
        """Mark the whole draft as written."""
        for placed in self.touched.values():
            placed.mark_written()
        self.exists = self.exists or bool(self.steps)
        self.steps.clear()
        self.evolved.clear()
        self.touched.clear()
        self.unwritten.clear()

    def comparable(self, vectors: Vectors | None, made_by: EmbeddingModel | None) -> Vectors | None:
        """Return the vectors if their model is the agent's; the agent may have been moved to another one meanwhile.

        `made_by` is the model that made the vectors, None for the agent's. Raises Invalid for vectors that do not have its dimension.
        """
        if vectors is None:
            return None
        rows = np.asarray(vectors, dtype=np.float32)
        model = made_by or self.model
        if rows.shape[1] != model.dimension:
            raise Invalid(f"vectors of {model.name} have {model.dimension} numbers each, got {rows.shape[1]}")
        if model == self.model:
            return rows
        log.warning(
            "stored_without_vectors",
            reason=f"the agent's are by {self.model}, these by {made_by}",
            texts=len(rows),
        )
        return None

    def _free_position(self, position: int, key: MemoryKey) -> int:
        used = self._positions[key]
        if position in used:
            position = max(used) + 1
        if position > _LAST_POSITION:
            position = next(free for free in range(len(used) + 1) if free not in used)
        used.add(position)
        return position
