"""Load and validate pipelines in DOT.

The shape of a node is its kind: `Mdiamond` the start, `Msquare` an exit, `diamond` a branch, anything else a step. A step's
attribute `type` names its handler. Further attributes: on a step `retry_target` and `fallback_retry_target`; on a step or
branch `max_visits`; on an exit `outcome` (success, failure or skipped); on an edge `condition`, `label` and `weight`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from arbor.errors import PipelineInvalid
from arbor.pipeline.dot import ReadGraph, read_dot
from arbor.pipeline.values import Graph, PipelineEdge, PipelineNode, PipelineNodeKind

# Parsed pipelines: the default one and those of templates.
CACHED_GRAPHS = 256

HEARTBEAT_DOT = Path(__file__).with_name("heartbeat.dot")


def load_graph(text: str, *, handlers: Collection[str]) -> Graph:
    """Parse and check a pipeline, cached by text.

    Raises PipelineInvalid with every fault: DOT syntax, one start, an exit, declared targets, conditions, every node
    reachable and able to reach an exit, every handler known.
    """
    reading, graph = _read(text)
    faults = (*reading.faults, *find_unknown_handlers(reading.nodes.values(), handlers))
    if graph is None or faults:
        raise PipelineInvalid(faults=faults)
    return graph


@lru_cache(maxsize=1)
def heartbeat_text() -> str:
    """Return the DOT text of the default pipeline."""
    return HEARTBEAT_DOT.read_text(encoding="utf-8")


@lru_cache(maxsize=CACHED_GRAPHS)
def _read(text: str) -> tuple[ReadGraph, Graph | None]:
    """Return the parsed pipeline with its faults apart from unknown handlers, and the graph if there are none."""
    reading = read_dot(text)
    if reading.nodes:
        reading.faults += find_faults(reading.nodes, reading.edges)
    elif not reading.faults:
        # DOT declares nodes by edges; a mistyped name would be a node.
        undeclared = "; declare each node, as `a [shape=Mdiamond]`: an edge alone makes none"
        reading.faults.append(f"the graph has no nodes{undeclared if reading.edges else ''}")
    if reading.faults:
        return reading, None
    edges: dict[str, tuple[PipelineEdge, ...]] = {}
    for edge in reading.edges:
        edges[edge.source] = (*edges.get(edge.source, ()), edge)
    start = next(node.name for node in reading.nodes.values() if node.kind is PipelineNodeKind.START)
    return reading, Graph(name=reading.name, nodes=reading.nodes, edges=edges, start=start)


def find_faults(nodes: Mapping[str, PipelineNode], edges: Sequence[PipelineEdge]) -> Iterator[str]:
    """Yield the faults of the graph, each one line that names the node or edge."""
    yield from _check_ends(nodes)
    for node in nodes.values():
        yield from _check_attributes(node, nodes)
    yield from _check_edges(nodes, edges)
    yield from _check_reachability(nodes, edges)


def find_unknown_handlers(nodes: Iterable[PipelineNode], known: Collection[str]) -> Iterator[str]:
    """Yield a fault for each step with an unknown handler."""
    for node in nodes:
        if node.handler and node.handler not in known:
            yield f"node {node.name}: no handler is called {node.handler!r}; known: {', '.join(sorted(known))}"


def _check_ends(nodes: Mapping[str, PipelineNode]) -> Iterator[str]:
    starts = [node.name for node in nodes.values() if node.kind is PipelineNodeKind.START]
    if len(starts) != 1:
        names = ", ".join(starts) or "none"
        yield f"a pipeline has exactly one start (shape=Mdiamond), found {names}"
    if not any(node.kind is PipelineNodeKind.EXIT for node in nodes.values()):
        yield "a pipeline has at least one exit (shape=Msquare), found none"


def _check_attributes(node: PipelineNode, nodes: Mapping[str, PipelineNode]) -> Iterator[str]:
    if node.kind is PipelineNodeKind.STEP and not node.handler:
        yield f'node {node.name}: a step names its handler (type="...")'
    if node.kind is not PipelineNodeKind.STEP and node.handler:
        yield f"node {node.name}: only a step has a type; a {node.kind} runs no handler"
    if node.kind is not PipelineNodeKind.STEP and node.retry_targets:
        yield f"node {node.name}: only a step can fail, so a {node.kind} has no retry target"
    for target in node.retry_targets:
        if target not in nodes:
            yield f"node {node.name}: its retry target {target} is not declared"


def _check_edges(nodes: Mapping[str, PipelineNode], edges: Sequence[PipelineEdge]) -> Iterator[str]:
    for edge in edges:
        where = f"edge {edge.source} -> {edge.target}"
        for end in (edge.source, edge.target):
            if end not in nodes:
                yield f"{where}: node {end} is not declared"
        if edge.source in nodes and nodes[edge.source].kind is PipelineNodeKind.EXIT:
            yield f"{where}: nothing leaves an exit"
        if edge.target in nodes and nodes[edge.target].kind is PipelineNodeKind.START:
            yield f"{where}: nothing leads back to the start"


def _check_reachability(nodes: Mapping[str, PipelineNode], edges: Sequence[PipelineEdge]) -> Iterator[str]:
    """Check that the start reaches every node, and every node an exit, by edges and retry targets."""
    successors: dict[str, set[str]] = {name: set() for name in nodes}
    predecessors: dict[str, set[str]] = {name: set() for name in nodes}
    arrows = [(edge.source, edge.target) for edge in edges]
    arrows += [(node.name, target) for node in nodes.values() for target in node.retry_targets]
    for source, target in arrows:
        if source in nodes and target in nodes:
            successors[source].add(target)
            predecessors[target].add(source)
    reached = _reachable(
        successors, [node.name for node in nodes.values() if node.kind is PipelineNodeKind.START]
    )
    leading_to_exit = _reachable(
        predecessors, [node.name for node in nodes.values() if node.kind is PipelineNodeKind.EXIT]
    )
    for name in nodes:
        if name not in reached:
            yield f"node {name}: no way leads to it from the start"
        if name not in leading_to_exit:
            yield f"node {name}: no way leads from it to an exit"


def _reachable(arrows: Mapping[str, set[str]], begin: Iterable[str]) -> set[str]:
    reached_nodes, waiting = set(), list(begin)
    while waiting:
        name = waiting.pop()
        if name not in reached_nodes:
            reached_nodes.add(name)
            waiting.extend(arrows[name])
    return reached_nodes
