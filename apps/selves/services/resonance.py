"""Compute the resonance of memories with the agent's identity from their relations."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from apps.tenants.statements import fetch
from arbor.memory.relations import Relation
from arbor.selves.resonance import Bearing, resonance

# A relation counts from either end.
_BEARINGS = """
SELECT a.id, a.content, e.relation, e.weight, a.stability FROM (
    SELECT target_id AS aspect_id, relation, weight FROM memories_edge
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND source_id = %(memory)s
        AND source_kind = 'memory' AND target_kind = 'aspect'
    UNION ALL
    SELECT source_id, relation, weight FROM memories_edge
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND target_id = %(memory)s
        AND target_kind = 'memory' AND source_kind = 'aspect'
) e
JOIN selves_identityaspect a ON a.tenant_id = %(tenant)s AND a.id = e.aspect_id
    AND a.agent_id = %(agent)s AND a.status = 'held'
ORDER BY e.weight * a.stability DESC, a.id, e.relation
"""


@dataclass(frozen=True, kw_only=True)
class Ringing:
    """An aspect related to a memory, and its share of the memory's resonance, -1 to 1."""

    aspect_id: UUID
    content: str
    relation: Relation
    share: float


@dataclass(frozen=True, kw_only=True)
class Resonance:
    """A memory's resonance with an identity, -1 to 1, and its aspects, the strongest first."""

    score: float
    aspects: tuple[Ringing, ...]


def resonance_of(*, agent_id: UUID, memory_id: UUID) -> Resonance:
    """Compute a memory's resonance with its agent's aspects. One statement, in the tenant's transaction.

    Empty for a memory without such relations, or of another agent.
    """
    rows = fetch(_BEARINGS, agent=agent_id, memory=memory_id)
    bearings = [Bearing(Relation(relation), weight, stability) for _, _, relation, weight, stability in rows]
    return Resonance(
        score=resonance(bearings),
        aspects=tuple(
            Ringing(aspect_id=row[0], content=row[1], relation=bearing.relation, share=bearing.share)
            for row, bearing in zip(rows, bearings, strict=True)
        ),
    )
