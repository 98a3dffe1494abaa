"""Reinforcement: a memory without a session that is stored again, in the same or nearly the same words, is reinforced instead of doubled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from apps.memories.services.store.appraisal import AppraisedValues
from apps.tenants.encoding import from_json
from arbor.memory.content import content_hash
from arbor.memory.detail_text import indexed_words
from arbor.memory.details import SemanticDetail, read_detail
from arbor.memory.duplicates import MAX_WORDINGS, merge_details
from arbor.memory.importance import at_least
from arbor.memory.trust import new_sources
from arbor.memory.values import MemoryStatus, MemoryType, NewMemory, Retention


@dataclass(kw_only=True, eq=False, slots=True)
class PlacedMemory:
    """A stored or new memory with its unwritten changes, and the rules for remembering it again.

    A transaction may place memories in several steps before it writes them; `end_step` ends a step.
    """

    id: UUID
    type: MemoryType
    content: str
    occurred_at: datetime
    expires_at: datetime | None
    retention: Retention
    importance: float
    trust: float
    emotional_valence: float
    #: The speaker.
    role: str
    detail: Mapping[str, Any]
    #: Whether the memory has a row.
    written: bool = True
    archived: bool = False
    #: Whether the current step created the memory, restored it from the archive or after its expiry, or reinforced it.
    is_new: bool = False
    is_restored: bool = False
    is_reinforced: bool = False
    #: Whether columns of the row are to be updated.
    changed: bool = False
    #: Whether the row is archived, and will be written as active.
    unarchived: bool = False
    #: Whether the row is archived or expired, and will be written as neither.
    reactivated: bool = False
    #: Whether the words of the detail have changed, so that the memory must be indexed again.
    words_changed: bool = False
    #: Whether it was remembered as permanent, which the pin of a row must not undo when it is removed.
    made_permanent: bool = False
    #: The number of reinforcements that are not written yet.
    repetitions: int = 0
    #: The number of wordings beyond MAX_WORDINGS, which are counted and not stored.
    wordings_left_out: int = 0

    @classmethod
    def of(cls, memory_id: UUID, memory: NewMemory, values: AppraisedValues) -> PlacedMemory:
        """Build the placed memory of a new memory. A fact has at most the trust that its sources allow."""
        trust = memory.trust
        if memory.type is MemoryType.SEMANTIC and memory.detail.get("sources"):
            trust = min(trust, _semantic(memory.detail).trust)
        return cls(
            id=memory_id,
            type=memory.type,
            content=memory.content,
            occurred_at=memory.occurred_at,
            expires_at=values.expires_at,
            retention=values.retention,
            importance=values.importance,
            trust=trust,
            emotional_valence=memory.emotional_valence,
            role=memory.role,
            detail=memory.detail,
            written=False,
            is_new=True,
        )

    @classmethod
    def of_row(cls, row: Sequence[Any]) -> PlacedMemory:
        """Build the placed memory of a row, whose columns are `queries.PLACED_COLUMNS`."""
        memory_id, kind, content, status, occurred_at, expires_at, *rest, detail = row
        retention, importance, trust, emotional_valence, role = rest
        return cls(
            id=memory_id,
            type=MemoryType(kind),
            content=content,
            occurred_at=occurred_at,
            expires_at=expires_at,
            retention=Retention(retention),
            importance=importance,
            trust=trust,
            emotional_valence=emotional_valence,
            role=role,
            detail=from_json(detail) if isinstance(detail, str) else detail,
            archived=status != MemoryStatus.ACTIVE,
        )

    def expired(self, now: datetime) -> bool:
        """Return whether the memory has expired."""
        return self.expires_at is not None and self.expires_at <= now

    def can_be_same_as(self, memory: NewMemory, *, gap: timedelta) -> bool:
        """Return whether a memory without a session, with the same words or meaning, can be merged into this one.

        Details must not disagree, and a memory is never merged into a memory that it contradicts. Two events must also have
        happened within `gap` of each other, and have the same speaker, and the same emotional valence if both have one.
        """
        if str(self.id) in (memory.detail.get("contradictions") or ()):
            return False
        if self.type is MemoryType.EPISODIC:
            felt = {valence for valence in (self.emotional_valence, memory.emotional_valence) if valence}
            if abs(self.occurred_at - memory.occurred_at) > gap or len(felt) > 1:
                return False
            if self.role != memory.role:
                return False
        return not memory.detail or self._merged(memory) is not None

    def _merged(self, memory: NewMemory) -> Mapping[str, Any] | None:
        both = merge_details(read_detail(self.type, self.detail), read_detail(self.type, memory.detail))
        return None if both is None else both.to_json()

    def remember_again(self, memory: NewMemory, values: AppraisedValues, *, now: datetime) -> None:
        """Merge a memory with the same meaning into this one; a memory that has expired already changes nothing.

        The later of the two expiries applies. A memory without a session is also reinforced: the wording and the detail of
        the other memory are added to its detail, and the longer retention applies. A turn of a session is not reinforced.
        """
        if values.expires_at is not None and values.expires_at <= now:
            return
        if self.archived or self.expired(now):
            self.is_restored = not self.is_new
        if self.expires_at is not None and (values.expires_at is None or values.expires_at > self.expires_at):
            self.expires_at, self.changed = values.expires_at, True
        if self.archived:
            self.changed = True
        if not memory.session:
            self._reinforce(memory, values)

    def end_step(self) -> None:
        """End a step, so that the next step finds this memory as if the changes had been written."""
        if self.archived and self.changed:
            self.archived, self.unarchived = False, True
        if self.is_restored and self.written:
            self.reactivated = True
        self.is_new = self.is_restored = self.is_reinforced = False

    def mark_written(self) -> None:
        """Mark the memory as written."""
        self.written = True
        self.changed = self.unarchived = self.reactivated = self.words_changed = self.made_permanent = False
        self.repetitions = self.wordings_left_out = 0

    def _reinforce(self, memory: NewMemory, values: AppraisedValues) -> None:
        self.repetitions += 1
        self.is_reinforced = True
        self.made_permanent |= values.retention is Retention.PERMANENT and values.expires_at is None
        retention = at_least(self.retention, values.retention)
        if retention is not self.retention:
            self.retention, self.changed = retention, True
        if retention is Retention.PERMANENT and values.importance > self.importance:
            self.importance, self.changed = values.importance, True
        if content_hash(memory.content) != content_hash(self.content):
            self._add_wording(memory.content)
        if not self.emotional_valence and memory.emotional_valence:
            self.emotional_valence, self.changed = memory.emotional_valence, True
        if memory.detail:
            self._add_detail(memory)

    def _add_detail(self, memory: NewMemory) -> None:
        detail = self._merged(memory)
        if detail is None or detail == self.detail:
            return
        self.words_changed = self.words_changed or indexed_words(detail) != indexed_words(self.detail)
        before, self.detail, self.changed = self.detail, detail, True
        if self.type is MemoryType.SEMANTIC and new_sources(
            _semantic(before).sources, _semantic(detail).sources
        ):
            # A first source does not lower the trust of a fact without sources; a known source does not raise the trust.
            self.trust = max(self.trust, _semantic(detail).trust)

    def _add_wording(self, content: str) -> None:
        """Add a wording to the detail; beyond MAX_WORDINGS, only count it."""
        wordings = list(self.detail.get("wordings") or [])
        if content in wordings:
            return
        if len(wordings) < MAX_WORDINGS:
            self.detail = {**self.detail, "wordings": [*wordings, content]}
        else:
            self.wordings_left_out += 1
            self.detail = {**self.detail, "wordings_more": int(self.detail.get("wordings_more") or 0) + 1}
        self.changed = True


def _semantic(detail: Mapping[str, Any]) -> SemanticDetail:
    read = read_detail(MemoryType.SEMANTIC, detail)
    assert isinstance(read, SemanticDetail)
    return read
