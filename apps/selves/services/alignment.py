"""Compute the alignment of memories with beliefs, and their resonance with the identity, from their relations.

The trust of facts follows their alignment.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import batched
from typing import NamedTuple
from uuid import UUID

from apps.memories.models import Edge, Memory
from apps.memories.services.store.term_counts import lock_minds
from apps.selves.models import Belief, IdentityAspect
from arbor.memory.details import SemanticDetail, read_detail
from arbor.memory.relations import GraphNode, GraphNodeKind, Relation
from arbor.memory.values import MemoryType
from arbor.selves.evidence import SIGNS, AspectInfluence, Influence, alignment, resonance
from arbor.selves.values import BeliefStatus

#: The facts that one statement reads or updates after a change of a belief.
BATCH = 1_000


def alignments(*, agent_id: UUID, memory_ids: Sequence[UUID]) -> dict[UUID, float]:
    """Return each memory's alignment with beliefs, -1 to 1; memories without such relations are left out.

    Two queries.
    """
    if not memory_ids:
        return {}
    related = [
        by_memory
        for by_memory in _relations(agent_id, memory_ids, GraphNodeKind.BELIEF)
        if by_memory.relation in SIGNS
    ]
    confidences = dict(
        Belief.objects.filter(
            agent_id=agent_id, id__in={relation.end_id for relation in related}, status=BeliefStatus.HELD
        ).values_list("id", "confidence")
    )
    influences: dict[UUID, list[Influence]] = defaultdict(list)
    for memory_id, belief_id, relation, weight in related:
        if belief_id in confidences:
            influences[memory_id].append(Influence(Relation(relation), weight, confidences[belief_id]))
    return {memory_id: alignment(by_memory) for memory_id, by_memory in influences.items()}


def update_fact_trust(*, agent_id: UUID, memory_ids: Sequence[UUID]) -> int:
    """Update the trust of facts by the agent's present beliefs; return how many changed.

    In the open transaction, by an act of a person or the agent, never by maintenance.
    """
    # A repeated memory writes the same columns under this lock.
    lock_minds([agent_id])
    rows = Memory.objects.filter(agent_id=agent_id, id__in=memory_ids, type=MemoryType.SEMANTIC)
    facts = list(rows.only("tenant_id", "agent_id", "detail", "trust").order_by("id"))
    aligned = alignments(agent_id=agent_id, memory_ids=[fact.id for fact in facts])
    changed = []
    for fact in facts:
        detail = read_detail(MemoryType.SEMANTIC, fact.detail)
        assert isinstance(detail, SemanticDetail)
        now = replace(detail, alignment=aligned.get(fact.id, 0.0))
        # Trust that was set explicitly stays.
        derived = math.isclose(fact.trust, detail.trust, abs_tol=1e-6)
        if derived and now.alignment != detail.alignment:
            fact.trust, fact.detail = now.trust, now.to_json()
            changed.append(fact)
    Memory.objects.bulk_update(changed, ["trust", "detail"])
    return len(changed)


def update_trust_of_ends(*, agent_id: UUID, ends: Collection[GraphNode]) -> int:
    """Update the trust of a fact whose relation to a belief was created or deleted in the open transaction.

    Callers that create or delete relations call this afterwards. At most five statements for a pair with a belief, else none.
    """
    if all(end.kind is not GraphNodeKind.BELIEF for end in ends):
        return 0
    return update_fact_trust(
        agent_id=agent_id, memory_ids=[end.id for end in ends if end.kind is GraphNodeKind.MEMORY]
    )


def update_related_trust(*, agent_id: UUID, belief_id: UUID) -> int:
    """Update the trust of all facts related to a belief by its present status; return how many changed.

    Two statements, and at most five for each batch of facts.
    """
    # Lock first: this transaction reads the relations that were committed before, and later ones see the belief's new status.
    lock_minds([agent_id])
    relations = Edge.objects.filter(agent_id=agent_id)
    outward = relations.filter(target_id=belief_id, source_kind=GraphNodeKind.MEMORY).values_list(
        "source_id", flat=True
    )
    inward = relations.filter(source_id=belief_id, target_kind=GraphNodeKind.MEMORY).values_list(
        "target_id", flat=True
    )
    return sum(
        update_fact_trust(agent_id=agent_id, memory_ids=memory_ids)
        for memory_ids in batched(sorted(outward.union(inward)), BATCH, strict=False)
    )


@dataclass(frozen=True, kw_only=True)
class ResonantAspect:
    """An aspect related to a memory, and its share of the memory's resonance, -1 to 1."""

    aspect_id: UUID
    content: str
    relation: Relation
    share: float


@dataclass(frozen=True, kw_only=True)
class IdentityResonance:
    """A memory's resonance with an identity, -1 to 1, and its aspects, the strongest first."""

    score: float
    aspects: tuple[ResonantAspect, ...]


def resonance_of(*, agent_id: UUID, memory_id: UUID) -> IdentityResonance:
    """Compute a memory's resonance with its agent's aspects. Two queries.

    Empty for a memory without such relations, or of another agent.
    """
    related = _relations(agent_id, [memory_id], GraphNodeKind.ASPECT)
    aspects = IdentityAspect.objects.filter(agent_id=agent_id, status=BeliefStatus.HELD).in_bulk(
        [relation.end_id for relation in related]
    )
    pairs = [(relation, aspects[relation.end_id]) for relation in related if relation.end_id in aspects]
    pairs.sort(key=lambda pair: (-pair[0].weight * pair[1].stability, pair[1].id, pair[0].relation))
    influences = [
        AspectInfluence(Relation(relation.relation), relation.weight, aspect.stability)
        for relation, aspect in pairs
    ]
    return IdentityResonance(
        score=resonance(influences),
        aspects=tuple(
            ResonantAspect(
                aspect_id=aspect.id,
                content=aspect.content,
                relation=influence.relation,
                share=influence.share,
            )
            for (_, aspect), influence in zip(pairs, influences, strict=True)
        ),
    )


class _Related(NamedTuple):
    memory_id: UUID
    end_id: UUID
    relation: str
    weight: float


def _relations(agent_id: UUID, memory_ids: Sequence[UUID], kind: GraphNodeKind) -> list[_Related]:
    """Read the relations of memories with beliefs or aspects; a relation counts from either end. One query."""
    relations = Edge.objects.filter(agent_id=agent_id)
    outward = relations.filter(source_id__in=memory_ids, source_kind=GraphNodeKind.MEMORY, target_kind=kind)
    inward = relations.filter(target_id__in=memory_ids, target_kind=GraphNodeKind.MEMORY, source_kind=kind)
    rows = outward.values_list("source_id", "target_id", "relation", "weight").union(
        inward.values_list("target_id", "source_id", "relation", "weight"), all=True
    )
    return [_Related(*row) for row in rows]
