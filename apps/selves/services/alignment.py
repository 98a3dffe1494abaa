"""Compute the alignment of memories with beliefs from their relations, and update the trust of facts by it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from uuid import UUID

from apps.memories.models import Memory
from apps.memories.services.store.term_counts import lock_minds
from apps.tenants.statements import fetch
from arbor.memory.details import SemanticDetail, read_detail
from arbor.memory.relations import GraphNode, GraphNodeKind, Relation
from arbor.memory.values import MemoryType
from arbor.selves.alignment import SIGNS, Influence, alignment

# A relation counts from either end: a contradiction is symmetric.
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
#: The most facts whose trust one change of a belief updates.
MOST_RETRUSTED = 1_000


def alignments(*, agent_id: UUID, memory_ids: Sequence[UUID]) -> dict[UUID, float]:
    """Return each memory's alignment with beliefs, -1 to 1; memories without such relations are left out.

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
    """Update the trust of facts by the agent's present beliefs; return how many changed.

    In the open transaction, by an act of a person or the agent, never by maintenance.
    """
    # A repeated memory writes the same columns under this lock.
    lock_minds([agent_id])
    rows = Memory.objects.filter(agent_id=agent_id, id__in=memory_ids, type=MemoryType.SEMANTIC)
    facts = list(rows.only("tenant_id", "agent_id", "detail", "trust").order_by("id"))
    aligned = alignments(agent_id=agent_id, memory_ids=[fact.id for fact in facts])
    changed = 0
    for fact in facts:
        detail = read_detail(MemoryType.SEMANTIC, fact.detail)
        assert isinstance(detail, SemanticDetail)
        now = replace(detail, alignment=aligned.get(fact.id, 0.0))
        # Trust that was set explicitly stays.
        derived = math.isclose(fact.trust, detail.trust, abs_tol=1e-6)
        if derived and now.alignment != detail.alignment:
            Memory.objects.filter(id=fact.id).update(trust=now.trust, detail=now.to_json())
            changed += 1
    return changed


def update_trust_of_ends(*, agent_id: UUID, ends: Collection[GraphNode]) -> int:
    """Update the trust of a fact whose relation to a belief was made or deleted in the open transaction.

    Whoever relates things of an agent calls this afterwards. Three statements for a pair with a belief, else none.
    """
    if all(end.kind is not GraphNodeKind.BELIEF for end in ends):
        return 0
    return colour(agent_id=agent_id, memory_ids=[end.id for end in ends if end.kind is GraphNodeKind.MEMORY])


def update_related_trust(*, agent_id: UUID, belief_id: UUID) -> int:
    """Update the trust of the facts related to a belief by its present status; return how many changed."""
    # Lock first: relations committed before are read here, and later ones see the belief's new status.
    lock_minds([agent_id])
    tied = fetch(_TIED, agent=agent_id, belief=belief_id, most=MOST_RETRUSTED)
    return colour(agent_id=agent_id, memory_ids=[memory_id for (memory_id,) in tied])
