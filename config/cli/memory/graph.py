"""Query the knowledge graph, and edit its relations."""

from __future__ import annotations

from typing import Any

from rich.markup import escape

from apps.memories.services.graph.relations import NewRelation
from apps.memories.services.graph.traversal import (
    find_causes,
    find_connected,
    find_contradictions,
    find_path,
    find_supporting_evidence,
)
from apps.selves.services.relations import relate_by_person, unrelate_by_person
from arbor.memory.relations import (
    MAX_HOPS,
    MAX_NODES,
    LabeledNode,
    Relation,
    TraversalResult,
    TraversedEdge,
)
from config.cli.kit.declarations import ExitCode, Output
from config.cli.kit.lookup import find_node
from config.cli.kit.output import cut, short, table
from config.cli.kit.tenancy import ChosenAgent, actor, in_agent_transaction


@in_agent_transaction
def show_causes(agent: ChosenAgent, *, node: str, hops: int) -> Output:
    """Show the causes of a node, and their causes."""
    result = find_causes(agent_id=agent.id, node=find_node(agent, node), hops=hops)
    return _output_of(agent.name, result, "No cause is known.")


@in_agent_transaction
def show_evidence(agent: ChosenAgent, *, node: str, hops: int) -> Output:
    """Show the evidence for a node, and the evidence for that."""
    result = find_supporting_evidence(agent_id=agent.id, node=find_node(agent, node), hops=hops)
    return _output_of(agent.name, result, "There is no evidence.")


@in_agent_transaction
def show_connected(agent: ChosenAgent, *, node: str, hops: int, relations: tuple[str, ...]) -> Output:
    """Show every node within some edges of a node, along any relation, in both directions."""
    result = find_connected(
        agent_id=agent.id,
        node=find_node(agent, node),
        hops=hops,
        relations=[Relation(name) for name in relations] or None,
    )
    return _output_of(agent.name, result, "Nothing is connected with it.")


@in_agent_transaction
def show_path(agent: ChosenAgent, *, start: str, end: str, directed: bool) -> Output:
    """Show a shortest path between two nodes."""
    result = find_path(
        agent_id=agent.id,
        start=find_node(agent, start),
        end=find_node(agent, end),
        directed=directed,
    )
    path = result.found[0] if result.found else None
    value = {"agent": agent.name, "path": found_value(path) if path else None, "bounded": result.bounded}
    if path is not None:
        text = "\n".join(edge_text(edge) for edge in path.path) or "Both are the same node."
    elif result.bounded:
        text = f"Not found among the first {MAX_NODES:,} nodes; there are more."
    else:
        text = f"No path of at most {MAX_HOPS} edges joins them."
    return Output(value, text=text, code=ExitCode.FAILED if path is None else ExitCode.DONE)


@in_agent_transaction
def show_contradictions(agent: ChosenAgent, *, node: str | None) -> Output:
    """Show all contradictions that the agent knows, or those of one node."""
    about = find_node(agent, node) if node is not None else None
    result = find_contradictions(agent_id=agent.id, about=about)
    value = {
        "agent": agent.name,
        "contradictions": [
            {
                "first": {"kind": pair.first.kind, "id": pair.first.id, "text": pair.first.label},
                "second": {"kind": pair.second.kind, "id": pair.second.id, "text": pair.second.label},
                "weight": pair.weight,
                "note": pair.note,
            }
            for pair in result.found
        ],
        "bounded": result.bounded,
    }
    text: Any = table(
        ("weight", "id", "node", "id", "contradicts", "note"),
        (
            (
                f"{pair.weight:.2f}",
                short(pair.first.id),
                cut(pair.first.label, 70),
                short(pair.second.id),
                cut(pair.second.label, 70),
                cut(pair.note, 60),
            )
            for pair in result.found
        ),
        title=bounded_note(result),
    )
    return Output(value, text=text if result.found else "Nothing contradicts anything.")


def _output_of(agent: str, result: TraversalResult[LabeledNode], nothing: str) -> Output:
    """Return reached nodes with their paths as the output of a command."""
    text: Any = table(
        ("edges", "kind", "id", "text", "relations"),
        (
            (
                node.hops,
                node.kind,
                short(node.id),
                cut(node.label),
                " · ".join(edge.relation.replace("_", " ") for edge in node.path),
            )
            for node in result.found
        ),
        title=bounded_note(result),
    )
    value = {
        "agent": agent,
        "found": [found_value(node) for node in result.found],
        "bounded": result.bounded,
    }
    return Output(value, text=text if result.found else nothing)


def bounded_note(result: TraversalResult[Any]) -> str | None:
    """Return the title of a truncated list."""
    return f"Bounded: the first {MAX_NODES:,}; there are more." if result.bounded else None


def found_value(result: LabeledNode) -> dict[str, Any]:
    """Return a found node with its path, as JSON."""
    return {
        "kind": result.kind,
        "id": result.id,
        "text": result.label,
        "hops": result.hops,
        "path": [edge_value(edge) for edge in result.path],
    }


def edge_value(edge: TraversedEdge) -> dict[str, Any]:
    """Return an edge as JSON."""
    return {
        "source": f"{edge.source.kind}:{edge.source.id}",
        "relation": str(edge.relation),
        "target": f"{edge.target.kind}:{edge.target.id}",
        "weight": edge.weight,
    }


def edge_text(edge: TraversedEdge) -> str:
    """Return an edge in words, safe to print."""
    relation = edge.relation.replace("_", " ")
    return escape(
        f"{edge.source.kind} {short(edge.source.id)} {relation} {edge.target.kind} {short(edge.target.id)}"
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
    related = relate_by_person(agent_id=agent.id, new=new, actor=actor())
    edge, proposed = related.edge, related.proposed
    value = {"agent": agent.name, **edge_value(edge), "proposed": proposed}
    return Output(value, text=f"{edge_text(edge)}{f'; {proposed}' if proposed else ''}.")


@in_agent_transaction
def unrelate_nodes(agent: ChosenAgent, *, source: str, target: str, relation: str | None) -> Output:
    """Remove the relations from one node to another, in that direction."""
    removed = unrelate_by_person(
        agent_id=agent.id,
        source=find_node(agent, source),
        target=find_node(agent, target),
        relation=Relation(relation) if relation else None,
        actor=actor(),
    )
    return Output(
        {"agent": agent.name, "removed": removed.count, "proposed": removed.proposed},
        text=f"Removed: {removed.count}{f'; {removed.proposed}' if removed.proposed else ''}.",
    )
