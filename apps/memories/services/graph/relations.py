"""Look up the nodes of an agent's knowledge graph, and create and delete their relations."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

from django.db import connection

from apps.agents.services.locks import lock_schedule
from apps.memories.models import Edge
from apps.memories.services.graph import queries
from apps.memories.services.graph.neighborhoods import mark_around
from apps.memories.services.store.term_counts import lock_minds
from apps.signals.services.emission import emit
from apps.tenants.statements import fetch
from arbor.errors import Invalid, NotFound
from arbor.ids import uuid7
from arbor.memory.relations import GraphNode, GraphNodeKind, Relation, TraversedEdge, check_edge, label_of
from arbor.signals import SignalName, signal

#: The most characters of a label that are read from the database.
_LABEL_LENGTH = 1_000
_OF_AGENT = " AND agent_id = %(agent)s"


class _NodeTable(NamedTuple):
    """The table of a kind of node, and the column of its label."""

    table: str
    label: str


#: Tables by name, because beliefs, aspects and goals belong to apps that this one must not import.
_TABLES: Mapping[GraphNodeKind, _NodeTable] = MappingProxyType(
    {
        GraphNodeKind.MEMORY: _NodeTable("memories_memory", "content"),
        GraphNodeKind.CONCEPT: _NodeTable("memories_concept", "name"),
        GraphNodeKind.BELIEF: _NodeTable("selves_belief", "statement"),
        GraphNodeKind.ASPECT: _NodeTable("selves_identityaspect", "content"),
        GraphNodeKind.GOAL: _NodeTable("goals_goal", "title"),
    }
)


def id_of(text: str) -> UUID:
    """Parse an id. Raises NotFound for other text, because nothing has such an id."""
    try:
        return UUID(text)
    except ValueError as error:
        raise NotFound(f"nothing has the id {text[:100]!r}: an id is a UUID") from error


def find_nodes(agent_id: UUID, ids: Collection[UUID]) -> dict[UUID, GraphNode]:
    """Return the nodes of this agent among the ids. One statement."""
    return {node.id: node for node in labels_of(agent_id, ids, _existing_kinds())}


def require_nodes(agent_id: UUID, nodes: Collection[GraphNode]) -> None:
    """Raise NotFound unless all nodes belong to this agent. One statement."""
    check_known(nodes, labels_of(agent_id, [node.id for node in nodes], {node.kind for node in nodes}))


def check_known(nodes: Iterable[GraphNode], known: Collection[GraphNode]) -> None:
    """Raise NotFound unless all nodes are among the known ones of this agent."""
    for node in nodes:
        if node not in known:
            raise NotFound(f"there is no {node.kind} {node.id} of this agent")


def labels_of(agent_id: UUID, ids: Collection[UUID], kinds: Iterable[GraphNodeKind]) -> dict[GraphNode, str]:
    """Return the labels (clipped texts) of the nodes with these ids, without nodes of other agents. One statement.

    Raises Invalid for a kind whose table does not exist.
    """
    return _labels(ids, kinds, _OF_AGENT, agent=agent_id)


def labels_in_tenant(ids: Collection[UUID], kinds: Iterable[GraphNodeKind]) -> dict[GraphNode, str]:
    """Return the labels (clipped texts) of nodes of any agent of the tenant. One statement.

    Raises Invalid for a kind whose table does not exist.
    """
    return _labels(ids, kinds, "")


def _labels(
    ids: Collection[UUID], kinds: Iterable[GraphNodeKind], condition: str, **values: UUID
) -> dict[GraphNode, str]:
    wanted = set(kinds)
    if missing := wanted - _existing_kinds():
        raise Invalid(f"this installation has no table for {', '.join(sorted(missing))}: run `arbor prepare`")
    if not ids or not wanted:
        return {}
    rows = fetch(_label_statement(frozenset(wanted), condition), ids=sorted(set(ids)), **values)
    return {GraphNode(GraphNodeKind(kind), node_id): label_of(label) for kind, node_id, label in rows}


@cache
def _existing_kinds() -> frozenset[GraphNodeKind]:
    """Return the kinds of nodes whose tables exist."""
    tables = set(connection.introspection.table_names())
    return frozenset(kind for kind, node_table in _TABLES.items() if node_table.table in tables)


@cache
def _label_statement(kinds: frozenset[GraphNodeKind], condition: str) -> str:
    return " UNION ALL ".join(
        queries.LABELS.format(kind=kind, **_TABLES[kind]._asdict(), most=_LABEL_LENGTH, condition=condition)
        for kind in sorted(kinds)
    )


@dataclass(frozen=True, kw_only=True)
class NewRelation:
    """A relation to create between two nodes of one agent. Raises Invalid for an edge that `check_edge` refuses."""

    source: GraphNode
    target: GraphNode
    relation: Relation
    #: The confidence, 0 to 1.
    weight: float = 1.0
    #: The reason, and who creates the relation: `heartbeat:ID`, `operator`.
    note: str = ""
    origin: str = ""

    def __post_init__(self) -> None:
        check_edge(self.source, self.target, weight=self.weight, note=self.note)

    @property
    def ends(self) -> tuple[GraphNode, GraphNode]:
        """The source and the target."""
        return self.source, self.target


def relate(*, agent_id: UUID, new: NewRelation) -> TraversedEdge:
    """Create a relation of two nodes of one agent in the open transaction; an existing one gets the higher weight and the new note, if any.

    Marks affected neighborhoods stale. If one end is a belief, the caller must update the trust of the other end.
    Raises NotFound for nodes of other agents. Up to five statements, and one more for a belief.
    """
    if any(end.kind is GraphNodeKind.BELIEF for end in new.ends):
        # Evidence leads to a proposal, which locks the agent's row after the mind.
        lock_schedule(agent_id)
    # The lock prevents an end from being purged between the check and the insert.
    lock_minds([agent_id])
    require_nodes(agent_id, new.ends)
    return _insert(agent_id, new)


def connect(
    *, agent_id: UUID, source_id: str, target_id: str, relation: Relation, note: str = "", origin: str = ""
) -> TraversedEdge:
    """Create a relation of two nodes of any kind, given by their ids as text. Up to five statements.

    Raises NotFound for nodes of other agents, Invalid if both are the same.
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
    """Delete one or all relations from a node to another; return how many were deleted. Three statements, one more for a belief."""
    if GraphNodeKind.BELIEF in (source.kind, target.kind):
        # Evidence that is withdrawn changes a proposal, which locks the agent's row after the mind.
        lock_schedule(agent_id)
    # All writers lock the mind before they mark neighborhoods, or two could deadlock.
    lock_minds([agent_id])
    _mark_stale(agent_id, source, target)
    edges = Edge.objects.filter(agent_id=agent_id, source_id=source.id, target_id=target.id)
    if relation is not None:
        edges = edges.filter(relation=Relation(relation).value)
    deleted: int = edges.delete()[0]
    return deleted


def _insert(agent_id: UUID, new: NewRelation) -> TraversedEdge:
    relation = Relation(new.relation)
    ((weight,),) = fetch(
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
    emit(
        signal(
            SignalName.KNOWLEDGE_LINKED,
            agent_id,
            relation=relation.value,
            source=new.source.id,
            target=new.target.id,
        )
    )
    return TraversedEdge(source=new.source, target=new.target, relation=relation, weight=weight)


def _mark_stale(agent_id: UUID, source: GraphNode, target: GraphNode) -> None:
    ends = (source, target)
    memories = [end.id for end in ends if end.kind is GraphNodeKind.MEMORY]
    # An edge without a memory at its ends affects no neighborhood: memories that it connects are at least three edges apart.
    if memories:
        mark_around(agent_id, ends=[end.id for end in ends], memory_ids=memories)
