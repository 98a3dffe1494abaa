"""The knowledge graph of an agent: relations of nodes, and questions about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from arbor_client.calls import Call, Id, get, post, segment
from arbor_client.groups import Group, operation

if TYPE_CHECKING:
    from arbor_client.clients import Arbor, AsyncArbor


@dataclass(frozen=True, kw_only=True)
class Node:
    """A node of the graph."""

    #: memory, concept, belief, aspect or goal.
    kind: str
    id: UUID


@dataclass(frozen=True, kw_only=True)
class Edge:
    """A relation of two nodes."""

    source: Node
    #: causes, supports, contradicts, derived_from…
    relation: str
    target: Node
    weight: float


@dataclass(frozen=True, kw_only=True)
class FoundNode(Node):
    """A node that was reached, and the path to it."""

    text: str
    hops: int
    path: list[Edge]


@dataclass(frozen=True, kw_only=True)
class FoundNodes:
    """The nodes that were reached, the nearest first."""

    items: list[FoundNode]
    #: Whether there are more than were looked at.
    bounded: bool


@dataclass(frozen=True, kw_only=True)
class Contradiction:
    """Two nodes that cannot both be true."""

    first: FoundNode
    second: FoundNode
    weight: float
    note: str


@dataclass(frozen=True, kw_only=True)
class Contradictions:
    """The contradictions within an agent's knowledge."""

    items: list[Contradiction]
    #: Whether there are more than were looked at.
    bounded: bool


@dataclass(frozen=True, kw_only=True)
class RemovedRelations:
    """The number of removed relations."""

    removed: int


class Graph[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about the knowledge graph."""

    @operation
    def causes(self, agent_id: Id, node: Node, *, hops: int = 2) -> Call[FoundNodes]:
        """Return the causes of a node."""
        return get(
            FoundNodes, f"/agents/{segment(agent_id)}/graph/causes", kind=node.kind, id=node.id, hops=hops
        )

    @operation
    def evidence(self, agent_id: Id, node: Node, *, hops: int = 2) -> Call[FoundNodes]:
        """Return the evidence for a node."""
        return get(
            FoundNodes, f"/agents/{segment(agent_id)}/graph/evidence", kind=node.kind, id=node.id, hops=hops
        )

    @operation
    def connected(self, agent_id: Id, node: Node, *, hops: int = 2) -> Call[FoundNodes]:
        """Return all that is connected with a node."""
        return get(
            FoundNodes, f"/agents/{segment(agent_id)}/graph/connected", kind=node.kind, id=node.id, hops=hops
        )

    @operation
    def path(self, agent_id: Id, start: Node, end: Node, *, directed: bool = False) -> Call[FoundNodes]:
        """Return a shortest path between two nodes; no nodes: there is none."""
        return get(
            FoundNodes,
            f"/agents/{segment(agent_id)}/graph-path",
            from_kind=start.kind,
            from_id=start.id,
            to_kind=end.kind,
            to_id=end.id,
            directed=directed,
        )

    @operation
    def contradictions(self, agent_id: Id) -> Call[Contradictions]:
        """Return the contradictions within an agent's knowledge."""
        return get(Contradictions, f"/agents/{segment(agent_id)}/contradictions")

    @operation
    def relate(
        self,
        agent_id: Id,
        source: Node,
        relation: str,
        target: Node,
        *,
        weight: float = 1.0,
        note: str = "",
    ) -> Call[Edge]:
        """Relate two nodes of an agent's graph."""
        body = {"source": source, "relation": relation, "target": target, "weight": weight, "note": note}
        return post(Edge, f"/agents/{segment(agent_id)}/relations", body)

    @operation
    def unrelate(
        self, agent_id: Id, source: Node, target: Node, *, relation: str | None = None
    ) -> Call[RemovedRelations]:
        """Remove the relations from one node to another, in that direction; None: all of them."""
        body = {"source": source, "target": target, "relation": relation}
        return post(RemovedRelations, f"/agents/{segment(agent_id)}/relations/remove", body)
