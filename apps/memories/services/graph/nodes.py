"""Look up the nodes of an agent's knowledge graph in their tables; never those of other agents."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

from django.db import connection

from apps.tenants.statements import fetch
from arbor.errors import Invalid, NotFound
from arbor.memory.relations import GraphNode, GraphNodeKind, clip


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
#: A label is clipped when it is read: of a long memory no more than this leaves the database.
_READ = 1_000
_OF_AGENT = " AND agent_id = %(agent)s"


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
    rows = fetch(_statement(frozenset(wanted), condition), ids=sorted(set(ids)), **values)
    return {GraphNode(GraphNodeKind(kind), node_id): clip(label) for kind, node_id, label in rows}


@cache
def _present() -> frozenset[GraphNodeKind]:
    tables = set(connection.introspection.table_names())
    return frozenset(kind for kind, place in _PLACES.items() if place.table in tables)


@cache
def _statement(kinds: frozenset[GraphNodeKind], condition: str) -> str:
    return " UNION ALL ".join(
        f"SELECT '{kind}' AS kind, id, left({_PLACES[kind].label}, {_READ}) FROM {_PLACES[kind].table}"  # noqa: S608 (our own names)
        f" WHERE tenant_id = %(tenant)s{condition} AND id = ANY(%(ids)s::uuid[])"
        for kind in sorted(kinds)
    )
