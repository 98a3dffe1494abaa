"""Placement: decide for each memory to store whether it matches an existing one or is new."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import numpy as np

from apps.memories.services.store import queries
from apps.memories.services.store.appraisal import appraise_memory
from apps.memories.services.store.drafts import Evolution, Insertion, MemoryKey, MindDraft
from apps.memories.services.store.duplicates import (
    Hit,
    Hits,
    NearSearch,
    ScoredMemories,
    StepDuplicates,
    by_nearness,
    has_same_meaning,
    is_compared,
)
from apps.memories.services.store.reinforcement import PlacedMemory
from arbor.embedding.models import EmbeddingModel
from arbor.embedding.ports import Vectors
from arbor.errors import Invalid
from arbor.ids import uuid7
from arbor.memory.values import MemoryType, NewMemory


@dataclass(frozen=True, kw_only=True)
class StoreRequest:
    """Memories of one agent to store, with their vectors, one for each memory in order, or none."""

    agent_id: UUID
    memories: Sequence[NewMemory]
    vectors: Vectors | None = None
    #: The model that made the vectors; vectors of another model than the agent's are not stored.
    model: EmbeddingModel | None = None

    def __post_init__(self) -> None:
        if self.vectors is None or not self.memories:
            return
        shape = np.shape(self.vectors)
        if len(shape) != 2 or shape[0] != len(self.memories):
            raise Invalid(
                f"vectors must be one row for each of {len(self.memories)} memories, got the shape {shape}"
            )
        if not np.isfinite(self.vectors).all():
            raise Invalid("vectors must be finite numbers")


@dataclass(frozen=True, kw_only=True)
class StoreResult:
    """The result of storing memories: an id for each, in order."""

    ids: tuple[UUID, ...]
    #: Memories that existed before and were neither archived nor expired.
    duplicates: frozenset[UUID]
    #: Memories without a session that were stored again, in the same or nearly the same words.
    reinforced: frozenset[UUID] = frozenset()

    @property
    def stored(self) -> int:
        """The number of memories that are new or restored."""
        return len(set(self.ids) - self.duplicates)


class PlacementStep:
    """Memories of one agent that are placed together."""

    def __init__(
        self,
        draft: MindDraft,
        wanted: StoreRequest,
        keys: Sequence[MemoryKey],
        *,
        now: datetime,
        gap: timedelta,
    ) -> None:
        self._draft = draft
        self._memories = wanted.memories
        self._keys = keys
        self._now, self._gap = now, gap
        self._values = [appraise_memory(memory) for memory in wanted.memories]
        self._same = {key: draft.of_key(key) for key in keys}
        self._vectors = draft.comparable(wanted.vectors, wanted.model)
        self._placed: list[PlacedMemory] = []
        self._inserted: list[Insertion] = []
        #: The memories that match no existing memory by words, by their numbers.
        self._unknown = {
            number: memory
            for number, (key, memory) in enumerate(zip(keys, wanted.memories, strict=True))
            if self._first(self._same[key], memory) is None
        }

    @property
    def search(self) -> NearSearch | None:
        """The near-duplicate search that `decide` needs, if any."""
        if self._vectors is None:
            return None
        compared = [number for number, memory in self._unknown.items() if is_compared(memory)]
        if not compared:
            return None
        return NearSearch(agent_id=self._draft.agent_id, numbers=compared, vectors=self._vectors)

    def decide(self, hits: Hits) -> StoreResult:
        """Place each memory: merge it into an existing memory or into one of this step, or insert it as a new one."""
        duplicates = StepDuplicates(self._unknown, self._vectors)
        for number, (key, memory) in enumerate(zip(self._keys, self._memories, strict=True)):
            same_words = self._same[key]
            near = duplicates.near(number, self._near(number, hits.get(number, ())))
            placed = self._first([*same_words, *near], memory)
            if placed is None:
                placed = self._insert(number, [*same_words, *near])
                duplicates.add(number, placed)
            else:
                placed.remember_again(memory, self._values[number], now=self._now)
            if all(known is not placed for known in same_words):
                same_words.append(placed)
            self._placed.append(placed)
        result = self._result()
        self._draft.end_step(self._placed, self._inserted)
        return result

    def _first(self, same: Sequence[PlacedMemory], memory: NewMemory) -> PlacedMemory | None:
        """Return the first memory, of those with the same words or meaning, into which a memory can be merged.

        A turn of a session has only memories at its own position here, so the first one is the same turn.
        """
        gap = self._gap
        return next(
            (known for known in same if memory.session or known.can_be_same_as(memory, gap=gap)), None
        )

    def _near(self, number: int, hits: Sequence[Hit]) -> ScoredMemories:
        """Return the memories with the same meaning, of near rows and of the memories of earlier steps, with their cosines."""
        memory = self._unknown.get(number)
        if memory is None or self._vectors is None or not is_compared(memory):
            return []
        found = [(similarity, self._draft.existing(row)) for similarity, row in hits]
        found += self._near_unwritten(self._vectors[number])
        found.sort(key=by_nearness)
        return [
            (similarity, near)
            for similarity, near in found[: queries.MAX_COMPARED]
            if has_same_meaning(near, memory)
        ]

    def _near_unwritten(self, vector: Vectors) -> Iterator[tuple[float, PlacedMemory]]:
        for similarity, placed in self._draft.unwritten.near(vector):
            if not placed.expired(self._now):
                yield similarity, placed

    def _insert(self, number: int, same: Sequence[PlacedMemory]) -> PlacedMemory:
        memory = self._memories[number]
        placed = PlacedMemory.of(uuid7(), memory, self._values[number])
        vector = None if self._vectors is None else self._vectors[number]
        self._inserted.append(self._draft.insert(memory, placed, self._keys[number], vector))
        self._record_evolution(same, memory, placed)
        return placed

    def _record_evolution(self, same: Sequence[PlacedMemory], memory: NewMemory, new: PlacedMemory) -> None:
        """Record that the new memory evolved from the latest active one of `same`, the memories with the same words or meaning.

        A memory that the new one contradicts is left out. Events and turns of sessions do not evolve.
        """
        if memory.session or memory.type is MemoryType.EPISODIC:
            return
        denied = set(memory.detail.get("contradictions") or ())
        if old := [known.id for known in same if not known.archived and str(known.id) not in denied]:
            self._draft.evolved.append(Evolution(old_id=max(old), new_id=new.id, origin=memory.source))

    def _result(self) -> StoreResult:
        return StoreResult(
            ids=tuple(placed.id for placed in self._placed),
            duplicates=frozenset(
                memory.id for memory in self._placed if not memory.is_new and not memory.is_restored
            ),
            reinforced=frozenset(memory.id for memory in self._placed if memory.is_reinforced),
        )
