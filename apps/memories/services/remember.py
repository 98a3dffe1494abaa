"""Storing memories: idempotent by content, found by their words at once and by their meaning once embedded."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import numpy as np
import structlog
from django.conf import settings

from apps.memories.services.appraisal import weigh
from apps.memories.services.embedding import Vectors, embed_for_storage, embedder_for
from apps.memories.services.literals import fitting, halfvec_texts, sparsevec_text
from apps.memories.services.minds import installation_model, model_of
from apps.memories.services.quota import MARK_GROWN, growth
from apps.memories.services.reinforcement import (
    COLUMNS,
    Alike,
    Standing,
    find_near,
    write_changes,
)
from apps.memories.services.segment import WRITE_EPISODES, Episodes, segment_memories
from apps.memories.services.words import (
    ALL_MEMORIES,
    COUNT_TERMS,
    count_terms,
    counted,
    lock_minds,
    terms_of,
)
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import change, fetch
from arbor.embedding.models import EmbeddingModel
from arbor.errors import Invalid
from arbor.ids import uuid7
from arbor.memory.content import content_hash
from arbor.memory.lexical import document_vector
from arbor.memory.values import NewMemory

__all__ = ["ALL_MEMORIES", "Remembered", "count_terms", "lock_minds", "remember", "store", "terms_of"]

log = structlog.get_logger(__name__)

type _Key = tuple[bytes, str, int]

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
        now(), r.expires_at, r.embedding, CASE WHEN r.embedding IS NULL THEN '' ELSE %(made_by)s END, r.lexical,
        r.retention, r.episode, r.sequence
    FROM json_to_recordset(%(rows)s::json) AS r(
        id uuid, type text, content text, content_hash text, importance float8, decay_rate float8, trust float8,
        emotional_valence float8, session text, "position" int, role text, source text, detail jsonb,
        occurred_at timestamptz, expires_at timestamptz, embedding halfvec, lexical sparsevec, retention text,
        episode uuid, sequence int
    )
    RETURNING id
)
INSERT INTO memories_upkeep (tenant_id, agent_id, memory_id, stale, unclustered, unextracted, unweighed)
SELECT %(tenant)s, %(agent)s, id, true, true, true, id = ANY(%(unweighed)s::uuid[]) FROM stored
"""  # noqa: S608 (our own words)

# One row at least: what the agent's mind is, empty while it remembers nothing.
_KNOWN = f"""
SELECT k.embedding_model, k.embedding_dimension, m.content_hash, m.session, m.position, {COLUMNS}
FROM (SELECT) one
LEFT JOIN memories_mind k ON k.tenant_id = %(tenant)s AND k.agent_id = %(agent)s
LEFT JOIN memories_memory m
    ON m.tenant_id = %(tenant)s AND m.agent_id = %(agent)s AND m.content_hash = ANY(%(digests)s::bytea[])
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
class Embedded:
    """The vectors of memories that are about to be stored, one for each in order, and what made them."""

    vectors: Vectors | None
    model: EmbeddingModel


def embed_memories(*, tenant_id: UUID, agent_id: UUID, memories: Sequence[NewMemory]) -> Embedded:
    """Embed the texts of memories by their agent's model, outside any transaction; no vectors where upkeep is to do it."""
    with tenant_transaction(tenant_id):
        model = model_of(agent_id)
    texts = [each.content for each in memories]
    return Embedded(vectors=embed_for_storage(tenant_id=tenant_id, texts=texts, model=model), model=model)


def store(
    *,
    agent_id: UUID,
    memories: Sequence[NewMemory],
    vectors: Vectors | None,
    model: EmbeddingModel | None = None,
) -> Remembered:
    """Store memories of one agent in the transaction that is open; `vectors`, if any, one per memory in order.

    The same content at the same place of the same session is one memory; if it was archived or its time was over, it
    comes back, and of two expiries the later holds. Of memories without a session, the same content is one, wherever it
    stands, and so is nearly the same meaning with the same numbers and negations: it is reinforced. What has no
    importance or retention is appraised. `model` made the vectors; those of another than the agent's are not kept.

    Three statements, however many memories; one more with vectors of memories without a session, one more with episodic
    memories, and up to four for what was remembered again. Raises Invalid for vectors that do not fit the memories.
    """
    if not memories:
        return Remembered(ids=(), duplicates=frozenset())
    _check_vectors(memories, vectors)
    lock_minds([agent_id])
    batch = _Batch(agent_id, memories)
    batch.place(vectors, model)
    batch.write()
    return batch.result()


def _check_vectors(memories: Sequence[NewMemory], vectors: Vectors | None) -> None:
    if vectors is None:
        return
    shape = np.shape(vectors)
    if len(shape) != 2 or shape[0] != len(memories):
        raise Invalid(f"vectors must be one row for each of {len(memories)} memories, got the shape {shape}")
    if not np.isfinite(vectors).all():
        raise Invalid("vectors must be finite numbers")


class _Batch:
    """Memories that are stored together: which stand already, which are one, and what is written."""

    def __init__(self, agent_id: UUID, memories: Sequence[NewMemory]) -> None:
        self._agent_id = agent_id
        self._memories = memories
        self._weights = [weigh(each) for each in memories]
        self._now = datetime.now(UTC)
        self._keys = [_key(each) for each in memories]
        self._standing: list[Standing] = []
        self._new: dict[int, NewMemory] = {}
        self._literals: list[str | None] = [None] * len(memories)
        self._mind = installation_model()
        self._has_mind = False

    def place(self, vectors: Vectors | None, made_by: EmbeddingModel | None) -> None:
        """Find what each memory is: one that stands, one of this batch, or a new one."""
        by_key = self._find_known()
        vectors = self._comparable(vectors, made_by)
        if vectors is not None:
            self._literals = [*halfvec_texts(vectors)]
        unknown = {
            number: memory
            for number, (key, memory) in enumerate(zip(self._keys, self._memories, strict=True))
            if key not in by_key
        }
        near = find_near(self._agent_id, unknown, self._literals)
        alike = Alike(unknown, vectors)
        for number, (key, memory) in enumerate(zip(self._keys, self._memories, strict=True)):
            standing = by_key.get(key) or alike.nearest(number, near.get(number))
            if standing is None:
                standing = Standing.of(uuid7(), memory, self._weights[number])
                self._new[number] = memory
                alike.add(number, standing)
            else:
                standing.again(memory, self._weights[number], now=self._now)
            by_key[key] = standing
            self._standing.append(standing)

    def _find_known(self) -> dict[_Key, Standing]:
        """Read the agent's mind, and return the memories that stand at these places already."""
        rows = fetch(_KNOWN, agent=self._agent_id, digests=list({digest for digest, _, _ in self._keys}))
        found: dict[_Key, Standing] = {}
        for name, dimension, digest, session, position, *row in rows:
            if name is not None:
                self._has_mind = True
                self._mind = EmbeddingModel(name=name, dimension=dimension)
            if digest is not None:
                # An active one comes before an archived one.
                found.setdefault((bytes(digest), session, position if session else 0), Standing.of_row(row))
        return found

    def _comparable(self, vectors: Vectors | None, made_by: EmbeddingModel | None) -> Vectors | None:
        """Return the vectors if the agent's can be compared with them; it may have been moved to another model."""
        if vectors is None:
            return None
        rows = np.asarray(vectors, dtype=np.float32)
        if rows.shape[1] == self._mind.dimension and made_by in (None, self._mind):
            return rows
        log.warning(
            "stored_without_vectors",
            reason=f"the agent's are by {self._mind}, these by {made_by or f'{rows.shape[1]} dimensions'}",
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
            change(
                _WRITE,
                agent=self._agent_id,
                rows=json.dumps(rows, ensure_ascii=False),
                episodes=json.dumps(episodes.rows),
                first=not self._has_mind,
                model=self._mind.name,
                dimension=self._mind.dimension,
                made_by=embedder_for(self._mind).model if any(self._literals) else "",
                unweighed=self._waiting_for_weight(),
                **counted(words.values(), sign=1),
                **growth(stored=len(rows)),
            )
        if self._new.keys() != set(range(len(self._memories))):
            count_terms(self._agent_id, write_changes(self._standing), sign=1)

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
            "position": memory.position,
            "role": memory.role,
            "source": memory.source,
            "occurred_at": memory.occurred_at.isoformat(),
            "embedding": self._literals[number],
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
    return content_hash(memory.content), memory.session, memory.position if memory.session else 0
