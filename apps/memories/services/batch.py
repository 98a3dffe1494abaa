"""Memories that are stored together: which stand already, which are one, and what is written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import numpy as np
import structlog
from django.conf import settings

from apps.memories.services.appraisal import weigh
from apps.memories.services.embedding import Vectors, embedder_for
from apps.memories.services.literals import fitting, sparsevec_text
from apps.memories.services.minds import installation_model
from apps.memories.services.near import Alike, find_near
from apps.memories.services.quota import MARK_GROWN, growth
from apps.memories.services.reinforcement import COLUMNS, Standing, write_changes, write_evolved
from apps.memories.services.segment import WRITE_EPISODES, Episodes, episode_gap, segment_memories
from apps.memories.services.words import COUNT_TERMS, count_terms, counted
from apps.tenants.encoding import to_json
from apps.tenants.postgresql.reals import Reals
from apps.tenants.statements import change, fetch
from arbor.embedding.models import EmbeddingModel
from arbor.errors import Invalid, NotFound
from arbor.ids import uuid7
from arbor.memory.content import content_hash
from arbor.memory.lexical import document_vector
from arbor.memory.values import MemoryType, NewMemory

log = structlog.get_logger(__name__)

type _Key = tuple[bytes, str, str, int]

_LAST_POSITION = 2**31 - 1

# One parameter instead of 25 for each row: four times as fast as the ORM's insert, which spends its time on quoting.
_WRITE = f"""
WITH episodes AS ({WRITE_EPISODES}), terms AS ({COUNT_TERMS}), grown AS ({MARK_GROWN}), mind AS (
    INSERT INTO memories_mind (tenant_id, agent_id, embedding_model, embedding_dimension)
    SELECT %(tenant)s, %(agent)s, %(model)s, %(dimension)s WHERE %(first)s
), stored AS (
    INSERT INTO memories_memory (tenant_id, agent_id, id, type, status, content, content_hash, importance, decay_rate,
        trust, emotional_valence, session, position, role, source, detail, occurred_at, created_at, expires_at,
        embedding, embedding_model, lexical, retention, episode_id, sequence)
    SELECT %(tenant)s, %(agent)s, r.id, r.type, 'active', r.content, decode(r.content_hash, 'hex'), r.importance,
        r.decay_rate, r.trust, r.emotional_valence, r.session, r."position", r.role, r.source, r.detail, r.occurred_at,
        now(), r.expires_at, (%(numbers)s::real[])[r.place * %(dimension)s + 1 : (r.place + 1) * %(dimension)s]::halfvec,
        CASE WHEN r.place IS NULL THEN '' ELSE %(made_by)s END, r.lexical, r.retention, r.episode, r.sequence
    FROM json_to_recordset(%(rows)s::json) AS r(
        id uuid, type text, content text, content_hash text, importance float8, decay_rate float8, trust float8,
        emotional_valence float8, session text, "position" int, role text, source text, detail jsonb,
        occurred_at timestamptz, expires_at timestamptz, place int, lexical sparsevec, retention text,
        episode uuid, sequence int
    )
    RETURNING id
)
INSERT INTO memories_upkeep (tenant_id, agent_id, memory_id, stale, unclustered, unextracted, unweighed)
SELECT %(tenant)s, %(agent)s, id, true, true, true, id = ANY(%(unweighed)s::uuid[]) FROM stored
"""  # noqa: S608 (our own words)

# No row: there is no such agent. One at least: what its mind is, empty while it remembers nothing.
_KNOWN = f"""
SELECT k.embedding_model, k.embedding_dimension, m.content_hash, m.session, m.position, {COLUMNS}
FROM agents_agent a
LEFT JOIN memories_mind k ON k.tenant_id = %(tenant)s AND k.agent_id = a.id
LEFT JOIN memories_memory m
    ON m.tenant_id = %(tenant)s AND m.agent_id = %(agent)s AND m.content_hash = ANY(%(digests)s::bytea[])
WHERE a.tenant_id = %(tenant)s AND a.id = %(agent)s
ORDER BY m.status, m.id
"""  # noqa: S608


@dataclass(frozen=True, kw_only=True)
class Remembered:
    """What became of memories that were to be stored: an id for each, in order."""

    ids: tuple[UUID, ...]
    #: Those that were there before.
    duplicates: frozenset[UUID]
    #: Those that stand alone and were remembered again, in the same words or nearly so.
    reinforced: frozenset[UUID] = frozenset()

    @property
    def stored(self) -> int:
        """How many are new, or back."""
        return len(set(self.ids) - self.duplicates)


class Batch:
    """Memories of one agent that are stored together. Its mind is locked by whoever calls."""

    def __init__(self, agent_id: UUID, memories: Sequence[NewMemory]) -> None:
        self._agent_id = agent_id
        self._memories = memories
        self._weights = [weigh(each) for each in memories]
        self._now = datetime.now(UTC)
        self._keys = [_key(each) for each in memories]
        self._gap = episode_gap()
        self._standing: list[Standing] = []
        #: Positions of the memories of the same words that stand alone.
        self._taken: defaultdict[_Key, set[int]] = defaultdict(set)
        #: Each the known one and the new one that it became, and who says so.
        self._evolved: list[tuple[UUID, UUID]] = []
        self._origins: list[str] = []
        self._new: dict[int, NewMemory] = {}
        self._vectors: Vectors | None = None
        self._mind = installation_model()
        self._has_mind = False

    def place(self, vectors: Vectors | None, made_by: EmbeddingModel | None) -> None:
        """Find what each memory is: one that stands, one of this batch, or a new one."""
        by_key = self._find_known()
        self._vectors = vectors = self._comparable(vectors, made_by)
        unknown = {
            number: memory
            for number, (key, memory) in enumerate(zip(self._keys, self._memories, strict=True))
            if self._first(by_key[key], memory) is None
        }
        near = find_near(self._agent_id, unknown, vectors)
        alike = Alike(unknown, vectors)
        for number, (key, memory) in enumerate(zip(self._keys, self._memories, strict=True)):
            same = [*by_key[key], *alike.near(number, near.get(number, []))]
            standing = self._first(same, memory)
            if standing is None:
                standing = Standing.of(uuid7(), memory, self._weights[number])
                self._new[number] = memory
                alike.add(number, standing)
                self._note_evolution(same, memory, standing)
            else:
                standing.again(memory, self._weights[number], now=self._now)
            if all(each is not standing for each in by_key[key]):
                by_key[key].append(standing)
            self._standing.append(standing)

    def _first(self, same: Sequence[Standing], memory: NewMemory) -> Standing | None:
        """Return the first of those of the same words that the memory is; a turn of a session is the one at its place."""
        gap = self._gap
        return next((each for each in same if memory.session or each.stands_for(memory, gap=gap)), None)

    def _note_evolution(self, same: Sequence[Standing], memory: NewMemory, new: Standing) -> None:
        """Note that what is known became something else: other steps, another pattern. Two events are just two."""
        if memory.session or memory.type is MemoryType.EPISODIC:
            return
        denied = set(memory.detail.get("contradictions") or ())
        if old := [each.id for each in same if not each.archived and str(each.id) not in denied]:
            self._evolved.append((max(old), new.id))
            self._origins.append(memory.source)

    def _find_known(self) -> defaultdict[_Key, list[Standing]]:
        """Read the agent's mind, and return the memories of these words at these places. Raises NotFound for the agent."""
        rows = fetch(_KNOWN, agent=self._agent_id, digests=list({key[0] for key in self._keys}))
        if not rows:
            raise NotFound(f"there is no agent {self._agent_id} to remember this")
        found: defaultdict[_Key, list[Standing]] = defaultdict(list)
        for name, dimension, digest, session, position, *row in rows:
            if name is not None:
                self._has_mind = True
                self._mind = EmbeddingModel(name=name, dimension=dimension)
            if digest is not None:
                # Active ones come before archived ones.
                standing = Standing.of_row(row)
                key = (bytes(digest), standing.type.value, session, position if session else 0)
                found[key].append(standing)
                if not session:
                    self._taken[key].add(position)
        return found

    def _position(self, number: int) -> int:
        """Return where a new memory stands; what stands alone, beside those of the same words."""
        memory, taken = self._memories[number], self._taken[self._keys[number]]
        if memory.session:
            return memory.position
        position = memory.position
        if position in taken:
            position = max(taken) + 1
        if position > _LAST_POSITION:
            position = next(each for each in range(len(taken) + 1) if each not in taken)
        taken.add(position)
        return position

    def _comparable(self, vectors: Vectors | None, made_by: EmbeddingModel | None) -> Vectors | None:
        """Return the vectors if the agent's can be compared with them; it may have been moved to another model.

        Raises Invalid for those whose length is not that of the model that is said to have made them.
        """
        if vectors is None:
            return None
        rows = np.asarray(vectors, dtype=np.float32)
        said = made_by or self._mind
        if rows.shape[1] != said.dimension:
            raise Invalid(f"vectors of {said.name} have {said.dimension} numbers each, got {rows.shape[1]}")
        if said == self._mind:
            return rows
        log.warning(
            "stored_without_vectors",
            reason=f"the agent's are by {self._mind}, these by {made_by}",
            memories=len(rows),
        )
        return None

    def write(self) -> None:
        """Write what is new, then what has changed."""
        if self._new:
            episodes = segment_memories(self._agent_id, self._new)
            words = {
                number: fitting(
                    document_vector(memory.content, speaker=memory.role),
                    session=memory.session,
                    dimension=self._mind.dimension,
                )
                for number, memory in self._new.items()
            }
            rows = [self._row(number, words[number], episodes) for number in self._new]
            numbers = None
            if self._vectors is not None:
                numbers = Reals(self._vectors[list(self._new)])
                rows = [{**row, "place": place} for place, row in enumerate(rows)]
            change(
                _WRITE,
                agent=self._agent_id,
                rows=to_json(rows),
                episodes=to_json(episodes.rows),
                first=not self._has_mind,
                model=self._mind.name,
                dimension=self._mind.dimension,
                numbers=numbers,
                made_by=embedder_for(self._mind).model if numbers else "",
                unweighed=self._waiting_for_weight(),
                **counted(words.values(), sign=1),
                **growth(stored=len(rows)),
            )
        if self._new.keys() != set(range(len(self._memories))):
            count_terms(self._agent_id, write_changes(self._agent_id, self._standing), sign=1)

        write_evolved(self._agent_id, self._evolved, origins=self._origins)

    def _waiting_for_weight(self) -> list[UUID]:
        """Return those that a model is to weigh, where one is configured; what the caller says is not weighed again."""
        if not (settings.ARBOR_MAINTENANCE_MODEL and settings.ARBOR_WEIGH_MEMORIES):
            return []
        return [self._standing[number].id for number, each in self._new.items() if each.importance is None]

    def _row(self, number: int, terms: Mapping[int, float], episodes: Episodes) -> dict[str, Any]:
        memory, standing = self._memories[number], self._standing[number]
        episode, sequence = episodes.places.get(number, (None, 0))
        return {
            **standing.as_json(),
            "type": memory.type,
            "content": memory.content,
            "content_hash": self._keys[number][0].hex(),
            "decay_rate": memory.decay_rate,
            "emotional_valence": memory.emotional_valence,
            "session": memory.session,
            "position": self._position(number),
            "role": memory.role,
            "source": memory.source,
            "occurred_at": memory.occurred_at.isoformat(),
            "lexical": sparsevec_text(terms),
            "episode": str(episode) if episode else None,
            "sequence": sequence,
        }

    def result(self) -> Remembered:
        """Say what became of each."""
        return Remembered(
            ids=tuple(each.id for each in self._standing),
            duplicates=frozenset(each.id for each in self._standing if not each.new and not each.back),
            reinforced=frozenset(each.id for each in self._standing if each.times),
        )


def _key(memory: NewMemory) -> _Key:
    """Return what makes two memories one: what stands alone is the same wherever it stands."""
    return (
        content_hash(memory.content),
        memory.type.value,
        memory.session,
        memory.position if memory.session else 0,
    )
