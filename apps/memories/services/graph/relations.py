"""Look up the nodes of an agent's knowledge graph, and create and delete their relations."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

from django.db import connection

from apps.memories.models import Edge
from apps.memories.services.graph import queries
from apps.memories.services.graph.neighborhoods import mark_around
from apps.memories.services.store.term_counts import lock_minds
from apps.tenants.statements import fetch
from arbor.errors import Invalid, NotFound
from arbor.ids import uuid7
from arbor.memory.relations import GraphNode, GraphNodeKind, Relation, TraversedEdge, check_edge, clip

#: A label is clipped when it is read: of a long memory no more than this leaves the database.
_READ = 1_000
_OF_AGENT = " AND agent_id = %(agent)s"


class _Place(NamedTuple):
    """The table of a kind of node, and the column of its label."""

    table: str
    label: str


#: By name: beliefs and aspects belong to an app that this one must not reach (a contract of the imports).
_PLACES: Mapping[GraphNodeKind, _Place] = MappingProxyType(
    {
        GraphNodeKind.MEMORY: _Place("memories_memory", "content"),
        GraphNodeKind.CONCEPT: _Place("memories_concept", "name"),
        GraphNodeKind.BELIEF: _Place("selves_belief", "statement"),
        GraphNodeKind.ASPECT: _Place("selves_identityaspect", "content"),
        GraphNodeKind.GOAL: _Place("goals_goal", "title"),
    }
)


def id_of(text: str) -> UUID:
    """Return an id written as text. Raises NotFound for what is none: nothing has it."""
    try:
        return UUID(text)
    except ValueError as error:
        raise NotFound(f"{text!r} is no id") from error


def find_nodes(agent_id: UUID, ids: Collection[UUID]) -> dict[UUID, GraphNode]:
    """Return which of these ids are things of this agent, and of what kind. One statement."""
    return {node.id: node for node in labels_of(agent_id, ids, _present())}


def require(agent_id: UUID, nodes: Collection[GraphNode]) -> None:
    """Raise NotFound unless all of these are this agent's. One statement."""
    known = labels_of(agent_id, [node.id for node in nodes], {node.kind for node in nodes})
    for node in nodes:
        if node not in known:
            raise NotFound(f"there is no {node.kind} {node.id} of this agent")


def labels_of(agent_id: UUID, ids: Collection[UUID], kinds: Iterable[GraphNodeKind]) -> dict[GraphNode, str]:
    """Return the beginnings of what these things say, those that are this agent's. One statement.

    Raises Invalid for a kind whose table is not there.
    """
    return _labels(ids, kinds, _OF_AGENT, agent=agent_id)


def labels_in_tenant(ids: Collection[UUID], kinds: Iterable[GraphNodeKind]) -> dict[GraphNode, str]:
    """Return the beginnings of what these things say, whichever of the tenant's agents has them. One statement.

    Raises Invalid for a kind whose table is not there.
    """
    return _labels(ids, kinds, "")


def _labels(
    ids: Collection[UUID], kinds: Iterable[GraphNodeKind], condition: str, **values: UUID
) -> dict[GraphNode, str]:
    wanted = set(kinds)
    if missing := wanted - _present():
        raise Invalid(f"this installation has no table for {', '.join(sorted(missing))}: run `arbor prepare`")
    if not ids or not wanted:
        return {}
    rows = fetch(_label_statement(frozenset(wanted), condition), ids=sorted(set(ids)), **values)
    return {GraphNode(GraphNodeKind(kind), node_id): clip(label) for kind, node_id, label in rows}


@cache
def _present() -> frozenset[GraphNodeKind]:
    tables = set(connection.introspection.table_names())
    return frozenset(kind for kind, place in _PLACES.items() if place.table in tables)


@cache
def _label_statement(kinds: frozenset[GraphNodeKind], condition: str) -> str:
    return " UNION ALL ".join(
        queries.LABELS.format(kind=kind, **_PLACES[kind]._asdict(), most=_READ, condition=condition)
        for kind in sorted(kinds)
    )


@dataclass(frozen=True, kw_only=True)
class NewRelation:
    """A relation to be made between two things of one agent. Raises Invalid for a thing and itself."""

    source: GraphNode
    target: GraphNode
    relation: Relation
    #: How sure, 0 to 1.
    weight: float = 1.0
    #: Why, and who says so: `heartbeat:ID`, `operator`.
    note: str = ""
    origin: str = ""

    def __post_init__(self) -> None:
        check_edge(self.source, self.target, weight=self.weight, note=self.note)

    @property
    def ends(self) -> tuple[GraphNode, GraphNode]:
        """The source and the target."""
        return self.source, self.target


def relate(*, agent_id: UUID, new: NewRelation) -> TraversedEdge:
    """Relate two things of one agent, in the open transaction; the same again raises the weight to the higher one.

    Neighborhoods that change by it become stale. Where an end is a belief, the caller updates the trust of the other.
    Raises NotFound for what is not this agent's. Four statements.
    """
    # Nobody may purge an end between the look and the edge.
    lock_minds([agent_id])
    require(agent_id, new.ends)
    return _insert(agent_id, new)


def connect(
    *, agent_id: UUID, source_id: str, target_id: str, relation: Relation, note: str = "", origin: str = ""
) -> TraversedEdge:
    """Relate two things by their ids as text, whatever they are. Four statements.

    Raises NotFound for what is not this agent's, Invalid for a thing and itself.
    """
    ids = (id_of(source_id), id_of(target_id))
    lock_minds([agent_id])
    known = find_nodes(agent_id, ids)
    missing = [str(end_id) for end_id in ids if end_id not in known]
    if missing:
        kinds = ", ".join(GraphNodeKind)
        raise NotFound(f"there is no {kinds} {' or '.join(missing)} of this agent")
    source, target = (known[end_id] for end_id in ids)
    return _insert(
        agent_id,
        NewRelation(source=source, target=target, relation=relation, note=note, origin=origin),
    )


def unrelate(
    *, agent_id: UUID, source: GraphNode, target: GraphNode, relation: Relation | None = None
) -> int:
    """Delete a relation, or all from one node to the other; return how many were deleted. Two statements."""
    _mark_stale(agent_id, source, target)
    edges = Edge.objects.filter(agent_id=agent_id, source_id=source.id, target_id=target.id)
    if relation is not None:
        edges = edges.filter(relation=Relation(relation).value)
    deleted: int = edges.delete()[0]
    return deleted


def _insert(agent_id: UUID, new: NewRelation) -> TraversedEdge:
    relation = Relation(new.relation)
    ((reached,),) = fetch(
        queries.WRITE_RELATION,
        agent=agent_id,
        id=uuid7(),
        source_kind=new.source.kind.value,
        source=new.source.id,
        target_kind=new.target.kind.value,
        target=new.target.id,
        relation=relation.value,
        weight=new.weight,
        note=new.note,
        origin=new.origin,
    )
    _mark_stale(agent_id, new.source, new.target)
    return TraversedEdge(source=new.source, target=new.target, relation=relation, weight=reached)


def _mark_stale(agent_id: UUID, source: GraphNode, target: GraphNode) -> None:
    ends = (source, target)
    memories = [end.id for end in ends if end.kind is GraphNodeKind.MEMORY]
    # Between two concepts or goals it is three edges from one memory to the next: further than neighborhoods reach.
    if memories:
        mark_around(agent_id, [end.id for end in ends], memories)
