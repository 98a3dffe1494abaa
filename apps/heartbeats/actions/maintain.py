"""The action `maintain`: show a memory, belief or cluster, or apply the agent's verdict about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any
from uuid import UUID

from apps.goals.services.goals import move_links
from apps.heartbeats.actions.context import ActionContext
from apps.memories.services.clusters import clusters
from apps.memories.services.clusters.clusters import cluster_members
from apps.memories.services.graph.relations import id_of
from apps.memories.services.graph.traversal import find_connected
from apps.memories.services.retention.archive import archive
from apps.memories.services.store import revision
from apps.memories.services.store.provenance import require_evidence
from apps.selves.services.proposals import belief_of, confirm_belief, revise_belief
from arbor.errors import Invalid
from arbor.heartbeat.decision import Decision
from arbor.heartbeat.params.outward import MaintainTarget, MaintainVerdict
from arbor.heartbeat.results import QUOTE_LENGTH, ActionOutcome, ActionResult, action_result
from arbor.heartbeat.steps.new_memories import vectors_of, with_source_of_conclusion
from arbor.memory.detail_text import PRACTICE_FIELD, detail_lines
from arbor.memory.relations import GraphNode, GraphNodeKind
from arbor.memory.values import NewMemory
from arbor.quotations import quoted, shorten
from arbor.selves.values import BeliefRevision, BeliefStatus

#: The most neighbors shown with a memory or belief, or members with a cluster, and the most characters shown of a memory.
MAX_NEIGHBORS = 8
MAX_SHOWN_LENGTH = 1_500
#: The fields of a memory's detail that list earlier wordings: a revision has new words, so it does not copy them.
_WORDING_FIELDS = ("wordings", "wordings_more")


def maintain(context: ActionContext, decision: Decision) -> ActionResult:
    """Show the target with its neighbors, or apply the agent's verdict about it; each change is recorded."""
    view, judge = _BY_TARGET[MaintainTarget(decision.params["target"])]
    return (view if decision.params["verdict"] is None else judge)(context, decision)


def _view_memory(context: ActionContext, decision: Decision) -> ActionResult:
    memory_id = id_of(decision.params["id"])
    memory = revision.memory_of(agent_id=context.agent_id, memory_id=memory_id)
    sources = [
        source.get("reference", "") for source in memory.detail.get("sources", []) if isinstance(source, dict)
    ]
    lines = [
        f"memory {memory_id}, {memory.type}, of {memory.occurred_at:%Y-%m-%d}",
        f"importance {memory.importance:.2f}, trust {memory.trust:.2f}"
        + (f", from {', '.join(sources)}" if sources else ""),
        shorten(memory.content, MAX_SHOWN_LENGTH),
        *detail_lines(memory.type, memory.detail | {PRACTICE_FIELD: memory.practice}),
        *_neighbor_lines(context, GraphNode(GraphNodeKind.MEMORY, memory_id)),
    ]
    return _shown(decision, lines, memory.content, [memory_id])


def _view_belief(context: ActionContext, decision: Decision) -> ActionResult:
    belief = belief_of(agent_id=context.agent_id, belief_id=id_of(decision.params["id"]))
    lines = [
        f"belief {belief.id}, {belief.category}, {belief.confidence:.0%} sure, {belief.status}",
        belief.statement,
        *_neighbor_lines(context, GraphNode(GraphNodeKind.BELIEF, belief.id)),
    ]
    return _shown(decision, lines, belief.statement)


def _view_cluster(context: ActionContext, decision: Decision) -> ActionResult:
    cluster_id, name = clusters.find_cluster(agent_id=context.agent_id, named=decision.params["id"])
    members = cluster_members(cluster_id=cluster_id, limit=MAX_NEIGHBORS)
    lines = [
        f"cluster {cluster_id}: {name}",
        *(
            f"- [{member.memory_id}] ({member.strength:.2f}) {shorten(member.content, QUOTE_LENGTH)}"
            for member in members
        ),
    ]
    return _shown(decision, lines, name, [member.memory_id for member in members])


def _judge_memory(context: ActionContext, decision: Decision) -> ActionResult:
    params, reason = decision.params, decision.params["reason"]
    memory_id = id_of(params["id"])
    # Checks that the memory is the agent's: archiving checks only the tenant.
    memory = revision.memory_of(agent_id=context.agent_id, memory_id=memory_id)
    text = shorten(memory.content, QUOTE_LENGTH)
    change: dict[str, Any] = {
        "agent_id": context.agent_id,
        "memory_id": memory_id,
        "reason": reason,
        "actor": context.actor,
    }
    match MaintainVerdict(params["verdict"]):
        case MaintainVerdict.KEEP:
            revision.confirm(**change)
            summary = f"kept a memory as it is: {text}"
        case MaintainVerdict.RETIRE if memory.pinned_at:
            raise Invalid(f"memory {memory_id} is pinned: a person decides when it goes")
        case MaintainVerdict.RETIRE:
            archive(memory_ids=[memory_id], reason=reason, actor=context.actor)
            summary = f"archived a memory ({reason}): {text}"
        case MaintainVerdict.DOUBT:
            summary = f"lowered the trust in a memory to {revision.halve_trust(**change):.2f}: {text}"
        case MaintainVerdict.REVISE if params["content"] is None:
            revision.change_importance(**change, importance=params["importance"])
            summary = f"set the importance of a memory to {params['importance']:.2f}: {text}"
        case MaintainVerdict.REVISE:
            revised_id = revision.revise(
                **change,
                revised=_revised(context, memory, params),
                vectors=vectors_of([params["content"]], context.vectors),
                model=context.model,
            )
            move_links(old_id=memory_id, new_id=revised_id)
            memory_id = revised_id
            summary = f"revised a memory: {shorten(params['content'], QUOTE_LENGTH)}"
    return _done(decision, summary, [memory_id])


def _revised(
    context: ActionContext, memory: revision.RevisableMemory, params: Mapping[str, Any]
) -> NewMemory:
    """Return a memory's revision: the same kind, time, retention and detail, in the agent's own words."""
    importance = params["importance"]
    revised = NewMemory(
        content=params["content"],
        type=memory.type,
        importance=memory.importance if importance is None else importance,
        emotional_valence=memory.emotional_valence,
        occurred_at=memory.occurred_at,
        source=context.source,
        retention=memory.retention,
        detail={name: value for name, value in memory.detail.items() if name not in _WORDING_FIELDS},
    )
    earlier = require_evidence(agent_id=context.agent_id, named=[params["id"]])
    return with_source_of_conclusion(revised, situation=context.situation, materials=earlier.values())


def _judge_belief(context: ActionContext, decision: Decision) -> ActionResult:
    params = decision.params
    verdict = MaintainVerdict(params["verdict"])
    belief_id = id_of(params["id"])
    before = belief_of(agent_id=context.agent_id, belief_id=belief_id)
    if verdict is MaintainVerdict.KEEP:
        confirm_belief(
            agent_id=context.agent_id,
            belief_id=belief_id,
            decided_by=context.source,
            reason=params["reason"],
            now=context.now,
        )
        return _done(decision, f"kept a belief as it is: {shorten(before.statement, QUOTE_LENGTH)}")
    belief = revise_belief(
        agent_id=context.agent_id,
        belief_id=belief_id,
        revision=BeliefRevision(
            confidence=params["confidence"],
            status=BeliefStatus.QUESTIONED if verdict is MaintainVerdict.DOUBT else None,
            reason=params["reason"],
        ),
        decided_by=context.source,
        now=context.now,
    )
    return _done(
        decision,
        f"changed a belief ({before.confidence:.0%} sure before, {belief.confidence:.0%} now, {belief.status}): {shorten(belief.statement, QUOTE_LENGTH)}",
    )


def _judge_cluster(context: ActionContext, decision: Decision) -> ActionResult:
    params, reason = decision.params, decision.params["reason"]
    cluster = clusters.find_cluster(agent_id=context.agent_id, named=params["id"])
    match MaintainVerdict(params["verdict"]):
        case MaintainVerdict.REVISE:
            name = str(params["content"])
            clusters.rename_cluster(
                agent_id=context.agent_id, cluster=cluster, name=name, reason=reason, actor=context.actor
            )
            return _done(decision, f"renamed the cluster {quoted(cluster.name)} to {quoted(name)}")
        case MaintainVerdict.DOUBT:
            clusters.mark_for_reclustering(
                agent_id=context.agent_id, cluster=cluster, reason=reason, actor=context.actor
            )
            return _done(decision, f"marked the cluster {quoted(cluster.name)} to be reclustered")
        case _:
            return _done(decision, f"kept the cluster {quoted(cluster.name)} as it is")


type _MaintainAction = Callable[[ActionContext, Decision], ActionResult]

#: The functions that show a target and judge it.
_BY_TARGET: Mapping[MaintainTarget, tuple[_MaintainAction, _MaintainAction]] = MappingProxyType(
    {
        MaintainTarget.MEMORY: (_view_memory, _judge_memory),
        MaintainTarget.BELIEF: (_view_belief, _judge_belief),
        MaintainTarget.CLUSTER: (_view_cluster, _judge_cluster),
    }
)


def _neighbor_lines(context: ActionContext, node: GraphNode) -> list[str]:
    """Describe the nodes connected with this one, one line each."""
    neighbors = find_connected(agent_id=context.agent_id, node=node, hops=1).found[:MAX_NEIGHBORS]
    return [
        f"- {neighbor.path[-1].relation if neighbor.path else 'near'}: {neighbor.kind} [{neighbor.id}] {shorten(neighbor.label, QUOTE_LENGTH)}"
        for neighbor in neighbors
    ]


def _shown(
    decision: Decision, lines: list[str], about: str, memory_ids: list[UUID] | None = None
) -> ActionResult:
    summary = f"looked at the {decision.params['target']} again: {shorten(about, QUOTE_LENGTH)}"
    return action_result(decision, ActionOutcome.SUCCESS, summary, memory_ids or (), brought="\n".join(lines))


def _done(decision: Decision, summary: str, memory_ids: list[UUID] | None = None) -> ActionResult:
    return action_result(decision, ActionOutcome.SUCCESS, summary, memory_ids or ())
