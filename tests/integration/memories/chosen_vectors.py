"""Memories with vectors that a test chooses, and their expected neighborhoods."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import numpy as np
import numpy.typing as npt
from django.conf import settings
from django.db import connections

from apps.agents.models import Agent
from apps.memories.models import Edge, Episode, Memory, Upkeep
from apps.memories.services.graph.neighborhoods import refresh_batch
from apps.tenants.scope import APP, tenant_transaction
from arbor.memory.neighborhood import neighborhood
from arbor.memory.relations import GraphNodeKind, Relation
from tests.factories.memories import MemoryFactory
from tests.integration.memories.conftest import NOON

DIMENSION = 16


def clustered_vectors(count: int, *, seed: int = 1, spread: float = 0.5) -> npt.NDArray[np.float32]:
    """Return unit vectors (count, DIMENSION) around four random centers, so that some are near to each other."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(4, DIMENSION))
    vectors = centers[np.arange(count) % 4] + spread * rng.normal(size=(count, DIMENSION))
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / lengths, dtype=np.float16).astype(np.float32)


def store_with_vectors(
    agent: Agent,
    vectors: Sequence[npt.NDArray[np.float32] | None] | npt.NDArray[np.float32],
    *,
    first: int = 0,
) -> list[UUID]:
    """Store memories with these vectors and stale neighborhoods; their texts are numbered from `first`. Return their ids."""
    with tenant_transaction(agent.tenant_id):
        memories = [
            MemoryFactory.create(
                agent=agent, content=f"memory {first + number}", position=first + number, occurred_at=NOON
            ).id
            for number in range(len(vectors))
        ]
        for memory, vector in zip(memories, vectors, strict=True):
            text = None if vector is None else f"[{','.join(map(str, vector))}]"
            with connections[APP].cursor() as cursor:
                cursor.execute(
                    "UPDATE memories_memory SET embedding = %s::halfvec WHERE tenant_id = %s AND id = %s",
                    [text, agent.tenant_id, memory],
                )
        known = set(Upkeep.objects.filter(memory_id__in=memories).values_list("memory_id", flat=True))
        Upkeep.objects.bulk_create(
            Upkeep(tenant_id=agent.tenant_id, agent_id=agent.id, memory_id=memory)
            for memory in memories
            if memory not in known
        )
    return memories


def store_in_episode(agent: Agent, memory_ids: Sequence[UUID]) -> None:
    """Create an episode of these memories, in this order."""
    with tenant_transaction(agent.tenant_id):
        episode = Episode.objects.create(
            tenant_id=agent.tenant_id,
            agent_id=agent.id,
            session=str(memory_ids[0]),
            started_at=NOON,
            last_at=NOON,
            size=len(memory_ids),
        )
        for place, memory_id in enumerate(memory_ids, start=1):
            Memory.objects.filter(id=memory_id).update(episode_id=episode.id, sequence=place)


def store_edge(
    agent: Agent,
    source: UUID,
    target: UUID,
    *,
    kinds: tuple[GraphNodeKind, GraphNodeKind] = (GraphNodeKind.MEMORY, GraphNodeKind.MEMORY),
    relation: Relation = Relation.ASSOCIATED,
) -> None:
    """Store an edge without marking neighborhoods stale."""
    with tenant_transaction(agent.tenant_id):
        Edge.objects.create(
            tenant_id=agent.tenant_id,
            agent_id=agent.id,
            source_kind=kinds[0],
            source_id=source,
            target_kind=kinds[1],
            target_id=target,
            relation=relation,
        )


def refresh_all(agent: Agent, *, steps: int = 50) -> int:
    """Refresh until no neighborhood is stale; return the number of neighborhoods computed."""
    refreshed = 0
    for _ in range(steps):
        in_step = refresh_batch(agent.tenant_id, agent.id)
        if not in_step:
            return refreshed
        refreshed += in_step
    raise AssertionError(f"neighborhoods are still stale after {steps} steps")


def upkeep_of(agent: Agent) -> dict[UUID, Upkeep]:
    """Return the agent's maintenance flags and neighborhoods (`Upkeep`), by memory."""
    with tenant_transaction(agent.tenant_id):
        return {upkeep.memory_id: upkeep for upkeep in Upkeep.objects.filter(agent_id=agent.id)}


def neighbors_of(agent: Agent, memory_id: UUID) -> dict[UUID, float]:
    """Return the stored neighborhood of a memory."""
    stored = upkeep_of(agent)[memory_id].neighbors or {}
    return {UUID(neighbor): weight for neighbor, weight in stored.items()}


def stale_of(agent: Agent) -> set[UUID]:
    """Return the memories whose neighborhood is stale."""
    return {memory_id for memory_id, row in upkeep_of(agent).items() if row.stale}


def expected_neighborhoods(agent: Agent) -> dict[UUID, dict[UUID, float]]:
    """Compute the neighborhood of each active memory by its definition, without the service."""
    with tenant_transaction(agent.tenant_id):
        rows = list(Memory.objects.filter(agent_id=agent.id, status="active").order_by("id"))
        edges = list(Edge.objects.filter(agent_id=agent.id).values_list("source_id", "target_id"))
    related: dict[UUID, set[UUID]] = {}
    for source, target in edges:
        related.setdefault(source, set()).add(target)
        related.setdefault(target, set()).add(source)
    active = {row.id for row in rows}
    neighborhoods = {}
    for row in rows:
        one_hop = related.get(row.id, set())
        two_hops = {far for near in one_hop for far in related[near]} - one_hop - {row.id}
        hops = dict.fromkeys(one_hop & active, 1) | dict.fromkeys(two_hops & active, 2)
        neighborhoods[row.id] = neighborhood(
            hops=hops,
            similar=_similar(row, rows),
            beside={
                other.id
                for other in rows
                if other.id != row.id
                and row.episode_id is not None
                and other.episode_id == row.episode_id
                and abs(other.sequence - row.sequence) <= 3
            },
        )
    return neighborhoods


def _similar(row: Memory, rows: Sequence[Memory]) -> dict[UUID, float]:
    if row.embedding is None:
        return {}
    own = np.asarray(row.embedding, dtype=np.float32)
    cosines = []
    for other in rows:
        if other.id != row.id and other.embedding is not None:
            vector = np.asarray(other.embedding, dtype=np.float32)
            cosine = float(own @ vector / np.linalg.norm(own) / np.linalg.norm(vector))
            cosines.append((round(cosine, 4), other.id))
    nearest = sorted(cosines, key=lambda pair: (-pair[0], pair[1]))[:10]
    return {memory_id: cosine for cosine, memory_id in nearest if cosine > settings.ARBOR_NEIGHBOR_SIMILARITY}
