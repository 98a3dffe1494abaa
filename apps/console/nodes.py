"""Look up nodes of the knowledge graph, to show them by their texts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.utils.safestring import SafeString

from apps.console import cells
from apps.memories.models import Edge
from apps.memories.services.graph.relations import labels_in_tenant, labels_of
from arbor.ids import read_id
from arbor.memory.relations import GraphNodeKind


@dataclass(frozen=True, kw_only=True)
class NamedNode:
    """A node of the graph with its text and the address of its page; the address is empty for a deleted node."""

    kind: str
    id: UUID
    text: str
    page: str


def find_nodes(agent_id: UUID, ids: Collection[UUID]) -> list[NamedNode]:
    """Return the nodes of the agent with these ids; other ids are left out."""
    return [
        NamedNode(
            kind=node.kind, id=node.id, text=text, page=cells.page_of(cells.NODE_PAGES[node.kind], node.id)
        )
        for node, text in labels_of(agent_id, ids, GraphNodeKind).items()
    ]


def parse_id(value: object) -> UUID | None:
    """Parse the text of a UUID in stored JSON; return None for other values."""
    return read_id(value) if isinstance(value, str) else None


def other_end(edge: Edge, node_id: UUID) -> tuple[str, UUID]:
    """Return the kind and id of the node at the other end of a node's relation."""
    if edge.source_id == node_id:
        return edge.target_kind, edge.target_id
    return edge.source_kind, edge.source_id


def link_ids(agent_id: UUID, texts: Sequence[str]) -> list[SafeString | str]:
    """Replace the ids of the agent's nodes among the texts by links with the texts of the nodes. One query."""
    ids = {row_id for text in texts if (row_id := parse_id(text)) is not None}
    named = {str(node.id): cells.node(node.kind, node.id, node.text) for node in find_nodes(agent_id, ids)}
    return [named.get(text, text) for text in texts]


def name_nodes(
    agent_id: UUID | None, ends: Collection[tuple[str, UUID]]
) -> dict[tuple[str, UUID], NamedNode]:
    """Return the nodes of an agent, or of any agent of the tenant, by kind and id; a deleted node has the text "gone"."""
    # Another version of Arbor may have stored a kind without a table here.
    kinds = {GraphNodeKind(kind) for kind, _ in ends if kind in GraphNodeKind}
    ids = [row_id for _, row_id in ends]
    labels = labels_of(agent_id, ids, kinds) if agent_id else labels_in_tenant(ids, kinds)
    texts = {(str(node.kind), node.id): text for node, text in labels.items()}
    return {
        (kind, row_id): NamedNode(
            kind=kind,
            id=row_id,
            text=texts.get((kind, row_id), "gone"),
            page=cells.page_of(cells.NODE_PAGES[kind], row_id) if (kind, row_id) in texts else "",
        )
        for kind, row_id in ends
    }
