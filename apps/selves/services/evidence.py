"""Record evidence for beliefs, and propose the changes that follow from the evidence."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from apps.memories.models import Edge, Memory
from apps.selves.models import Belief, BeliefEvidence
from apps.selves.services.alignment import update_fact_trust
from apps.selves.services.proposals import expire_unfounded, propose
from apps.tenants.scope import current_tenant
from arbor.memory.details import SemanticDetail, read_detail
from arbor.memory.importance import OPERATOR
from arbor.memory.relations import GraphNode, GraphNodeKind, Relation, TraversedEdge
from arbor.memory.trust import Source
from arbor.memory.values import MemoryStatus, MemoryType
from arbor.quotations import counted
from arbor.selves.evidence import SIGNS, limit_confidence, revise_confidence
from arbor.selves.proposals import MAX_EVIDENCE, NewProposal, ProposalKind, shorten_proposal
from arbor.selves.values import BeliefStatus

#: The least change of confidence that is proposed.
MIN_MOVE = 0.01
_UNRATED = Source(kind="unknown", reference="unknown")


def record_evidence(*, agent_id: UUID, edge: TraversedEdge, source: str, now: datetime | None = None) -> str:
    """Record a relation between a memory and a belief as evidence; return a short description of the proposed change.

    The description is empty for a relation that is no evidence, and if nothing is proposed. All evidence since the belief's last test counts and leads
    to one pending proposal, never to a change by itself. Seven statements; none for other relations.
    """
    ends = {edge.source.kind: edge.source.id, edge.target.kind: edge.target.id}
    if edge.relation not in SIGNS or ends.keys() != {GraphNodeKind.MEMORY, GraphNodeKind.BELIEF}:
        return ""
    belief: Belief | None = (
        Belief.objects.filter(agent_id=agent_id, id=ends[GraphNodeKind.BELIEF])
        .exclude(status=BeliefStatus.DROPPED)
        .first()
    )
    if belief is None:
        return ""
    BeliefEvidence.objects.update_or_create(
        tenant_id=current_tenant(),
        belief_id=belief.id,
        memory_id=ends[GraphNodeKind.MEMORY],
        defaults={
            "supports": SIGNS[edge.relation] > 0,
            "strength": edge.weight,
            "at": now or datetime.now(UTC),
        },
    )
    return _propose(belief, source)


def record_new_evidence(*, agent_id: UUID, memory_ids: Sequence[UUID]) -> int:
    """Update the trust of facts that a person gave, and record their relations to beliefs as evidence.

    Return the number of facts whose trust changed. Runs in the open transaction that stored the relations.
    """
    changed = update_fact_trust(agent_id=agent_id, memory_ids=memory_ids)
    rows = Edge.objects.filter(
        agent_id=agent_id, source_id__in=memory_ids, target_kind=GraphNodeKind.BELIEF, relation__in=SIGNS
    )
    for row in rows.order_by("id"):
        edge = TraversedEdge(
            source=GraphNode(GraphNodeKind.MEMORY, row.source_id),
            target=GraphNode(GraphNodeKind.BELIEF, row.target_id),
            relation=Relation(row.relation),
            weight=row.weight,
        )
        record_evidence(agent_id=agent_id, edge=edge, source=row.origin or OPERATOR)
    return changed


def withdraw_evidence(*, agent_id: UUID, ends: Collection[GraphNode], source: str) -> str:
    """Delete a memory's evidence about a belief once no relation of the two is evidence; return a short description of the proposed change.

    `ends` are the memory and the belief. The description is empty if nothing was deleted or is proposed. What remains of the evidence leads to a proposal,
    new or renewed, with this source, or expires the pending one; so the caller has locked the agent's schedule.
    """
    ids = {end.kind: end.id for end in ends}
    if ids.keys() != {GraphNodeKind.MEMORY, GraphNodeKind.BELIEF}:
        return ""
    both = list(ids.values())
    edges = Edge.objects.filter(agent_id=agent_id, source_id__in=both, target_id__in=both, relation__in=SIGNS)
    if edges.exists():
        return ""
    evidence = BeliefEvidence.objects.filter(
        belief_id=ids[GraphNodeKind.BELIEF], belief__agent_id=agent_id, memory_id=ids[GraphNodeKind.MEMORY]
    )
    deleted, _ = evidence.delete()
    if not deleted:
        return ""
    belief = Belief.objects.get(agent_id=agent_id, id=ids[GraphNodeKind.BELIEF])
    return "" if belief.status == BeliefStatus.DROPPED else _propose(belief, source)


def _propose(belief: Belief, source: str) -> str:
    """Propose the change of a belief that its evidence speaks for, or expire the pending proposal; describe the proposed change."""
    # An archived memory is no evidence any more.
    rows = BeliefEvidence.objects.filter(belief_id=belief.id, memory__status=MemoryStatus.ACTIVE)
    if belief.tested_at is not None:
        rows = rows.filter(at__gt=belief.tested_at)
    # The evidence of one heartbeat has the same time.
    evidence = list(rows.select_related("memory").order_by("at", "id"))
    confidence = belief.confidence
    for memory_evidence in evidence:
        confidence = revise_confidence(
            confidence=confidence,
            stability=belief.stability,
            supports=memory_evidence.supports,
            strength=memory_evidence.strength * _credibility(memory_evidence.memory),
        )
    confidence = limit_confidence(belief.confidence, confidence)
    if abs(confidence - belief.confidence) < MIN_MOVE:
        # Evidence that has arrived or gone since may have outweighed that of an earlier proposal.
        expire_unfounded(
            agent_id=belief.agent_id,
            belief_id=belief.id,
            reason="the evidence does not speak for a change any more",
        )
        return ""
    supporting = sum(memory_evidence.supports for memory_evidence in evidence)
    speak = counted(supporting, "memory speaks", "memories speak")
    move = "surer" if confidence > belief.confidence else "less sure"
    content = (
        f"{speak} for it, {len(evidence) - supporting} against it: be {move},"
        f" {belief.confidence:.0%} → {confidence:.0%}, that {belief.statement}"
    )
    propose(
        agent_id=belief.agent_id,
        proposals=[
            NewProposal(
                kind=ProposalKind.BELIEF,
                content=shorten_proposal(content),
                confidence=min(1.0, 0.5 + abs(confidence - belief.confidence)),
                source=source,
                change={"belief": str(belief.id), "confidence": confidence},
                evidence=[str(memory_evidence.memory_id) for memory_evidence in evidence[-MAX_EVIDENCE:]],
            )
        ],
    )
    return f"proposed to be {move} of the belief"


def _credibility(memory: Memory) -> float:
    """Return the weight of a memory as evidence, 0 to 1: its trust; for a fact, the trust before beliefs raised or lowered it.

    Otherwise a belief, which lowers the trust of facts that contradict it, would protect itself. A fact without a source counts
    as one whose source nobody has rated.
    """
    if memory.type != MemoryType.SEMANTIC:
        return memory.trust
    fact = read_detail(MemoryType.SEMANTIC, memory.detail)
    assert isinstance(fact, SemanticDetail)
    # Trust that was set explicitly stays.
    if not math.isclose(memory.trust, fact.trust, abs_tol=1e-6):
        return memory.trust
    return replace(fact, alignment=0.0, sources=fact.sources or (_UNRATED,)).trust
