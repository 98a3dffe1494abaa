"""What is read of an agent's mind to put its clusters in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from apps.memories.services.embedding.minds import model_of
from apps.memories.services.embedding.vectors import decoded
from apps.tenants.statements import fetch
from arbor.embedding.models import EmbeddingModel
from arbor.memory.cluster_links import BY_RELATION, Tie
from arbor.memory.clusters import Vectors, check_vectors
from arbor.memory.keywords import name_of
from arbor.memory.relations import Relation

_MIND = "SELECT clustered_at FROM memories_mind WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s"
_MEMORIES = """
SELECT id, halfvec_send(embedding), importance, emotional_valence, occurred_at FROM memories_memory
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND status = 'active' AND embedding IS NOT NULL
    AND (expires_at IS NULL OR expires_at > now()) AND vector_dims(embedding) = %(dimension)s
    AND l2_norm(embedding) > 0
"""
_CLUSTERS = """
SELECT id, name, keywords::json, stale FROM memories_cluster WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s
"""
_MEMBERS = """
SELECT m.cluster_id, m.memory_id, m.strength FROM memories_clustermember m
JOIN memories_cluster c ON c.tenant_id = m.tenant_id AND c.id = m.cluster_id
WHERE m.tenant_id = %(tenant)s AND c.agent_id = %(agent)s
"""
_TIES = """
SELECT source_id, target_id, relation, weight FROM memories_edge
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND source_kind = 'memory' AND target_kind = 'memory'
    AND relation = ANY(%(relations)s::text[])
"""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A cluster as it was read."""

    name: str
    keywords: tuple[str, ...]
    stale: bool
    members: Mapping[UUID, float]

    @property
    def named(self) -> bool:
        """Whether somebody named it: it is not called by its keywords."""
        return self.name != name_of(self.keywords)


@dataclass(frozen=True, kw_only=True)
class Order:
    """What is read of an agent's mind to put its clusters in order."""

    agent_id: UUID
    model: EmbeddingModel
    clustered_at: datetime | None
    ids: Sequence[UUID]
    vectors: Vectors
    #: Importance, valence and time by memory.
    traits: Mapping[UUID, tuple[float, float, datetime]]
    standing: Mapping[UUID, Standing]
    ties: Sequence[Tie]

    @classmethod
    def read(cls, agent_id: UUID) -> Order | None:
        """Read it in the open transaction; None for an agent that has no mind. Six statements."""
        mind = fetch(_MIND, agent=agent_id)
        if not mind:
            return None
        model = model_of(agent_id)
        rows = fetch(_MEMORIES, agent=agent_id, dimension=model.dimension)
        members: dict[UUID, dict[UUID, float]] = {}
        for cluster_id, memory_id, strength in fetch(_MEMBERS, agent=agent_id):
            members.setdefault(cluster_id, {})[memory_id] = strength
        ids, vectors = decoded([row[:2] for row in rows], len(rows[0][1])) if rows else ([], [[1.0]])
        return cls(
            agent_id=agent_id,
            model=model,
            clustered_at=mind[0][0],
            ids=ids,
            vectors=check_vectors(vectors)[: len(ids)],
            traits={row[0]: row[2:] for row in rows},
            standing={
                row[0]: Standing(
                    name=row[1], keywords=tuple(row[2]), stale=row[3], members=members.get(row[0], {})
                )
                for row in fetch(_CLUSTERS, agent=agent_id)
            },
            ties=[
                Tie(source=row[0], target=row[1], relation=Relation(row[2]), weight=row[3])
                for row in fetch(
                    _TIES, agent=agent_id, relations=[relation.value for relation in BY_RELATION]
                )
            ],
        )
