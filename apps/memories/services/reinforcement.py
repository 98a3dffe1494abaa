"""Remembering again: a memory that stands alone and is stored once more, or nearly so, is reinforced, not doubled.

The agent's mind is locked by whoever calls.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.memories.models import Memory
from apps.memories.services.appraisal import Weight
from apps.memories.services.neighborhoods import mark_around, mark_stale
from apps.memories.services.waking import reinforce, take_up
from apps.memories.services.words import terms_of
from apps.tenants.statements import change
from arbor.ids import uuid7
from arbor.memory.content import content_hash
from arbor.memory.details import SemanticDetail, read_detail
from arbor.memory.duplicates import WORDINGS_KEPT
from arbor.memory.importance import at_least
from arbor.memory.merging import merged
from arbor.memory.relations import NodeKind, Relation
from arbor.memory.retention import Retention
from arbor.memory.values import MemoryStatus, MemoryType, NewMemory

#: Of a row, as `Standing.of_row` reads it.
COLUMNS = """
m.id, m.type, m.content, m.status, m.occurred_at, m.expires_at, m.retention, m.importance, m.trust,
m.emotional_valence, m.detail
"""

_CHANGE = """
UPDATE memories_memory m SET status = 'active', archived_at = NULL, expires_at = r.expires_at,
    retention = r.retention, importance = r.importance, trust = r.trust,
    emotional_valence = r.emotional_valence, detail = r.detail
FROM json_to_recordset(%(rows)s::json) AS r(
    id uuid, expires_at timestamptz, retention text, importance float8, trust float8,
    emotional_valence float8, detail jsonb
)
WHERE m.tenant_id = %(tenant)s AND m.id = r.id
"""
_EVOLVE = """
INSERT INTO memories_edge (tenant_id, agent_id, id, source_kind, source_id, target_kind, target_id, relation, weight,
    note, origin, created_at)
SELECT %(tenant)s, %(agent)s, r.id, %(memory)s, r.old, %(memory)s, r.new, %(relation)s, 1, '', r.origin, now()
FROM json_to_recordset(%(rows)s::json) AS r(id uuid, old uuid, new uuid, origin text)
ON CONFLICT DO NOTHING
"""


@dataclass(kw_only=True)
class Standing:
    """A memory as it stands, or will when the batch is written, and what remembering it again does to it."""

    id: UUID
    type: MemoryType
    content: str
    occurred_at: datetime
    expires_at: datetime | None
    retention: Retention
    importance: float
    trust: float
    emotional_valence: float
    detail: Mapping[str, Any]
    #: It is not written yet.
    new: bool = False
    archived: bool = False
    #: It was archived, or its time was over, and it is back.
    back: bool = False
    changed: bool = False
    #: How often it was remembered again.
    times: int = 0
    #: Wordings beyond those that are kept.
    unkept: int = 0

    @classmethod
    def of(cls, memory_id: UUID, memory: NewMemory, weight: Weight) -> Standing:
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
            detail=memory.detail,
            new=True,
        )

    @classmethod
    def of_row(cls, row: Sequence[Any]) -> Standing:
        """Return what COLUMNS say."""
        memory_id, kind, content, status, occurred_at, expires_at, *weighed, detail = row
        retention, importance, trust, emotional_valence = weighed
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
            detail=json.loads(detail) if isinstance(detail, str) else detail,
            archived=status != MemoryStatus.ACTIVE,
        )

    def stands_for(self, memory: NewMemory, *, gap: timedelta) -> bool:
        """Return whether this can be one memory with another of the same words that stands alone.

        Two events are one if they happened within `gap` of each other and felt the same; and whatever they are, their
        details must not disagree. What a memory contradicts it is not.
        """
        if str(self.id) in (memory.detail.get("contradictions") or ()):
            return False
        if self.type is MemoryType.EPISODIC:
            felt = {each for each in (self.emotional_valence, memory.emotional_valence) if each}
            if abs(self.occurred_at - memory.occurred_at) > gap or len(felt) > 1:
                return False
        return not memory.detail or self._merged(memory) is not None

    def _merged(self, memory: NewMemory) -> Mapping[str, Any] | None:
        both = merged(read_detail(self.type, self.detail), read_detail(self.type, memory.detail))
        return None if both is None else both.to_json()

    def again(self, memory: NewMemory, weight: Weight, *, now: datetime) -> None:
        """Take up a memory that says the same; one whose time is over already changes nothing.

        Of two expiries the later holds. What stands alone is reinforced: it gains what the other's detail adds,
        keeps its wording, and is kept for good when that one is. A turn that is read once more is the same turn.
        """
        if weight.expires_at is not None and weight.expires_at <= now:
            return
        if self.archived or (self.expires_at is not None and self.expires_at <= now):
            self.back = not self.new
        longer = self.expires_at is not None and (
            weight.expires_at is None or weight.expires_at > self.expires_at
        )
        if self.archived or longer:
            self.expires_at = weight.expires_at
            self.changed = True
        if not memory.session:
            self._reinforce(memory, weight)

    def _reinforce(self, memory: NewMemory, weight: Weight) -> None:
        self.times += 1
        kept = at_least(self.retention, weight.retention)
        if kept is not self.retention:
            self.retention, self.changed = kept, True
        if kept is Retention.PERMANENT and weight.importance > self.importance:
            self.importance, self.changed = weight.importance, True
        if content_hash(memory.content) != content_hash(self.content):
            self._keep_wording(memory.content)
        if not self.emotional_valence and memory.emotional_valence:
            self.emotional_valence, self.changed = memory.emotional_valence, True
        if memory.detail:
            self._take_in(memory)

    def _take_in(self, memory: NewMemory) -> None:
        detail = self._merged(memory)
        if detail is None or detail == self.detail:
            return
        known = bool(self.detail.get("sources") or memory.detail.get("sources"))
        self.detail, self.changed = detail, True
        if self.type is MemoryType.SEMANTIC and known:
            # A fact whose sources nobody wrote down loses nothing by its first one.
            self.trust = max(self.trust, _semantic(detail).trust)

    def _keep_wording(self, content: str) -> None:
        """Keep how it was said this time; of many, the first, and how many there were besides."""
        wordings = list(self.detail.get("wordings") or [])
        if content in wordings:
            return
        if len(wordings) < WORDINGS_KEPT:
            self.detail = {**self.detail, "wordings": [*wordings, content]}
        else:
            self.unkept += 1
            self.detail = {**self.detail, "wordings_more": int(self.detail.get("wordings_more") or 0) + 1}
        self.changed = True

    def as_json(self) -> dict[str, Any]:
        """Return what _CHANGE reads."""
        return {
            "id": str(self.id),
            "expires_at": self.expires_at.isoformat() if self.expires_at else None,
            "retention": self.retention,
            "importance": self.importance,
            "trust": self.trust,
            "emotional_valence": self.emotional_valence,
            "detail": dict(self.detail),
        }


def _semantic(detail: Mapping[str, Any]) -> SemanticDetail:
    read = read_detail(MemoryType.SEMANTIC, detail)
    assert isinstance(read, SemanticDetail)
    return read


def write_changes(agent_id: UUID, standings: Iterable[Standing]) -> list[list[int]]:
    """Write what being remembered again has changed; return the terms of those that were archived.

    Up to six statements, none if nothing was remembered again. Memories that are new are there already.
    """
    known = {each.id: each for each in standings}.values()
    if changed := [each.as_json() for each in known if each.changed and not each.new]:
        change(_CHANGE, rows=json.dumps(changed, ensure_ascii=False))
    if again := {each.id: each.times for each in known if each.times}:
        reinforce(again)
    if unkept := {str(each.id): each.unkept for each in known if each.unkept}:
        record(
            action=AuditAction.TRUNCATED,
            actor="system:memories",
            agent_id=agent_id,
            message=f"counted {sum(unkept.values())} further wordings of what is remembered, beyond {WORDINGS_KEPT}",
            detail={"memories": unkept},
        )
    if not (woken := [each.id for each in known if each.archived and each.changed]):
        return []
    record(
        action=AuditAction.MEMORIES_RESTORED,
        actor="system:memories",
        agent_id=agent_id,
        message=f"{len(woken)} archived memories came back: the same was remembered again",
        detail={"memory_ids": [str(each) for each in woken]},
    )
    take_up(woken)
    # Those that it was near to take it in again.
    mark_stale(woken)
    return [
        terms_of(lexical) for lexical in Memory.objects.filter(id__in=woken).values_list("lexical", flat=True)
    ]


def write_evolved(agent_id: UUID, pairs: Sequence[tuple[UUID, UUID]], *, origins: Sequence[str]) -> None:
    """Tie each memory to what became of it, a later one of the same words. Two statements, none without pairs."""
    if not pairs:
        return
    rows = [
        {"id": str(uuid7()), "old": str(old), "new": str(new), "origin": origin}
        for (old, new), origin in zip(pairs, origins, strict=True)
    ]
    change(
        _EVOLVE,
        agent=agent_id,
        memory=NodeKind.MEMORY.value,
        relation=Relation.EVOLVED_INTO.value,
        rows=json.dumps(rows),
    )
    ends = {end for pair in pairs for end in pair}
    mark_around(agent_id, ends, ends)
