"""Query an agent's knowledge graph: each query is a bounded traversal in one recursive statement.

Besides the stored edges, a traversal follows relations that other tables imply: from memories to their concepts (INSTANCE_OF),
from concepts to narrower ones and from goals to their parts (PARENT_OF), and from a memory of an episode to the next one (TEMPORAL_NEXT). Archived
memories remain parts of paths; deleted rows are not returned.
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
from apps.memories.services.graph.relations import check_known, labels_of
from apps.tenants.statements import fetch
from arbor.errors import LimitReached
from arbor.memory.relations import (
    ALL_RELATIONS,
    FORWARD_ONLY,
    MAX_HOPS,
    MAX_NODES,
    TO_CAUSES,
    TO_EVIDENCE,
    TRAVERSAL_TIMEOUT_S,
    Contradiction,
    FollowedRelations,
    GraphNode,
    GraphNodeKind,
    LabeledNode,
    ReachedNode,
    Relation,
    TraversalResult,
    TraversalStep,
    both_directions,
    check_hops,
    reached_nodes,
    within_bound,
)
from arbor.memory.values import MemoryStatus

#: The most edges to supporting evidence: direct evidence, and the evidence for that evidence.
EVIDENCE_HOPS = 2


def find_causes(*, agent_id: UUID, node: GraphNode, hops: int = MAX_HOPS) -> TraversalResult[LabeledNode]:
    """Return direct and indirect causes of a node, and the nodes from which it was concluded or learned; the nearest first.

    At most MAX_NODES; `bounded` is set if there may be more. Raises NotFound for a node of another agent, Invalid unless
    `hops` is 1 to MAX_HOPS, and LimitReached for a traversal of more than TRAVERSAL_TIMEOUT_S.
    """
    return _with_labels(agent_id, node, _traverse(agent_id, node, TO_CAUSES, hops))


def find_supporting_evidence(
    *, agent_id: UUID, node: GraphNode, hops: int = EVIDENCE_HOPS
) -> TraversalResult[LabeledNode]:
    """Return the evidence for a node, and the evidence for that evidence, the nearest first; bounds and errors as in `find_causes`."""
    return _with_labels(agent_id, node, _traverse(agent_id, node, TO_EVIDENCE, hops))


def find_connected(
    *, agent_id: UUID, node: GraphNode, hops: int, relations: Iterable[Relation] | None = None
) -> TraversalResult[LabeledNode]:
    """Return all nodes within `hops` edges of any or the given relations, in either direction; the nearest first.

    Bounds and errors as in `find_causes`.
    """
    return _with_labels(agent_id, node, _traverse(agent_id, node, both_directions(relations), hops))


def find_path(
    *, agent_id: UUID, start: GraphNode, end: GraphNode, directed: bool = False, hops: int = MAX_HOPS
) -> TraversalResult[LabeledNode]:
    """Return the end node with a shortest path to it; with `directed`, edges are followed in their direction only.

    An empty result means that no path of at most `hops` edges exists or, if `bounded`, that there is none among the
    MAX_NODES visited nodes. Errors as in `find_causes`.
    """
    followed = FORWARD_ONLY if directed else ALL_RELATIONS
    traversal = _traverse(agent_id, start, followed, hops, end=end)
    reached = tuple(node for node in traversal.found if node.node == end)
    if start.id == end.id:
        reached = (ReachedNode(node=end, path=()),)
    return _with_labels(
        agent_id, start, TraversalResult(found=reached, bounded=traversal.bounded and not reached), also=end
    )


def find_contradictions(*, agent_id: UUID, about: GraphNode | None = None) -> TraversalResult[Contradiction]:
    """Return pairs of contradicting nodes that are not archived, of the whole graph or with one node, the most certain first.

    At most MAX_NODES; `bounded` is set if there are more. Raises NotFound for a node of another agent, and LimitReached as
    `find_causes` does.
    """
    archived = Memory.objects.filter(
        id__in=[OuterRef("source_id"), OuterRef("target_id")], status=MemoryStatus.ARCHIVED
    )
    edges = Edge.objects.filter(~Exists(archived), agent_id=agent_id, relation=Relation.CONTRADICTS.value)
    if about is not None:
        edges = edges.filter(Q(source_id=about.id) | Q(target_id=about.id))
    with _statement_timeout():
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
    check_known([about] if about else [], labels)
    found = tuple(
        Contradiction(
            first=_labeled_node(first, labels),
            second=_labeled_node(second, labels),
            weight=weight,
            note=note,
        )
        for first, second, weight, note in pairs
        if first in labels and second in labels
    )
    return TraversalResult(found=found, bounded=read.bounded)


def _traverse(
    agent_id: UUID, start: GraphNode, followed: FollowedRelations, hops: int, *, end: GraphNode | None = None
) -> TraversalResult[ReachedNode]:
    check_hops(hops)
    with _statement_timeout():
        rows = fetch(
            queries.TRAVERSE,
            agent=agent_id,
            start=start.id,
            end=None if end is None else end.id,
            forward=sorted(followed.forward),
            backward=sorted(followed.backward),
            hops=hops,
            # The start counts as visited, and one node beyond the bound shows that there are more.
            nodes=MAX_NODES + 2,
        )
    return within_bound(
        reached_nodes(start, ([_step(step) for step in steps] for (steps,) in rows)), MAX_NODES
    )


def _step(row: dict[str, Any]) -> TraversalStep:
    return TraversalStep(
        node=GraphNode(GraphNodeKind(row["kind"]), UUID(row["id"])),
        via=UUID(row["via"]),
        relation=Relation(row["relation"]),
        weight=row["weight"],
        forward=row["forward"],
    )


def _with_labels(
    agent_id: UUID, start: GraphNode, reached: TraversalResult[ReachedNode], *, also: GraphNode | None = None
) -> TraversalResult[LabeledNode]:
    """Add labels to the reached nodes. Raises NotFound if `start` or `also` is not a node of this agent."""
    required = [start] if also is None else [start, also]
    nodes = {reached_node.node for reached_node in reached.found}.union(required)
    labels = labels_of(agent_id, [node.id for node in nodes], {node.kind for node in nodes})
    check_known(required, labels)
    found = tuple(
        _labeled_node(reached_node.node, labels, reached_node)
        for reached_node in reached.found
        if reached_node.node in labels
    )
    return TraversalResult(found=found, bounded=reached.bounded)


def _labeled_node(
    node: GraphNode, labels: dict[GraphNode, str], reached: ReachedNode | None = None
) -> LabeledNode:
    return LabeledNode(
        kind=node.kind,
        id=node.id,
        label=labels[node],
        hops=reached.hops if reached else 0,
        path=reached.path if reached else (),
    )


@contextmanager
def _statement_timeout() -> Iterator[None]:
    """Cancel a statement after TRAVERSAL_TIMEOUT_S; a savepoint preserves the caller's transaction."""
    try:
        with transaction.atomic():
            ((previous,),) = fetch(queries.READ_TIMEOUT)
            _set_timeout(f"{TRAVERSAL_TIMEOUT_S * 1000:.0f}ms")
            yield
            _set_timeout(previous)
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            raise LimitReached(
                f"the graph was not traversed within {TRAVERSAL_TIMEOUT_S:g} s: ask for fewer hops or relations"
            ) from error
        raise


def _set_timeout(value: str) -> None:
    fetch(queries.SET_TIMEOUT, value=value)
