"""Relate and unrelate nodes of an agent's knowledge graph for a person; update the trust of facts and the evidence of beliefs."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from apps.agents.services.lookup import agent_by_id
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.memories.services.graph.relations import NewRelation, relate, unrelate
from apps.selves.services.alignment import update_trust_of_ends
from apps.selves.services.evidence import record_evidence, withdraw_evidence
from arbor.memory.relations import GraphNode, Relation, TraversedEdge
from arbor.quotations import counted


@dataclass(frozen=True, kw_only=True)
class RelatedNodes:
    """A relation that a person created, and the change of a belief that it led Arbor to propose, in words; empty without one."""

    edge: TraversedEdge
    proposed: str


@dataclass(frozen=True, kw_only=True)
class UnrelatedNodes:
    """The number of relations that a person removed, and the change of a belief that it led Arbor to propose, in words; empty without one."""

    count: int
    proposed: str


def relate_by_person(*, agent_id: UUID, new: NewRelation, actor: str) -> RelatedNodes:
    """Create a relation in the open transaction, with its consequences and its record in the audit log.

    Raises NotFound for a node of another agent.
    """
    edge = relate(agent_id=agent_id, new=new)
    update_trust_of_ends(agent_id=agent_id, ends=new.ends)
    proposed = record_evidence(agent_id=agent_id, edge=edge, source=actor)
    ends = f"{edge.source.kind}:{edge.source.id}", f"{edge.target.kind}:{edge.target.id}"
    record(
        action=AuditAction.OPERATOR_ACT,
        actor=actor,
        agent_id=agent_id,
        message=f"related two things of {agent_by_id(agent_id).name}: {ends[0]} {edge.relation.replace('_', ' ')} {ends[1]}",
        detail={
            "source": ends[0],
            "relation": str(edge.relation),
            "target": ends[1],
            "weight": edge.weight,
            **_proposal(proposed),
        },
    )
    return RelatedNodes(edge=edge, proposed=proposed)


def unrelate_by_person(
    *, agent_id: UUID, source: GraphNode, target: GraphNode, relation: Relation | None, actor: str
) -> UnrelatedNodes:
    """Remove the relations from one node to another in the open transaction, with the consequences.

    None: relations of every kind. The removal of at least one is recorded in the audit log.
    """
    ends = (source, target)
    removed = unrelate(agent_id=agent_id, source=source, target=target, relation=relation)
    update_trust_of_ends(agent_id=agent_id, ends=ends)
    proposed = withdraw_evidence(agent_id=agent_id, ends=ends, source=actor)
    if removed:
        record(
            action=AuditAction.OPERATOR_ACT,
            actor=actor,
            agent_id=agent_id,
            message=f"removed {counted(removed, 'relation')} of {agent_by_id(agent_id).name}",
            detail={
                "source": f"{source.kind}:{source.id}",
                "target": f"{target.kind}:{target.id}",
                "relation": relation.value if relation else "any",
                **_proposal(proposed),
            },
        )
    return UnrelatedNodes(count=removed, proposed=proposed)


def _proposal(proposed: str) -> dict[str, str]:
    """Return the entry of the audit log about a proposed change of a belief; none without one."""
    return {"proposed": proposed} if proposed else {}
