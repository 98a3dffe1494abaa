"""Read a node of the knowledge graph with its relations, as a picture that links the other nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Q

from apps.agents.models import Agent
from apps.console.forms import agent_choices, chosen_agent
from apps.console.nodes import NamedNode, find_nodes, name_nodes, other_end
from apps.console.pictures.neighborhood import DrawnNeighborhood, Neighbor, draw_neighborhood
from apps.memories.models import Edge
from arbor.ids import read_id
from arbor.memory.neighborhood import HIGHEST_WEIGHT

#: Nodes drawn around the middle, and relations listed.
NODES_DRAWN = 16
RELATIONS_SHOWN = 60
#: The latest relations, whose nodes the page offers to begin with.
BEGINNINGS_READ = 30
BEGINNINGS_SHOWN = 12


@dataclass(frozen=True, kw_only=True)
class GraphRelation:
    """A relation of the node in the middle."""

    relation: str
    outward: bool
    other: NamedNode
    weight: float
    #: The address of this page with the other node in the middle; empty for a deleted node.
    address: str


@dataclass(frozen=True, kw_only=True)
class GraphPage:
    """The picture of a node and its relations; without a node, the nodes to begin with."""

    agents: Sequence[tuple[str, str]]
    agent: Agent | None
    node: NamedNode | None
    #: The relations with the highest weights.
    relations: Sequence[GraphRelation]
    has_more_relations: bool
    picture: DrawnNeighborhood | None
    #: [(node, address)].
    beginnings: Sequence[tuple[NamedNode, str]]
    missing: bool = False

    @property
    def hidden(self) -> int:
        """Return the number of nodes that are listed but not drawn."""
        return max(0, len({line.other.id for line in self.relations if line.address}) - NODES_DRAWN)


def read_graph(parameters: Mapping[str, Any]) -> GraphPage:
    """Read the page for the parameters of its address."""
    agent = chosen_agent(parameters)
    node_id = read_id(parameters.get("node", ""))
    nodes = find_nodes(agent.id, [node_id]) if agent and node_id else []
    node = nodes[0] if nodes else None
    found = _relations(agent, node) if agent and node else []
    relations = found[:RELATIONS_SHOWN]
    return GraphPage(
        agents=agent_choices(),
        agent=agent,
        node=node,
        relations=relations,
        has_more_relations=len(found) > RELATIONS_SHOWN,
        picture=draw_neighborhood(_neighbors(relations)),
        beginnings=_beginnings(agent) if agent and node is None else (),
        missing=bool(parameters.get("node")) and node is None,
    )


def _address(agent: Agent, node_id: UUID) -> str:
    return f"?{urlencode({'agent': agent.id, 'node': node_id})}"


def _relations(agent: Agent, node: NamedNode) -> list[GraphRelation]:
    ends = Q(source_id=node.id) | Q(target_id=node.id)
    edges = list(
        Edge.objects.filter(ends, agent_id=agent.id).order_by("-weight", "-id")[: RELATIONS_SHOWN + 1]
    )
    others = {edge.id: other_end(edge, node.id) for edge in edges}
    named = name_nodes(agent.id, list(others.values()))
    lines = []
    for edge in edges:
        other = named[others[edge.id]]
        lines.append(
            GraphRelation(
                relation=edge.relation.replace("_", " "),
                outward=edge.source_id == node.id,
                other=other,
                weight=edge.weight,
                address=_address(agent, other.id) if other.page else "",
            )
        )
    return lines


def _neighbors(relations: Sequence[GraphRelation]) -> list[Neighbor]:
    """Return the nodes around the middle, the heaviest relation first, each once with all of its relations."""
    together: dict[UUID, list[GraphRelation]] = {}
    for line in relations:
        if line.address:
            together.setdefault(line.other.id, []).append(line)
    return [
        Neighbor(
            id=node_id,
            page=lines[0].address,
            text=f"{_arrow(lines[0])} {lines[0].other.text}",
            type=lines[0].other.kind,
            weight=lines[0].weight * HIGHEST_WEIGHT,
            relation=", ".join(_arrow(line) for line in lines),
        )
        for node_id, lines in list(together.items())[:NODES_DRAWN]
    ]


def _arrow(line: GraphRelation) -> str:
    return f"{line.relation} →" if line.outward else f"← {line.relation}"


def _beginnings(agent: Agent) -> list[tuple[NamedNode, str]]:
    edges = Edge.objects.filter(agent_id=agent.id).order_by("-id")[:BEGINNINGS_READ]
    ends = dict.fromkeys(
        end
        for edge in edges
        for end in ((edge.source_kind, edge.source_id), (edge.target_kind, edge.target_id))
    )
    named = name_nodes(agent.id, list(ends))
    nodes = [node for node in named.values() if node.page][:BEGINNINGS_SHOWN]
    return [(node, _address(agent, node.id)) for node in nodes]
