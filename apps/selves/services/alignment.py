"""How well an agent's memories fit what it believes: read from the relations between them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from uuid import UUID

from apps.tenants.statements import fetch
from arbor.memory.relations import Relation
from arbor.selves.alignment import SIGNS, Influence, alignment

# A relation counts from either end: that they contradict is the same for both.
_INFLUENCES = """
SELECT e.memory_id, e.relation, e.weight, b.confidence FROM (
    SELECT source_id AS memory_id, target_id AS belief_id, relation, weight FROM memories_edge
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND source_id = ANY (%(memories)s)
        AND source_kind = 'memory' AND target_kind = 'belief' AND relation = ANY (%(relations)s)
    UNION ALL
    SELECT target_id, source_id, relation, weight FROM memories_edge
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND target_id = ANY (%(memories)s)
        AND target_kind = 'memory' AND source_kind = 'belief' AND relation = ANY (%(relations)s)
) e
JOIN selves_belief b ON b.tenant_id = %(tenant)s AND b.id = e.belief_id
    AND b.agent_id = %(agent)s AND b.status = 'held'
"""


def alignments(*, agent_id: UUID, memory_ids: Sequence[UUID]) -> dict[UUID, float]:
    """Return how well each memory fits what its agent believes, from -1 to 1; one without such relations is left out.

    One statement, in the tenant's transaction.
    """
    if not memory_ids:
        return {}
    found: dict[UUID, list[Influence]] = defaultdict(list)
    rows = fetch(
        _INFLUENCES,
        agent=agent_id,
        memories=list(memory_ids),
        relations=[relation.value for relation in SIGNS],
    )
    for memory_id, relation, weight, confidence in rows:
        found[memory_id].append(Influence(Relation(relation), weight, confidence))
    return {memory_id: alignment(influences) for memory_id, influences in found.items()}
