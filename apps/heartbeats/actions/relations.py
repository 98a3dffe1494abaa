"""The action `connect`: relate two nodes of the knowledge graph."""

from __future__ import annotations

from apps.heartbeats.actions.context import ActionContext
from apps.memories.services.graph.relations import connect
from apps.selves.services.alignment import update_trust_of_ends
from apps.selves.services.evidence import record_evidence
from arbor.heartbeat.decision import Decision
from arbor.heartbeat.results import ActionOutcome, ActionResult, action_result
from arbor.memory.relations import NOTE_LENGTH, GraphNodeKind, Relation


def connect_nodes(context: ActionContext, decision: Decision) -> ActionResult:
    """Connect two nodes; a relation that supports or contradicts a belief counts as evidence."""
    params = decision.params
    relation = connect(
        agent_id=context.agent_id,
        source_id=params["from_id"],
        target_id=params["to_id"],
        relation=Relation(params["relation"]),
        note=decision.reasoning[:NOTE_LENGTH],
        origin=context.source,
    )
    update_trust_of_ends(agent_id=context.agent_id, ends=(relation.source, relation.target))
    memories = [end.id for end in (relation.source, relation.target) if end.kind is GraphNodeKind.MEMORY]
    proposed = record_evidence(
        agent_id=context.agent_id, edge=relation, source=context.source, now=context.now
    )
    source, target = relation.source.kind, relation.target.kind
    other = "another" if target is source else _with_article(target)
    summary = f"connected {_with_article(source)} with {other} as {relation.relation}{f'; {proposed}' if proposed else ''}"
    return action_result(decision, ActionOutcome.SUCCESS, summary, memories)


def _with_article(kind: GraphNodeKind) -> str:
    return f"an {kind}" if kind is GraphNodeKind.ASPECT else f"a {kind}"
