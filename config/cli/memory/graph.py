"""Answer questions to the knowledge graph, and relate its nodes by hand."""

from __future__ import annotations

from typing import Any

from rich.markup import escape

from apps.memories.services.graph.relations import NewRelation, relate, unrelate
from apps.memories.services.graph.traversal import (
    find_causes,
    find_connected,
    find_contradictions,
    find_path,
    find_supporting_evidence,
)
from apps.selves.services.alignment import update_trust_of_ends
from apps.selves.services.evidence import note_evidence, withdraw_evidence
from arbor.memory.relations import (
    MAX_HOPS,
    MAX_NODES,
    Relation,
    TraversalResult,
    TraversedEdge,
    TraversedNode,
)
from config.cli.kit import ExitCode, Output
from config.cli.lookup import find_node
from config.cli.output import cut, short, table
from config.cli.tenancy import ChosenAgent, actor, audit_act, in_agent_transaction


@in_agent_transaction
def show_causes(agent: ChosenAgent, *, node: str, hops: int) -> Output:
    """Show the causes of a node, and their causes."""
    found = find_causes(agent_id=agent.id, node=find_node(agent, node), hops=hops)
    return _found(agent.name, found, "No cause is known.")


@in_agent_transaction
def show_evidence(agent: ChosenAgent, *, node: str, hops: int) -> Output:
    """Show the evidence for a node, and the evidence for that."""
    found = find_supporting_evidence(agent_id=agent.id, node=find_node(agent, node), hops=hops)
    return _found(agent.name, found, "There is no evidence.")


@in_agent_transaction
def show_connected(agent: ChosenAgent, *, node: str, hops: int, relations: tuple[str, ...]) -> Output:
    """Show every node within some edges of a node, along any relation, in both directions."""
    found = find_connected(
        agent_id=agent.id,
        node=find_node(agent, node),
        hops=hops,
        relations=[Relation(name) for name in relations] or None,
    )
    return _found(agent.name, found, "Nothing is connected with it.")


@in_agent_transaction
def show_path(agent: ChosenAgent, *, start: str, end: str, directed: bool) -> Output:
    """Show a shortest path between two nodes."""
    found = find_path(
        agent_id=agent.id,
        start=find_node(agent, start),
        end=find_node(agent, end),
        directed=directed,
    )
    way = found.found[0] if found.found else None
    value = {"agent": agent.name, "path": found_value(way) if way else None, "bounded": found.bounded}
    if way is not None:
        people = "\n".join(tie_text(tie) for tie in way.path) or "They are the same."
    elif found.bounded:
        people = f"Not found within the bound: {MAX_NODES:,} things were looked at, and there are more."
    else:
        people = f"No path of at most {MAX_HOPS} edges joins them."
    return Output(value, people=people, code=ExitCode.FAILED if way is None else ExitCode.DONE)


@in_agent_transaction
def show_contradictions(agent: ChosenAgent, *, node: str | None) -> Output:
    """Show contradictions: all that the agent knows, or about one node."""
    about = find_node(agent, node) if node else None
    found = find_contradictions(agent_id=agent.id, about=about)
    value = {
        "agent": agent.name,
        "contradictions": [
            {
                "first": {"kind": answer.first.kind, "id": answer.first.id, "text": answer.first.label},
                "second": {"kind": answer.second.kind, "id": answer.second.id, "text": answer.second.label},
                "weight": answer.weight,
                "note": answer.note,
            }
            for answer in found.found
        ],
        "bounded": found.bounded,
    }
    people: Any = table(
        ("sure", "id", "this", "id", "or this", "note"),
        (
            (
                f"{answer.weight:.2f}",
                short(answer.first.id),
                cut(answer.first.label, 70),
                short(answer.second.id),
                cut(answer.second.label, 70),
                cut(answer.note, 60),
            )
            for answer in found.found
        ),
        title=bounded_note(found),
    )
    return Output(value, people=people if found.found else "Nothing contradicts anything.")


def _found(agent: str, found: TraversalResult[TraversedNode], nothing: str) -> Output:
    """Return the nodes found along ties."""
    people: Any = table(
        ("edges", "kind", "id", "text", "by"),
        (
            (
                answer.hops,
                answer.kind,
                short(answer.id),
                cut(answer.label),
                " · ".join(tie.relation.replace("_", " ") for tie in answer.path),
            )
            for answer in found.found
        ),
        title=bounded_note(found),
    )
    value = {
        "agent": agent,
        "found": [found_value(answer) for answer in found.found],
        "bounded": found.bounded,
    }
    return Output(value, people=people if found.found else nothing)


def bounded_note(found: TraversalResult[Any]) -> str | None:
    """Return the title of a truncated list."""
    return f"Bounded: the first {MAX_NODES:,}; there are more." if found.bounded else None


def found_value(found: TraversedNode) -> dict[str, Any]:
    """Return a found node with its path, as JSON."""
    return {
        "kind": found.kind,
        "id": found.id,
        "text": found.label,
        "hops": found.hops,
        "path": [tie_value(tie) for tie in found.path],
    }


def tie_value(tie: TraversedEdge) -> dict[str, Any]:
    """Return a tie as JSON."""
    return {
        "source": f"{tie.source.kind}:{tie.source.id}",
        "relation": str(tie.relation),
        "target": f"{tie.target.kind}:{tie.target.id}",
        "weight": tie.weight,
    }


def tie_text(tie: TraversedEdge) -> str:
    """Return a tie in words, safe to print."""
    relation = tie.relation.replace("_", " ")
    return escape(
        f"{tie.source.kind} {short(tie.source.id)} {relation} {tie.target.kind} {short(tie.target.id)}"
    )


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
    proposed = note_evidence(agent_id=agent.id, tie=tie, source=actor())
    audit_act(agent, f"related two things of {agent.name}: {tie_text(tie)}", **tie_value(tie))
    value = {"agent": agent.name, **tie_value(tie), "proposed": proposed}
    return Output(value, people=f"{tie_text(tie)}{f'; {proposed}' if proposed else ''}.")


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
    withdraw_evidence(agent_id=agent.id, ends=ends)
    if taken:
        audit_act(
            agent,
            f"took back {taken} relations of {agent.name}",
            source=ends[0].id,
            target=ends[1].id,
            relation=relation or "any",
        )
    return Output({"agent": agent.name, "taken_back": taken}, people=f"Taken back: {taken}.")
