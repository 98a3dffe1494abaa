"""Relate nodes of the knowledge graph by hand."""

from __future__ import annotations

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.memories.services.graph.relations import NewRelation, relate, unrelate
from apps.selves.services.alignment import update_trust_of_ends
from arbor.memory.relations import Relation
from config.cli.kit import Output
from config.cli.lookup import find_node
from config.cli.memory.graph import tie_text, tie_value
from config.cli.tenancy import ChosenAgent, actor, in_agent_transaction


@in_agent_transaction
def relate_nodes(
    agent: ChosenAgent, *, source: str, relation: str, target: str, weight: float, note: str
) -> Output:
    """Relate two nodes; each is ID, KIND:ID or concept:NAME."""
    new = NewRelation(
        source=find_node(agent, source),
        target=find_node(agent, target),
        relation=Relation(relation),
        weight=weight,
        note=note,
        origin=actor(),
    )
    tie = relate(agent_id=agent.id, new=new)
    update_trust_of_ends(agent_id=agent.id, ends=new.ends)
    record(
        action=AuditAction.OPERATOR_ACT,
        actor=actor(),
        agent_id=agent.id,
        message=f"related two things of {agent.name}: {tie_text(tie)}",
        detail=tie_value(tie),
    )
    return Output({"agent": agent.name, **tie_value(tie)}, people=f"{tie_text(tie)}.")


@in_agent_transaction
def unrelate_nodes(agent: ChosenAgent, *, source: str, target: str, relation: str | None) -> Output:
    """Remove the relations from one node to another, in that direction."""
    ends = (find_node(agent, source), find_node(agent, target))
    taken = unrelate(
        agent_id=agent.id,
        source=ends[0],
        target=ends[1],
        relation=Relation(relation) if relation else None,
    )
    update_trust_of_ends(agent_id=agent.id, ends=ends)
    if taken:
        record(
            action=AuditAction.OPERATOR_ACT,
            actor=actor(),
            agent_id=agent.id,
            message=f"took back {taken} relations of {agent.name}",
            detail={"source": str(ends[0].id), "target": str(ends[1].id), "relation": relation or "any"},
        )
    return Output({"agent": agent.name, "taken_back": taken}, people=f"Taken back: {taken}.")
