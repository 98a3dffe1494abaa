"""Remembering again: a memory that stands alone and is stored once more, or nearly so, is reinforced, not doubled.

The agent's mind is locked by whoever calls.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from django.conf import settings

from apps.memories.models import Memory
from apps.memories.services.appraisal import Weight
from apps.memories.services.embedding import Vectors
from apps.memories.services.neighborhoods import mark_stale
from apps.memories.services.words import terms_of
from apps.tenants.statements import change, fetch
from arbor.memory.content import content_hash
from arbor.memory.details import SemanticDetail, read_detail
from arbor.memory.duplicates import WORDINGS_KEPT, says_the_same
from arbor.memory.importance import at_least
from arbor.memory.retention import Retention
from arbor.memory.values import MemoryStatus, MemoryType, NewMemory

#: Near ones that are looked at for each memory: the nearest may say something else (`says_the_same`).
_LOOKED_AT = 5

#: Of a row, as `Standing.of_row` reads it.
COLUMNS = "m.id, m.type, m.content, m.status, m.expires_at, m.retention, m.importance, m.trust, m.detail"

# Only what stands alone: conversations fall out of the index before their vectors are looked at.
_NEAR = f"""
SELECT r.number, near.similarity, {COLUMNS}
FROM json_to_recordset(%(rows)s::json) AS r(number int, embedding halfvec)
CROSS JOIN LATERAL (
    SELECT id, -(embedding <#> r.embedding) AS similarity FROM memories_memory
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND status = 'active' AND session = ''
        AND embedding IS NOT NULL AND (expires_at IS NULL OR expires_at > now())
        AND -(embedding <#> r.embedding) >= %(least)s
    ORDER BY embedding <#> r.embedding LIMIT {_LOOKED_AT}
) near
JOIN memories_memory m ON m.tenant_id = %(tenant)s AND m.id = near.id
ORDER BY r.number, near.similarity DESC
"""  # noqa: S608 (our own words)
_CHANGE = """
UPDATE memories_memory m SET status = 'active', archived_at = NULL, expires_at = r.expires_at,
    retention = r.retention, importance = r.importance, trust = r.trust, detail = r.detail
FROM json_to_recordset(%(rows)s::json) AS r(
    id uuid, expires_at timestamptz, retention text, importance float8, trust float8, detail jsonb
)
WHERE m.tenant_id = %(tenant)s AND m.id = r.id
"""
_REINFORCE = """
INSERT INTO memories_memoryaccess (tenant_id, memory_id, count, reinforced, reinforced_at)
SELECT %(tenant)s, r.id, 0, r.times, now() FROM unnest(%(ids)s::uuid[], %(times)s::int[]) AS r(id, times) ORDER BY r.id
ON CONFLICT (tenant_id, memory_id) DO UPDATE
SET reinforced = memories_memoryaccess.reinforced + EXCLUDED.reinforced, reinforced_at = EXCLUDED.reinforced_at
"""
_TAKE_UP = """
UPDATE memories_upkeep u SET stale = true, unclustered = true, unextracted = NOT EXISTS (
    SELECT FROM memories_memoryconcept c WHERE c.tenant_id = u.tenant_id AND c.memory_id = u.memory_id
)
WHERE tenant_id = %(tenant)s AND memory_id = ANY(%(ids)s::uuid[])
"""


@dataclass(kw_only=True)
class Standing:
    """A memory as it stands, or will when the batch is written, and what remembering it again does to it."""

    id: UUID
    type: MemoryType
    content: str
    expires_at: datetime | None
    retention: Retention
    importance: float
    trust: float
    detail: Mapping[str, Any]
    #: It is not written yet.
    new: bool = False
    archived: bool = False
    #: It was archived, or its time was over, and it is back.
    back: bool = False
    changed: bool = False
    #: How often it was remembered again.
    times: int = 0

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
            expires_at=weight.expires_at,
            retention=weight.retention,
            importance=weight.importance,
            trust=trust,
            detail=memory.detail,
            new=True,
        )

    @classmethod
    def of_row(cls, row: Sequence[Any]) -> Standing:
        """Return what COLUMNS say."""
        memory_id, kind, content, status, expires_at, retention, importance, trust, detail = row
        return cls(
            id=memory_id,
            type=MemoryType(kind),
            content=content,
            expires_at=expires_at,
            retention=Retention(retention),
            importance=importance,
            trust=trust,
            detail=json.loads(detail) if isinstance(detail, str) else detail,
            archived=status != MemoryStatus.ACTIVE,
        )

    def again(self, memory: NewMemory, weight: Weight, *, now: datetime) -> None:
        """Take up a memory that says the same; one whose time is over already changes nothing.

        Of two expiries the later holds. What stands alone is reinforced: it gains the other's sources, keeps its
        wording, and is kept for good when that one is. A turn that is read once more is the same turn.
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
        if self.type is MemoryType.SEMANTIC and memory.detail.get("sources"):
            before = _semantic(self.detail)
            after = before.with_sources(_semantic(memory.detail).sources)
            if after != before:
                self.detail, self.changed = after.to_json(), True
                # A fact whose sources nobody wrote down loses nothing by its first one.
                self.trust = max(self.trust, after.trust)

    def _keep_wording(self, content: str) -> None:
        """Keep how it was said this time, so that nothing of it is lost; of many, the first."""
        wordings = list(self.detail.get("wordings") or [])
        if content not in wordings and len(wordings) < WORDINGS_KEPT:
            self.detail, self.changed = {**self.detail, "wordings": [*wordings, content]}, True

    def as_json(self) -> dict[str, Any]:
        """Return what _CHANGE reads."""
        return {
            "id": str(self.id),
            "expires_at": self.expires_at.isoformat() if self.expires_at else None,
            "retention": self.retention,
            "importance": self.importance,
            "trust": self.trust,
            "detail": dict(self.detail),
        }


def _semantic(detail: Mapping[str, Any]) -> SemanticDetail:
    read = read_detail(MemoryType.SEMANTIC, detail)
    assert isinstance(read, SemanticDetail)
    return read


def same_meaning(standing: Standing, memory: NewMemory) -> bool:
    """Return whether a memory of nearly the same meaning says the same, as the same kind of thing."""
    return standing.type is memory.type and says_the_same(standing.content, memory.content)


def find_near(
    agent_id: UUID, memories: Mapping[int, NewMemory], literals: Sequence[str | None]
) -> dict[int, tuple[float, Standing]]:
    """Return, by the number of each memory that has one, the nearest that says the same, and its cosine.

    One statement, none without a memory that stands alone and has a vector.
    """
    asked = [
        {"number": number, "embedding": literals[number]}
        for number, memory in memories.items()
        if not memory.session and literals[number] is not None
    ]
    found: dict[int, tuple[float, Standing]] = {}
    # Two memories may be near the same one.
    standings: dict[UUID, Standing] = {}
    if not asked or settings.ARBOR_DUPLICATE_SIMILARITY > 1:
        return found
    rows = fetch(_NEAR, agent=agent_id, rows=json.dumps(asked), least=settings.ARBOR_DUPLICATE_SIMILARITY)
    for number, similarity, *row in rows:
        standing = standings.setdefault(row[0], Standing.of_row(row))
        if number not in found and same_meaning(standing, memories[number]):
            found[number] = (similarity, standing)
    return found


class Alike:
    """The new memories of one batch that stand alone, and which of them are nearly the same."""

    def __init__(self, memories: Mapping[int, NewMemory], vectors: Vectors | None) -> None:
        self._memories = memories
        self._numbers = [number for number, memory in memories.items() if not memory.session]
        self._standings: dict[int, Standing] = {}
        self._cosines: Vectors | None = None
        if vectors is not None and len(self._numbers) > 1:
            rows = vectors[self._numbers]
            self._cosines = rows @ rows.T

    def add(self, number: int, standing: Standing) -> None:
        """Take note of a memory that will be written."""
        self._standings[number] = standing

    def nearest(self, number: int, near: tuple[float, Standing] | None) -> Standing | None:
        """Return what says the same as this memory: `near`, or one of the batch that is nearer; None if nothing does."""
        best = near
        memory = self._memories.get(number)
        if memory is not None and not memory.session and self._cosines is not None:
            row = self._cosines[self._numbers.index(number)]
            for place in np.flatnonzero(row >= settings.ARBOR_DUPLICATE_SIMILARITY):
                standing = self._standings.get(self._numbers[place])
                nearer = standing is not None and (best is None or row[place] > best[0])
                if standing is not None and nearer and same_meaning(standing, memory):
                    best = (float(row[place]), standing)
        return best[1] if best else None


def write_changes(standings: Iterable[Standing]) -> list[list[int]]:
    """Write what being remembered again has changed; return the terms of those that were archived.

    Up to four statements, none if nothing was remembered again. Memories that are new are there already.
    """
    known = {each.id: each for each in standings}.values()
    if changed := [each.as_json() for each in known if each.changed and not each.new]:
        change(_CHANGE, rows=json.dumps(changed, ensure_ascii=False))
    if again := {each.id: each.times for each in known if each.times}:
        change(_REINFORCE, ids=list(again), times=list(again.values()))
    if not (woken := [each.id for each in known if each.archived and each.changed]):
        return []
    change(_TAKE_UP, ids=woken)
    # Those that it was near to take it in again.
    mark_stale(woken)
    return [
        terms_of(lexical) for lexical in Memory.objects.filter(id__in=woken).values_list("lexical", flat=True)
    ]
