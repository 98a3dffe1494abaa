"""Random minds with all fields that recall reads, and queries about them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import numpy as np

from apps.agents.models import Agent
from apps.memories.models import Activation, MemoryAccess, Upkeep
from apps.memories.services.store.remember import store
from apps.tenants.scope import tenant_transaction
from arbor.embedding.ports import Vectors
from arbor.memory.neighborhood import HIGHEST_WEIGHT
from arbor.memory.values import NewMemory

NOW = datetime(2024, 9, 15, 8, 30, tzinfo=UTC)
WORDS = [
    "harbour",
    "boat",
    "ferry",
    "tide",
    "storm",
    "lantern",
    "bridge",
    "market",
    "bread",
    "salt",
    "letter",
    "garden",
    "apple",
    "river",
    "train",
    "ticket",
    "doctor",
    "knee",
    "violin",
    "concert",
    "mother",
    "brother",
    "winter",
    "window",
    "paint",
    "school",
    "teacher",
    "map",
    "mountain",
    "tent",
    "rain",
    "may",
    "will",
]
SPEAKERS = ("Ada Byron", "Grace", "Will", "user", "system", "")
QUERIES = (
    "harbour",
    "What did Ada say about the ferry?",
    "When did Will paint the bridge in May 2024?",
    "the storm last month",
    "Grace's violin concert on 3 March 2024",
    "winter",
    "something that nobody ever said",
    "Ada Grace Will",
)


def random_memories(chance: random.Random, count: int) -> list[NewMemory]:
    """Return memories with all fields that recall reads, and with gaps, ties and blanks in them."""
    memories = []
    for place in range(count):
        text = " ".join(chance.choices(WORDS, k=chance.randint(1, 9)))
        session = f"session {chance.randint(0, count // 12)}" if chance.random() < 0.8 else ""
        memories.append(
            NewMemory(
                content=text + chance.choice([".", "?", "!"]),
                occurred_at=NOW - timedelta(days=chance.randint(0, 300), minutes=place),
                importance=chance.choice([0.2, 0.5, 0.5, 0.9]),
                decay_rate=chance.choice([0.0, 0.01, 0.2]),
                trust=chance.choice([1.0, 1.0, 0.4]),
                emotional_valence=(0.0, 0.0, -0.8, 0.3)[place % 4],
                session=session,
                position=chance.randint(0, 25) if session else place,
                role=chance.choice(SPEAKERS),
                expires_at=chance.choice([None, None, None, NOW - timedelta(1), NOW + timedelta(days=9000)]),
            )
        )
    # Equal words differ by their place; recall cannot order two turns at one place of a session.
    return list({(memory.session, memory.position): memory for memory in memories}.values())


def random_vectors(chance: random.Random, count: int) -> Vectors:
    generator = np.random.default_rng(chance.randint(0, 2**32))
    rows = generator.standard_normal((count, 256)).astype(np.float32)
    unit: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def populate(agent: Agent, chance: random.Random, count: int) -> None:
    """Give the agent memories: most of them embedded, some archived, some recalled before."""
    memories = random_memories(chance, count)
    split = len(memories) * 4 // 5
    with tenant_transaction(agent.tenant_id):
        ids = store(agent_id=agent.id, memories=memories[:split], vectors=random_vectors(chance, split)).ids
        ids += store(agent_id=agent.id, memories=memories[split:], vectors=None).ids
        accesses = (
            MemoryAccess(
                tenant_id=agent.tenant_id,
                memory_id=memory_id,
                count=chance.randint(1, 9),
                reinforced=chance.randint(0, 3),
                last_at=NOW - timedelta(chance.randint(0, 50)),
            )
            for memory_id in chance.sample(sorted(set(ids)), len(set(ids)) // 5)
        )
        # Repeated memories have a row already, because they were reinforced.
        MemoryAccess.objects.bulk_create(accesses, ignore_conflicts=True)
        add_neighborhoods(agent, chance, sorted(set(ids)))


def add_neighborhoods(agent: Agent, chance: random.Random, ids: Sequence[UUID]) -> None:
    """Give half of the memories neighborhoods, with an unknown memory in each, and activate a few."""
    upkeep = {row.memory_id: row for row in Upkeep.objects.filter(agent_id=agent.id)}
    for memory_id in chance.sample(ids, len(ids) // 2):
        others = [*chance.sample(ids, min(len(ids), 6)), uuid4()]
        neighbors = {
            str(other): round(chance.uniform(0.05, HIGHEST_WEIGHT), 4)
            for other in others
            if other != memory_id
        }
        stale = chance.random() < 0.5
        if row := upkeep.get(memory_id):
            row.neighbors, row.stale = neighbors, stale
    Upkeep.objects.bulk_update(upkeep.values(), ["neighbors", "stale"], batch_size=50)
    Activation.objects.bulk_create(
        Activation(
            tenant_id=agent.tenant_id,
            agent_id=agent.id,
            memory_id=memory_id,
            level=chance.random(),
            at=NOW - timedelta(minutes=chance.randint(-30, 600)),
        )
        for memory_id in chance.sample(ids, len(ids) // 6)
    )
