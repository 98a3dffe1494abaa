"""Reinforcement: a memory without a session that is stored again, or nearly so, is reinforced instead of doubled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from apps.memories.services.store.appraisal import Weight
from apps.tenants.encoding import from_json
from arbor.memory.content import content_hash
from arbor.memory.detail_text import indexed_words
from arbor.memory.details import SemanticDetail, read_detail
from arbor.memory.duplicates import WORDINGS_KEPT, merged
from arbor.memory.importance import at_least
from arbor.memory.trust import new_sources
from arbor.memory.values import MemoryStatus, MemoryType, NewMemory, Retention


@dataclass(kw_only=True, eq=False, slots=True)
class PlacedMemory:
    """A memory as it is, or will be once it is written, and what remembering it again does to it.

    A transaction may place memories in several steps before it writes them: `settle` ends a step.
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
    #: It has a row.
    written: bool = True
    archived: bool = False
    #: Of this step: it is new, it was archived or expired and is back, it was reinforced.
    fresh: bool = False
    back: bool = False
    repeated: bool = False
    #: To be written: its row changes; it is no longer archived; it is no longer expired.
    changed: bool = False
    woken: bool = False
    revived: bool = False
    #: Its detail has other words than the word index.
    reworded: bool = False
    #: To be written: how often it was remembered again, and the wordings beyond those that are kept.
    times: int = 0
    unkept: int = 0

    @classmethod
    def of(cls, memory_id: UUID, memory: NewMemory, weight: Weight) -> PlacedMemory:
        """Return what a new memory will be. A fact is trusted no further than its sources allow."""
        trust = memory.trust
        if memory.type is MemoryType.SEMANTIC and memory.detail.get("sources"):
            trust = min(trust, _semantic(memory.detail).trust)
        return cls(
            id=memory_id,
            type=memory.type,
            content=memory.content,
            occurred_at=memory.occurred_at,
            expires_at=weight.expires_at,
            retention=weight.retention,
            importance=weight.importance,
            trust=trust,
            emotional_valence=memory.emotional_valence,
            role=memory.role,
            detail=memory.detail,
            written=False,
            fresh=True,
        )

    @classmethod
    def of_row(cls, row: Sequence[Any]) -> PlacedMemory:
        """Return the memory of a row of COLUMNS."""
        memory_id, kind, content, status, occurred_at, expires_at, *weighed, detail = row
        retention, importance, trust, emotional_valence, role = weighed
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
        """Return whether its time is over."""
        return self.expires_at is not None and self.expires_at <= now

    def can_be(self, memory: NewMemory, *, gap: timedelta) -> bool:
        """Return whether this can be one memory with another of the same words without a session.

        Two events are one if they happened within `gap` of each other and felt the same, and if one person said both; and
        whatever they are, their details must not disagree. What a memory contradicts it is not.
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
        both = merged(read_detail(self.type, self.detail), read_detail(self.type, memory.detail))
        return None if both is None else both.to_json()

    def remember_again(self, memory: NewMemory, weight: Weight, *, now: datetime) -> None:
        """Apply a memory that says the same; one whose time is over already changes nothing.

        Of two expiries the later wins. A memory without a session is reinforced: it gains what the other's detail adds,
        keeps its wording, and is kept for good when that one is. A turn that is read once more is the same turn.
        """
        if weight.expires_at is not None and weight.expires_at <= now:
            return
        if self.archived or self.expired(now):
            self.back = not self.fresh
        longer = self.expires_at is not None and (
            weight.expires_at is None or weight.expires_at > self.expires_at
        )
        if self.archived or longer:
            self.expires_at = weight.expires_at
            self.changed = True
        if not memory.session:
            self._reinforce(memory, weight)

    def settle(self) -> None:
        """End a step: the next one meets this memory as if it had been written."""
        if self.archived and self.changed:
            self.archived, self.woken = False, True
        if self.back and self.written:
            self.revived = True
        self.fresh = self.back = self.repeated = False

    def mark_written(self) -> None:
        """Mark the memory as written."""
        self.written = True
        self.changed = self.woken = self.revived = self.reworded = False
        self.times = self.unkept = 0

    def _reinforce(self, memory: NewMemory, weight: Weight) -> None:
        self.times += 1
        self.repeated = True
        kept = at_least(self.retention, weight.retention)
        if kept is not self.retention:
            self.retention, self.changed = kept, True
        if kept is Retention.PERMANENT and weight.importance > self.importance:
            self.importance, self.changed = weight.importance, True
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
        self.reworded = self.reworded or indexed_words(detail) != indexed_words(self.detail)
        before, self.detail, self.changed = self.detail, detail, True
        if self.type is MemoryType.SEMANTIC and new_sources(
            _semantic(before).sources, _semantic(detail).sources
        ):
            # A fact whose sources nobody wrote down loses nothing by its first one; the same source raises nothing.
            self.trust = max(self.trust, _semantic(detail).trust)

    def _add_wording(self, content: str) -> None:
        """Store this wording; beyond the limit only count it."""
        wordings = list(self.detail.get("wordings") or [])
        if content in wordings:
            return
        if len(wordings) < WORDINGS_KEPT:
            self.detail = {**self.detail, "wordings": [*wordings, content]}
        else:
            self.unkept += 1
            self.detail = {**self.detail, "wordings_more": int(self.detail.get("wordings_more") or 0) + 1}
        self.changed = True


def _semantic(detail: Mapping[str, Any]) -> SemanticDetail:
    read = read_detail(MemoryType.SEMANTIC, detail)
    assert isinstance(read, SemanticDetail)
    return read
