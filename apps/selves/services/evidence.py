"""Record evidence for beliefs, and propose the changes that follow from the evidence."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from apps.selves.models import Belief, BeliefEvidence
from apps.selves.services.proposals import propose
from apps.tenants.scope import current_tenant
from arbor.memory.relations import GraphNodeKind, TraversedEdge
from arbor.selves.alignment import SIGNS
from arbor.selves.evidence import limited, weigh
from arbor.selves.proposals import MOST_EVIDENCE, NewProposal, ProposalKind, shortened
from arbor.selves.values import BeliefStatus

#: The least change of confidence that is proposed.
LEAST_MOVE = 0.01


def record_evidence(*, agent_id: UUID, tie: TraversedEdge, source: str, now: datetime | None = None) -> str:
    """Record a relation between a memory and a belief as evidence; return a short description of the proposed change.

    Empty for a relation that is no evidence. All evidence since the belief's last test counts and leads
    to one pending proposal, never to a change by itself. Seven statements, none for other relations.
    """
    ends = {tie.source.kind: tie.source.id, tie.target.kind: tie.target.id}
    if tie.relation not in SIGNS or ends.keys() != {GraphNodeKind.MEMORY, GraphNodeKind.BELIEF}:
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
            "supports": SIGNS[tie.relation] > 0,
            "strength": tie.weight,
            "at": now or datetime.now(UTC),
        },
    )
    return _propose(belief, source)


def _propose(belief: Belief, source: str) -> str:
    rows = BeliefEvidence.objects.filter(belief_id=belief.id)
    if belief.tested_at is not None:
        rows = rows.filter(at__gt=belief.tested_at)
    evidence = list(rows.order_by("at"))
    confidence = belief.confidence
    for memory_evidence in evidence:
        confidence = weigh(
            confidence=confidence,
            stability=belief.stability,
            supports=memory_evidence.supports,
            strength=memory_evidence.strength,
        )
    confidence = limited(belief.confidence, confidence)
    if abs(confidence - belief.confidence) < LEAST_MOVE:
        return "the belief stands as it is"
    fors = sum(memory_evidence.supports for memory_evidence in evidence)
    move = "surer" if confidence > belief.confidence else "less sure"
    content = (
        f"{fors} memories speak for it, {len(evidence) - fors} against it: be {move},"
        f" {belief.confidence:.0%} → {confidence:.0%}, that {belief.statement}"
    )
    propose(
        agent_id=belief.agent_id,
        proposals=[
            NewProposal(
                kind=ProposalKind.BELIEF,
                content=shortened(content),
                confidence=min(1.0, 0.5 + abs(confidence - belief.confidence)),
                source=source,
                change={"belief": str(belief.id), "confidence": confidence},
                evidence=[str(memory_evidence.memory_id) for memory_evidence in evidence[-MOST_EVIDENCE:]],
            )
        ],
    )
    return f"proposed to be {move} of the belief"
