"""Load and validate pipelines in DOT.

The shape of a node is its kind: `Mdiamond` the start, `Msquare` an exit, `diamond` a branch, anything else a step. A step's
attribute `type` names its handler. Further attributes: on a step `retry_target`, `fallback_retry_target` and
`max_visits`; on an exit `outcome` (success, failure or skipped); on an edge `condition`,
`label` and `weight`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from arbor.errors import PipelineInvalid
from arbor.pipeline.dot import read_dot
from arbor.pipeline.lint import find_faults, find_unknown_handlers
from arbor.pipeline.values import Graph, PipelineEdge, PipelineNode, PipelineNodeKind

# Parsed pipelines: the default one and those of templates.
CACHED_GRAPHS = 256

HEARTBEAT_DOT = Path(__file__).with_name("heartbeat.dot")


def load_graph(text: str, *, handlers: Collection[str]) -> Graph:
    """Parse and check a pipeline, cached by text.

    Raises PipelineInvalid with every fault: DOT syntax, one start, an exit, declared targets, conditions, every node
    reachable and able to reach an exit, every handler known.
    """
    checked = _read(text)
    faults = (*checked.faults, *find_unknown_handlers(checked.nodes.values(), handlers))
    if checked.graph is None or faults:
        raise PipelineInvalid(faults=faults)
    return checked.graph


@lru_cache(maxsize=1)
def heartbeat_text() -> str:
    """Return the DOT text of the default pipeline."""
    return HEARTBEAT_DOT.read_text(encoding="utf-8")


@dataclass(frozen=True, kw_only=True, slots=True)
class _CheckedText:
    """The parsed pipeline and its faults, apart from unknown handlers."""

    nodes: Mapping[str, PipelineNode]
    graph: Graph | None
    faults: tuple[str, ...]


@lru_cache(maxsize=CACHED_GRAPHS)
def _read(text: str) -> _CheckedText:
    reading = read_dot(text)
    faults = list(reading.faults)
    if reading.nodes:
        faults += find_faults(reading.nodes, reading.edges)
    elif not faults:
        # DOT declares nodes by edges; a mistyped name would be a node.
        undeclared = "; declare each node, as `a [shape=Mdiamond]`: an edge alone makes none"
        faults.append(f"the graph has no nodes{undeclared if reading.edges else ''}")
    if faults:
        return _CheckedText(nodes=reading.nodes, graph=None, faults=tuple(faults))
    edges: dict[str, tuple[PipelineEdge, ...]] = {}
    for edge in reading.edges:
        edges[edge.source] = (*edges.get(edge.source, ()), edge)
    start = next(node.name for node in reading.nodes.values() if node.kind is PipelineNodeKind.START)
    graph = Graph(name=reading.name, nodes=reading.nodes, edges=edges, start=start)
    return _CheckedText(nodes=reading.nodes, graph=graph, faults=())
