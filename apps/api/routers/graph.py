"""The knowledge graph of an agent: its nodes, their relations, and questions about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal
from uuid import UUID

from django.http import HttpRequest
from ninja import Query, Router, Schema, Status
from pydantic import Field

from apps.api.requests import access_of
from apps.api.rows import Input
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
    NOTE_LENGTH,
    GraphNode,
    GraphNodeKind,
    LabeledNode,
    Relation,
    TraversalResult,
)

router = Router()

_Hops = Annotated[int, Field(ge=1, le=MAX_HOPS)]

_QUESTIONS: dict[str, Callable[..., TraversalResult[LabeledNode]]] = {
    "causes": find_causes,
    "evidence": find_supporting_evidence,
    "connected": find_connected,
}


class NodeResource(Schema):
    """A node of the graph."""

    kind: GraphNodeKind
    id: UUID


class NodeInput(Input):
    """A node of the graph."""

    kind: GraphNodeKind
    id: UUID


class EdgeResource(Schema):
    """A relation of two nodes."""

    source: NodeResource
    relation: Relation
    target: NodeResource
    weight: float


class FoundNode(NodeResource):
    """A node that was reached, and the path to it."""

    text: str
    hops: int
    path: list[EdgeResource]

    @classmethod
    def of(cls, node: LabeledNode) -> FoundNode:
        """Return the resource of a reached node."""
        return cls(
            kind=node.kind,
            id=node.id,
            text=node.label,
            hops=node.hops,
            path=[EdgeResource.model_validate(edge) for edge in node.path],
        )


class FoundNodes(Schema):
    """The nodes that were reached, the nearest first."""

    items: list[FoundNode]
    bounded: bool = Field(description="Whether there are more than were looked at.")


class ContradictionResource(Schema):
    """Two nodes that cannot both be true."""

    first: FoundNode
    second: FoundNode
    weight: float
    note: str


class ContradictionList(Schema):
    """The contradictions among what an agent knows."""

    items: list[ContradictionResource]
    bounded: bool


class RelationInput(Input):
    """A new relation of two nodes."""

    source: NodeInput
    relation: Relation
    target: NodeInput
    weight: Annotated[float, Field(ge=0, le=1)] = 1.0
    note: Annotated[str, Field(max_length=NOTE_LENGTH)] = ""


class RelationEnds(Input):
    """The relations from one node to another."""

    source: NodeInput
    target: NodeInput
    relation: Relation | None = Field(default=None, description="Null: all of them.")


class Removed(Schema):
    """The number of removed relations."""

    removed: int


class GraphQuestion(Schema):
    """A question about a node."""

    kind: GraphNodeKind
    id: UUID
    hops: _Hops = 2


class PathQuestion(Schema):
    """A question about a path between two nodes."""

    from_kind: GraphNodeKind
    from_id: UUID
    to_kind: GraphNodeKind
    to_id: UUID
    directed: bool = False


@router.get(
    "/agents/{uuid:agent_id}/graph/{question}",
    response=FoundNodes,
    summary="Show causes, evidence or neighbors of a node",
)
def ask_graph(
    request: HttpRequest,
    agent_id: UUID,
    question: Literal["causes", "evidence", "connected"],
    about: Query[GraphQuestion],
) -> FoundNodes:
    """Show the causes of a node, the evidence for it, or all that is connected with it."""
    find = _QUESTIONS[question]
    return _found(find(agent_id=agent_id, node=GraphNode(about.kind, about.id), hops=about.hops))


@router.get("/agents/{uuid:agent_id}/graph-path", response=FoundNodes, summary="Show a path between nodes")
def show_path(request: HttpRequest, agent_id: UUID, ends: Query[PathQuestion]) -> FoundNodes:
    """Show a shortest path between two nodes; an empty list: there is none."""
    return _found(
        find_path(
            agent_id=agent_id,
            start=GraphNode(ends.from_kind, ends.from_id),
            end=GraphNode(ends.to_kind, ends.to_id),
            directed=ends.directed,
        )
    )


@router.get(
    "/agents/{uuid:agent_id}/contradictions", response=ContradictionList, summary="List contradictions"
)
def list_contradictions(request: HttpRequest, agent_id: UUID) -> ContradictionList:
    """List the contradictions among what an agent knows."""
    result = find_contradictions(agent_id=agent_id)
    return ContradictionList(
        items=[
            ContradictionResource(
                first=FoundNode.of(found.first),
                second=FoundNode.of(found.second),
                weight=found.weight,
                note=found.note,
            )
            for found in result.found
        ],
        bounded=result.bounded,
    )


@router.post("/agents/{uuid:agent_id}/relations", response={201: EdgeResource}, summary="Relate two nodes")
def add_relation(request: HttpRequest, agent_id: UUID, relation: RelationInput) -> Status[EdgeResource]:
    """Relate two nodes of an agent's graph."""
    actor = access_of(request).actor
    new = NewRelation(
        source=_node(relation.source),
        target=_node(relation.target),
        relation=relation.relation,
        weight=relation.weight,
        note=relation.note,
        origin=actor,
    )
    related = relate_by_person(agent_id=agent_id, new=new, actor=actor)
    return Status(201, EdgeResource.model_validate(related.edge))


@router.post("/agents/{uuid:agent_id}/relations/remove", response=Removed, summary="Remove relations")
def remove_relations(request: HttpRequest, agent_id: UUID, wanted: RelationEnds) -> Removed:
    """Remove the relations from one node to another, in that direction."""
    removed = unrelate_by_person(
        agent_id=agent_id,
        source=_node(wanted.source),
        target=_node(wanted.target),
        relation=wanted.relation,
        actor=access_of(request).actor,
    )
    return Removed(removed=removed.count)


def _node(node: NodeInput) -> GraphNode:
    return GraphNode(node.kind, node.id)


def _found(result: TraversalResult[LabeledNode]) -> FoundNodes:
    return FoundNodes(items=[FoundNode.of(node) for node in result.found], bounded=result.bounded)
