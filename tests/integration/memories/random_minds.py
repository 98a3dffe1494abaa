"""Random scenarios of storing memories, and comparable dumps of the resulting minds."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import numpy as np

from apps.agents.models import Agent
from apps.audit.models import AuditAction, AuditEvent
from apps.memories.models import Edge, Episode, Memory, MemoryAccess, Mind, Upkeep
from apps.memories.services.retention.archive import archive
from apps.memories.services.store.placement import StoreResult
from apps.memories.services.store.remember import store
from apps.tenants.scope import tenant_transaction
from arbor.embedding.models import EmbeddingModel
from arbor.embedding.ports import Vectors
from arbor.memory.values import MemoryType, NewMemory, Retention
from tests.integration.memories.conftest import NOON, a_memory, term_counts

#: Wordings of the same memory; the second differs only in ignored characters.
_WORDINGS = [
    ("The ferry leaves at dawn.", "the ferry leaves, at dawn"),
    ("The gate code is 4711.", "gate code is 4711"),
    ("Ada repairs the lock.", "Ada repairs the lock!"),
]
_DETAILS: dict[MemoryType, list[dict[str, Any]]] = {
    MemoryType.EPISODIC: [{}, {"action": "asked"}, {"action": "shouted"}, {"result": "silence"}],
    MemoryType.SEMANTIC: [
        {},
        {"sources": [{"kind": "url", "reference": "a", "trust": 0.5}]},
        {"sources": [{"kind": "url", "reference": "b", "trust": 0.7}]},
    ],
    MemoryType.PROCEDURAL: [{}, {"steps": ["open", "wait"]}, {"steps": ["wait", "open"]}],
    MemoryType.STRATEGIC: [{}],
}


def draw_memories(rng: random.Random, count: int) -> list[NewMemory]:
    """Return memories of few words, so that many repeat."""
    return [_draw_memory(rng) for _ in range(count)]


def _draw_memory(rng: random.Random) -> NewMemory:
    kind = rng.choices(list(MemoryType), [3, 3, 3, 1])[0]
    session = rng.choice(["", "", "", "", "talk"])
    return a_memory(
        rng.choice(rng.choice(_WORDINGS)),
        type=kind,
        detail=rng.choice(_DETAILS[kind]),
        session=session,
        position=rng.randrange(3),
        occurred_at=NOON + timedelta(minutes=rng.choice([0, 5, 25, 50, 300])),
        emotional_valence=rng.choice([0.0, 0.0, 0.4, -0.4]),
        importance=rng.choice([None, 0.3, 0.8]),
        retention=rng.choice([None, None, Retention.ROUTINE, Retention.PERMANENT]),
        expires_at=rng.choice([None, None, None, NOON, NOON + timedelta(days=9000)]),
        role=rng.choice(["", "Ada"]),
        source=rng.choice(["heartbeat:1", "heartbeat:2"]),
    )


def vectors_of(memories: Sequence[NewMemory], dimension: int) -> Vectors:
    """Return vectors that are near to each other for wordings of one memory, and far for others."""
    rows = np.zeros((len(memories), dimension), dtype=np.float32)
    places = {
        text: (number, wording)
        for number, wordings in enumerate(_WORDINGS)
        for wording, text in enumerate(wordings)
    }
    for row, memory in zip(rows, memories, strict=True):
        number, wording = places[memory.content]
        row[2 * number] = (1.0, 0.98)[wording]
        row[2 * number + 1] = np.sqrt(1 - row[2 * number] ** 2)
    return rows


def populate(agent: Agent, model: EmbeddingModel, *, seed: int) -> None:
    """Give an agent earlier memories, some of them archived, with their maintenance done."""
    rng = random.Random(seed)
    with tenant_transaction(agent.tenant_id):
        Mind.objects.create(
            tenant_id=agent.tenant_id,
            agent_id=agent.id,
            embedding_model=model.name,
            embedding_dimension=model.dimension,
        )
        memories = draw_memories(rng, 12)
        vectors = vectors_of(memories, model.dimension)
        ids = store(agent_id=agent.id, memories=memories, vectors=vectors, model=model).ids
        archived = [memory_id for memory_id in dict.fromkeys(ids) if rng.random() < 0.3]
        archive(memory_ids=archived, reason="a test", actor="system:tests")
        Upkeep.objects.filter(agent_id=agent.id).update(stale=False, unclustered=False)


def without_ids(agent: Agent, results: Sequence[StoreResult]) -> list[Any]:
    """Return the results of storing memories, without ids."""
    names = _names(agent)
    return [
        (
            [names[memory_id] for memory_id in result.ids],
            {names[memory_id] for memory_id in result.duplicates},
            {names[memory_id] for memory_id in result.reinforced},
            result.stored,
        )
        for result in results
    ]


def dump_mind(agent: Agent) -> dict[str, Any]:
    """Return all rows that storing writes: every column except ids and the times of writing."""
    names = _names(agent)
    with tenant_transaction(agent.tenant_id):
        episodes = {
            row.id: _columns(row, "id", "ended_at") for row in Episode.objects.filter(agent_id=agent.id)
        }
        return {
            "memories": {
                names[row.id]: _memory(row, episodes) for row in Memory.objects.filter(agent_id=agent.id)
            },
            "episodes": _multiset(
                (*episodes[row.id].items(), row.ended_at is None)
                for row in Episode.objects.filter(agent_id=agent.id)
            ),
            "upkeep": {
                names[row.memory_id]: _columns(row, "memory_id")
                for row in Upkeep.objects.filter(agent_id=agent.id)
            },
            "access": {
                names[row.memory_id]: _columns(row, "memory_id", "reinforced_at")
                for row in MemoryAccess.objects.filter(memory__agent_id=agent.id)
            },
            "edges": _multiset(
                (
                    names[row.source_id],
                    names[row.target_id],
                    *_columns(row, "id", "source_id", "target_id").items(),
                )
                for row in Edge.objects.filter(agent_id=agent.id)
            ),
            "mind": [
                _columns(row, "agent_id", "counted_at") for row in Mind.objects.filter(agent_id=agent.id)
            ],
            "restored": _multiset(
                names[UUID(memory_id)]
                for event in AuditEvent.objects.filter(
                    agent_id=agent.id, action=AuditAction.MEMORIES_RESTORED
                )
                for memory_id in event.detail["memory_ids"]
            ),
            "terms": term_counts(agent),
        }


def _names(agent: Agent) -> dict[UUID, Any]:
    with tenant_transaction(agent.tenant_id):
        rows = Memory.objects.filter(agent_id=agent.id)
        return {row.id: (row.content, row.type, row.session, row.position) for row in rows}


def _memory(row: Memory, episodes: dict[UUID, Any]) -> dict[str, Any]:
    columns = _columns(row, "id", "archived_at", "episode_id", "embedding", "lexical")
    columns["archived"] = row.archived_at is not None
    columns["episode"] = None if row.episode_id is None else episodes.get(row.episode_id)
    columns["embedding"] = row.embedding
    columns["lexical"] = (row.lexical.indices(), row.lexical.values())
    return columns


def _columns(row: Any, *left_out: str) -> dict[str, Any]:
    names = [field.attname for field in row._meta.concrete_fields]
    # A revision is the number of the transaction that wrote it.
    of_writing = {"tenant_id", "agent_id", "created_at", "revision", *left_out}
    values = {name: getattr(row, name) for name in names if name not in of_writing}
    return {name: bytes(value) if isinstance(value, memoryview) else value for name, value in values.items()}


def _multiset(rows: Iterator[Any]) -> Counter[Any]:
    return Counter(map(str, rows))
