"""How well an agent's memories fit what it believes, read from the relations between them, and what that does to them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from apps.memories.models import Memory
from apps.memories.services.store.words import lock_minds
from apps.tenants.statements import fetch
from arbor.memory.details import SemanticDetail, read_detail
from arbor.memory.relations import Relation
from arbor.memory.values import MemoryType
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


_TIED = """
SELECT source_id FROM memories_edge WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s
    AND target_id = %(belief)s AND source_kind = 'memory'
UNION
SELECT target_id FROM memories_edge WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s
    AND source_id = %(belief)s AND target_kind = 'memory'
LIMIT %(most)s
"""
#: Facts that one change of a belief recolours at most; our choice, to bound the act.
MOST_COLOURED = 1_000


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


def colour(*, agent_id: UUID, memory_ids: Sequence[UUID]) -> int:
    """Let facts be trusted by what their agent believes now; return how many are trusted differently.

    In the transaction that is open: by a person's hand or an agent's own act, never by maintenance, which decides nothing.
    """
    # Whoever remembers the same again writes the same columns, by what was read under this lock.
    lock_minds([agent_id])
    rows = Memory.objects.filter(agent_id=agent_id, id__in=memory_ids, type=MemoryType.SEMANTIC)
    facts = list(rows.only("tenant_id", "agent_id", "detail", "trust").order_by("id"))
    aligned = alignments(agent_id=agent_id, memory_ids=[fact.id for fact in facts])
    changed = 0
    for fact in facts:
        detail = read_detail(MemoryType.SEMANTIC, fact.detail)
        assert isinstance(detail, SemanticDetail)
        now = replace(detail, alignment=aligned.get(fact.id, 0.0))
        # Trust that somebody gave, instead of what sources and beliefs come to, stays as it was given.
        derived = math.isclose(fact.trust, detail.trust, abs_tol=1e-6)
        if derived and now.alignment != detail.alignment:
            Memory.objects.filter(id=fact.id).update(trust=now.trust, detail=now.to_json())
            changed += 1
    return changed


def colour_tied(*, agent_id: UUID, belief_id: UUID) -> int:
    """Let the facts that speak for a belief or against it be trusted by how it stands now; return how many changed."""
    # First of all: what another ties to it until then is seen here, and what comes later sees how the belief stands.
    lock_minds([agent_id])
    tied = fetch(_TIED, agent=agent_id, belief=belief_id, most=MOST_COLOURED)
    return colour(agent_id=agent_id, memory_ids=[memory_id for (memory_id,) in tied])
