"""Maintaining: the agent looks at a memory, a belief or a theme again, and says what is to become of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any
from uuid import UUID

from apps.heartbeats.actions.context import GLIMPSE, ActionContext
from apps.memories.services.clusters import naming as theming
from apps.memories.services.clusters.clusters import cluster_members
from apps.memories.services.graph.nodes import id_of
from apps.memories.services.graph.walks import find_connected
from apps.memories.services.retention.archive import archive
from apps.memories.services.store import revision as revising
from apps.selves.services.looking import belief_of
from apps.selves.services.proposals import keep_belief, revise_belief
from arbor.heartbeat.decision import Decision
from arbor.heartbeat.learning import learned
from arbor.heartbeat.params.maintain import Judgement, MaintainTarget
from arbor.heartbeat.quoting import clip
from arbor.heartbeat.results import ActionOutcome, ActionResult, answer
from arbor.heartbeat.steps.making import vectors_of
from arbor.memory.relations import NodeKind
from arbor.memory.values import MemoryType, NewMemory
from arbor.memory.walks import Node
from arbor.selves.values import Standing

#: Of what is around a thing, and of each text in it, what is shown.
SHOWN_AROUND = 8
SHOWN_LENGTH = 1_500


def maintain(context: ActionContext, decision: Decision) -> ActionResult:
    """Show the thing and what is around it, or do what was judged of it; every change is on record."""
    target = MaintainTarget(decision.params["target"])
    if decision.params["verdict"] is None:
        return _LOOKS[target](context, decision)
    return _JUDGEMENTS[target](context, decision)


def _look_at_memory(context: ActionContext, decision: Decision) -> ActionResult:
    memory_id = id_of(decision.params["id"])
    memory = revising.memory_of(agent_id=context.agent_id, memory_id=memory_id)
    sources = [
        source.get("reference", "")
        for source in memory["detail"].get("sources", [])
        if isinstance(source, dict)
    ]
    lines = [
        f"memory {memory_id}, {memory['type']}, of {memory['occurred_at']:%Y-%m-%d}",
        f"importance {memory['importance']:.2f}, trust {memory['trust']:.2f}"
        + (f", from {', '.join(sources)}" if sources else ""),
        memory["content"][:SHOWN_LENGTH],
        *_around(context, Node(NodeKind.MEMORY, memory_id)),
    ]
    return _shown(decision, lines, memory["content"], [memory_id])


def _look_at_belief(context: ActionContext, decision: Decision) -> ActionResult:
    belief = belief_of(agent_id=context.agent_id, belief_id=id_of(decision.params["id"]))
    lines = [
        f"belief {belief.id}, {belief.category}, {belief.confidence:.0%} sure, {belief.status}",
        belief.statement,
        *_around(context, Node(NodeKind.BELIEF, belief.id)),
    ]
    return _shown(decision, lines, belief.statement)


def _look_at_cluster(context: ActionContext, decision: Decision) -> ActionResult:
    theme_id, name = theming.find_theme(agent_id=context.agent_id, named=decision.params["id"])
    members = cluster_members(cluster_id=theme_id, limit=SHOWN_AROUND)
    lines = [
        f"theme {theme_id}: {name}",
        *(
            f"- [{member.memory_id}] ({member.strength:.2f}) {clip(member.content, GLIMPSE)}"
            for member in members
        ),
    ]
    return _shown(decision, lines, name, [member.memory_id for member in members])


def _judge_memory(context: ActionContext, decision: Decision) -> ActionResult:
    params, reason = decision.params, decision.params["reason"]
    memory_id, actor = id_of(params["id"]), _actor(context)
    # Whose it is comes first: archiving asks only for the tenant.
    memory = revising.memory_of(agent_id=context.agent_id, memory_id=memory_id)
    match Judgement(params["verdict"]):
        case Judgement.KEEP:
            revising.keep(agent_id=context.agent_id, memory_id=memory_id, reason=reason, actor=actor)
            return _done(decision, f"kept as it is: {clip(memory['content'], GLIMPSE)}", [memory_id])
        case Judgement.RETIRE:
            archive(memory_ids=[memory_id], reason=reason, actor=actor)
            return _done(decision, f"put away ({reason}): {clip(memory['content'], GLIMPSE)}", [memory_id])
        case Judgement.DOUBT:
            trust = revising.doubt(agent_id=context.agent_id, memory_id=memory_id, reason=reason, actor=actor)
            return _done(
                decision, f"trusted {trust:.2f} from now on: {clip(memory['content'], GLIMPSE)}", [memory_id]
            )
        case Judgement.REVISE if params["content"] is None:
            weight = params["importance"]
            revising.weigh_anew(
                agent_id=context.agent_id, memory_id=memory_id, importance=weight, reason=reason, actor=actor
            )
            return _done(
                decision, f"importance {weight:.2f} now: {clip(memory['content'], GLIMPSE)}", [memory_id]
            )
        case Judgement.REVISE:
            new_id = revising.revise(
                agent_id=context.agent_id,
                memory_id=memory_id,
                becomes=_revised(context, memory, params),
                reason=reason,
                actor=actor,
                vectors=vectors_of([params["content"]], context.vectors),
                model=context.model,
            )
            return _done(decision, f"revised: {clip(params['content'], GLIMPSE)}", [new_id])


def _revised(context: ActionContext, memory: Mapping[str, Any], params: Mapping[str, Any]) -> NewMemory:
    """Return what a memory becomes: of its kind and its time, but now the agent's own words."""
    importance = params["importance"]
    becomes = NewMemory(
        content=params["content"],
        type=MemoryType(memory["type"]),
        importance=memory["importance"] if importance is None else importance,
        emotional_valence=memory["emotional_valence"],
        occurred_at=memory["occurred_at"],
        source=context.source,
    )
    return learned(becomes, situation=context.situation, concluded=True)


def _judge_belief(context: ActionContext, decision: Decision) -> ActionResult:
    params = decision.params
    verdict = Judgement(params["verdict"])
    belief_id = id_of(params["id"])
    before = belief_of(agent_id=context.agent_id, belief_id=belief_id)
    if verdict is Judgement.KEEP:
        keep_belief(
            agent_id=context.agent_id,
            belief_id=belief_id,
            decided_by=context.source,
            reason=params["reason"],
            now=context.now,
        )
        return _done(decision, f"held as it is: {clip(before.statement, GLIMPSE)}")
    belief = revise_belief(
        agent_id=context.agent_id,
        belief_id=belief_id,
        decided_by=context.source,
        confidence=params["confidence"],
        status=Standing.QUESTIONED if verdict is Judgement.DOUBT else None,
        reason=params["reason"],
        now=context.now,
    )
    return _done(
        decision,
        f"{before.confidence:.0%} sure before, {belief.confidence:.0%} now, {belief.status}: {clip(belief.statement, GLIMPSE)}",
    )


def _judge_cluster(context: ActionContext, decision: Decision) -> ActionResult:
    params, reason = decision.params, decision.params["reason"]
    theme = theming.find_theme(agent_id=context.agent_id, named=params["id"])
    match Judgement(params["verdict"]):
        case Judgement.REVISE:
            name = str(params["content"])
            theming.rename(
                agent_id=context.agent_id, theme=theme, name=name, reason=reason, actor=_actor(context)
            )
            return _done(decision, f"the theme {theme[1]!r} is called {name!r} now")
        case Judgement.DOUBT:
            theming.put_in_order(agent_id=context.agent_id, theme=theme, reason=reason, actor=_actor(context))
            return _done(decision, f"the theme {theme[1]!r} will be put in order")
        case _:
            return _done(decision, f"the theme {theme[1]!r} is kept as it is")


type _Part = Callable[[ActionContext, Decision], ActionResult]

_LOOKS: Mapping[MaintainTarget, _Part] = MappingProxyType(
    {
        MaintainTarget.MEMORY: _look_at_memory,
        MaintainTarget.BELIEF: _look_at_belief,
        MaintainTarget.CLUSTER: _look_at_cluster,
    }
)
_JUDGEMENTS: Mapping[MaintainTarget, _Part] = MappingProxyType(
    {
        MaintainTarget.MEMORY: _judge_memory,
        MaintainTarget.BELIEF: _judge_belief,
        MaintainTarget.CLUSTER: _judge_cluster,
    }
)


def _actor(context: ActionContext) -> str:
    return f"agent:{context.situation.public_id}"


def _around(context: ActionContext, node: Node) -> list[str]:
    """Return what is tied to a thing, one line each."""
    found = find_connected(agent_id=context.agent_id, node=node, hops=1).found[:SHOWN_AROUND]
    return [
        f"- {node_found.path[-1].relation if node_found.path else 'near'}: {node_found.kind} [{node_found.id}] {clip(node_found.label, GLIMPSE)}"
        for node_found in found
    ]


def _shown(
    decision: Decision, lines: list[str], about: str, memory_ids: list[UUID] | None = None
) -> ActionResult:
    summary = f"looked at the {decision.params['target']} again: {clip(about, GLIMPSE)}"
    return answer(decision, ActionOutcome.SUCCESS, summary, memory_ids or (), brought="\n".join(lines))


def _done(decision: Decision, summary: str, memory_ids: list[UUID] | None = None) -> ActionResult:
    return answer(decision, ActionOutcome.SUCCESS, summary, memory_ids or ())
