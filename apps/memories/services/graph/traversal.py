"""Queries on the knowledge graph, each a bounded traversal of one agent's graph in one recursive statement.

Beside the edges that were drawn, a walk follows what other tables say: a memory is a case of a concept
(INSTANCE_OF), a concept is the broader of two, a goal has parts (PARENT_OF), the next memory of an episode comes after
the one before it (TEMPORAL_NEXT). Archived memories stay in a chain: forgetting
one step does not undo it. What is gone altogether is not returned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.db import OperationalError, transaction
from django.db.models import Exists, OuterRef, Q
from psycopg.errors import QueryCanceled

from apps.memories.models import Edge, Memory
from apps.memories.services.graph import queries
from apps.memories.services.graph.relations import labels_of
from apps.tenants.statements import fetch
from arbor.errors import LimitReached, NotFound
from arbor.memory.relations import (
    ANYWHERE,
    LONGEST_S,
    MAX_HOPS,
    MAX_NODES,
    ONWARD,
    TO_CAUSES,
    TO_EVIDENCE,
    Contradiction,
    GraphNode,
    GraphNodeKind,
    Paths,
    Reached,
    Relation,
    TraversalResult,
    TraversalStep,
    TraversedNode,
    check_hops,
    paths_of,
    unfold,
    within_bound,
)
from arbor.memory.values import MemoryStatus

#: How far evidence is looked for: what speaks for it, and what speaks for that.
EVIDENCE_HOPS = 2


def find_causes(*, agent_id: UUID, node: GraphNode, hops: int = MAX_HOPS) -> TraversalResult[TraversedNode]:
    """Return what brought something about: its causes, what it was concluded or learned from, and theirs; nearest first.

    MAX_NODES at most; the answer says when there may be more. Raises NotFound for what is not this agent's, Invalid unless `hops` is 1 to MAX_HOPS.
    """
    return _found(agent_id, node, _traverse(agent_id, node, TO_CAUSES, hops))


def find_supporting_evidence(
    *, agent_id: UUID, node: GraphNode, hops: int = EVIDENCE_HOPS
) -> TraversalResult[TraversedNode]:
    """Return what speaks for something, and what speaks for that; nearest first. Bounded, and raises, as `find_causes`."""
    return _found(agent_id, node, _traverse(agent_id, node, TO_EVIDENCE, hops))


def find_connected(
    *, agent_id: UUID, node: GraphNode, hops: int, relations: Iterable[Relation] | None = None
) -> TraversalResult[TraversedNode]:
    """Return everything within `hops` edges, along any relation or those named, either way; nearest first.

    As bounded, and raises, as `find_causes`.
    """
    return _found(agent_id, node, _traverse(agent_id, node, paths_of(relations), hops))


def find_path(
    *, agent_id: UUID, start: GraphNode, end: GraphNode, directed: bool = False, hops: int = MAX_HOPS
) -> TraversalResult[TraversedNode]:
    """Return the end with a shortest path there, along relations in their direction if `directed`, else either way.

    Nothing, and not `bounded`: no path of `hops` edges joins them. Nothing, and `bounded`: none was found among the
    MAX_NODES nodes that were visited. Raises as `find_causes`.
    """
    paths = ONWARD if directed else ANYWHERE
    traversal = _traverse(agent_id, start, paths, hops, end=end)
    there = tuple(node for node in traversal.found if node.node == end)
    if start.id == end.id:
        there = (Reached(node=end, path=()),)
    return _found(
        agent_id, start, TraversalResult(found=there, bounded=traversal.bounded and not there), also=end
    )


def find_contradictions(*, agent_id: UUID, about: GraphNode | None = None) -> TraversalResult[Contradiction]:
    """Return what cannot both be true, of all the agent knows or about one thing; the surest first. Not what is archived.

    MAX_NODES at most; the answer says when there are more. Raises NotFound when what it is to be about is not this agent's.
    """
    retired = Memory.objects.filter(
        id__in=[OuterRef("source_id"), OuterRef("target_id")], status=MemoryStatus.ARCHIVED
    )
    edges = Edge.objects.filter(~Exists(retired), agent_id=agent_id, relation=Relation.CONTRADICTS.value)
    if about is not None:
        edges = edges.filter(Q(source_id=about.id) | Q(target_id=about.id))
    with _in_time():
        rows = list(edges.order_by("-weight", "-created_at", "id")[: MAX_NODES + 1])
    read = within_bound(rows, MAX_NODES)
    pairs = [
        (
            GraphNode(GraphNodeKind(edge.source_kind), edge.source_id),
            GraphNode(GraphNodeKind(edge.target_kind), edge.target_id),
            edge.weight,
            edge.note,
        )
        for edge in read.found
    ]
    nodes = {node for first, second, *_ in pairs for node in (first, second)} | ({about} if about else set())
    labels = labels_of(agent_id, [node.id for node in nodes], {node.kind for node in nodes})
    if about is not None and about not in labels:
        raise NotFound(f"there is no {about.kind} {about.id} of this agent")
    found = tuple(
        Contradiction(first=_end(first, labels), second=_end(second, labels), weight=weight, note=note)
        for first, second, weight, note in pairs
        if first in labels and second in labels
    )
    return TraversalResult(found=found, bounded=read.bounded)


def _traverse(
    agent_id: UUID, start: GraphNode, paths: Paths, hops: int, *, end: GraphNode | None = None
) -> TraversalResult[Reached]:
    check_hops(hops)
    with _in_time():
        rows = fetch(
            queries.TRAVERSE,
            agent=agent_id,
            start=start.id,
            end=None if end is None else end.id,
            onward=sorted(paths.onward),
            back=sorted(paths.back),
            hops=hops,
            # The start counts as visited, and one node beyond the bound shows that there are more.
            nodes=MAX_NODES + 2,
        )
    return within_bound(unfold(start, ([_step(step) for step in steps] for (steps,) in rows)), MAX_NODES)


def _step(found: dict[str, Any]) -> TraversalStep:
    return TraversalStep(
        node=GraphNode(GraphNodeKind(found["kind"]), UUID(found["id"])),
        via=UUID(found["via"]),
        relation=Relation(found["relation"]),
        weight=found["weight"],
        onward=found["onward"],
    )


def _found(
    agent_id: UUID, start: GraphNode, reached: TraversalResult[Reached], *, also: GraphNode | None = None
) -> TraversalResult[TraversedNode]:
    """Name what was reached. Raises NotFound when there is nothing to begin at, or `also` is nothing of this agent."""
    asked = [start] if also is None else [start, also]
    nodes = {reached_node.node for reached_node in reached.found}.union(asked)
    labels = labels_of(agent_id, [node.id for node in nodes], {node.kind for node in nodes})
    for node in asked:
        if node not in labels:
            raise NotFound(f"there is no {node.kind} {node.id} of this agent")
    found = tuple(
        _end(reached_node.node, labels, reached_node)
        for reached_node in reached.found
        if reached_node.node in labels
    )
    return TraversalResult(found=found, bounded=reached.bounded)


def _end(node: GraphNode, labels: dict[GraphNode, str], reached: Reached | None = None) -> TraversedNode:
    return TraversedNode(
        kind=node.kind,
        id=node.id,
        label=labels[node],
        hops=reached.hops if reached else 0,
        path=reached.path if reached else (),
    )


@contextmanager
def _in_time() -> Iterator[None]:
    """Break a statement off that takes longer than LONGEST_S, and leave the caller's transaction whole."""
    try:
        with transaction.atomic():
            ((before,),) = fetch(queries.READ_TIMEOUT)
            _limit(f"{LONGEST_S * 1000:.0f}ms")
            yield
            _limit(before)
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            raise LimitReached(
                f"the graph was not walked within {LONGEST_S:g} s: ask for fewer hops or relations"
            ) from error
        raise


def _limit(value: str) -> None:
    fetch(queries.SET_TIMEOUT, value=value)
