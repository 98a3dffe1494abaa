"""Parse DOT texts into nodes and edges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from arbor.pipeline.conditions import EXIT_OUTCOMES, NodeOutcome, parse_condition
from arbor.pipeline.values import ALWAYS, MAX_VISITS, PipelineEdge, PipelineNode, PipelineNodeKind

# The default pipeline has less than 6,000 characters. The recursive parser needs up to 0.2 ms for a character, under a lock.
MAX_DOT_CHARACTERS = 16 * 1024

_KINDS = {
    "mdiamond": PipelineNodeKind.START,
    "msquare": PipelineNodeKind.EXIT,
    "diamond": PipelineNodeKind.BRANCH,
}
_DEFAULTS = frozenset({"node", "edge", "graph"})


@dataclass(kw_only=True, slots=True)
class ReadGraph:
    """The nodes, edges and faults of a DOT text."""

    name: str = ""
    nodes: dict[str, PipelineNode] = field(default_factory=dict)
    edges: list[PipelineEdge] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def read_dot(text: str) -> ReadGraph:
    """Parse a pipeline, collecting all faults; only invalid DOT ends the parsing."""
    reading = ReadGraph()
    graphs = _parse(text, reading)
    if reading.faults:
        return reading
    if len(graphs) != 1:
        reading.faults.append(f"the text must contain exactly one digraph, got {len(graphs)}")
        return reading
    graph = graphs[0]
    if graph.get_type() != "digraph":
        reading.faults.append(
            "a pipeline is a digraph (`digraph name { a -> b }`), this is an undirected graph"
        )
        return reading
    reading.name = _unquote(graph.get_name())
    _read_block(graph, {}, {}, reading)
    return reading


def _parse(text: str, reading: ReadGraph) -> list[Any]:
    if len(text) > MAX_DOT_CHARACTERS:
        reading.faults.append(
            f"a pipeline has at most {MAX_DOT_CHARACTERS:,} characters, this one has {len(text):,}"
        )
        return []
    from arbor.pipeline import dot_grammar  # noqa: PLC0415 (0.2 s and 15 MB; most processes parse no graph)

    try:
        return dot_grammar.parse(text)
    except dot_grammar.ParseBaseException as error:
        reading.faults.append(f"line {error.lineno}, column {error.column}: {error.msg}")
    except RecursionError:
        reading.faults.append("the blocks are nested too deeply to be read")
    return []


def _read_block(
    block: Any, node_defaults: Mapping[str, str], edge_defaults: Mapping[str, str], reading: ReadGraph
) -> None:
    """Read a graph or subgraph; its `node [...]` and `edge [...]` defaults apply to nested blocks too."""
    for item in block.get_nodes():
        if item.get_name() == "node":
            node_defaults = {**node_defaults, **_attributes(item)}
        elif item.get_name() == "edge":
            edge_defaults = {**edge_defaults, **_attributes(item)}
    for item in block.get_nodes():
        if item.get_name() not in _DEFAULTS:
            _read_node(_unquote(item.get_name()), {**node_defaults, **_attributes(item)}, reading)
    for item in block.get_edges():
        ends = item.get_source(), item.get_destination()
        if not all(isinstance(end, str) for end in ends):
            reading.faults.append("an edge joins two named nodes; write one edge for each instead of `{a b}`")
            continue
        source, target = (_unquote(end) for end in ends)
        _read_edge(source, target, {**edge_defaults, **_attributes(item)}, reading)
    for item in block.get_subgraphs():
        _read_block(item, node_defaults, edge_defaults, reading)


def _read_node(name: str, attributes: Mapping[str, str], reading: ReadGraph) -> None:
    where = f"node {name}"
    if name in reading.nodes:
        reading.faults.append(f"{where}: declared twice; write all its attributes in one place")
        return
    kind = _KINDS.get(attributes.get("shape", "").lower(), PipelineNodeKind.STEP)
    outcome = attributes.get("outcome", NodeOutcome.SUCCESS.value)
    if outcome not in EXIT_OUTCOMES:
        reading.faults.append(f"{where}: outcome must be {' or '.join(EXIT_OUTCOMES)}, got {outcome!r}")
        outcome = NodeOutcome.SUCCESS.value
    reading.nodes[name] = PipelineNode(
        name=name,
        kind=kind,
        handler=attributes.get("type", ""),
        label=attributes.get("label", ""),
        retry_target=attributes.get("retry_target", ""),
        fallback_retry_target=attributes.get("fallback_retry_target", ""),
        max_visits=_read_integer(attributes, "max_visits", MAX_VISITS, 1, where, reading),
        exit_outcome=NodeOutcome(outcome),
        attributes=MappingProxyType(dict(attributes)),
    )


def _read_edge(source: str, target: str, attributes: Mapping[str, str], reading: ReadGraph) -> None:
    where = f"edge {source} -> {target}"
    condition = ALWAYS
    try:
        condition = parse_condition(attributes.get("condition", ""))
    except ValueError as error:
        reading.faults.append(f"{where}: {error}")
    reading.edges.append(
        PipelineEdge(
            source=source,
            target=target,
            condition=condition,
            weight=_read_integer(attributes, "weight", 0, None, where, reading),
            label=attributes.get("label", ""),
        )
    )


def _read_integer(
    attributes: Mapping[str, str], name: str, default: int, least: int | None, where: str, reading: ReadGraph
) -> int:
    written = attributes.get(name, "")
    if not written:
        return default
    digits = written.removeprefix("-")
    # At most 9 digits, because int() raises ValueError for more than 4,300.
    value = int(written) if digits.isascii() and digits.isdigit() and len(digits) <= 9 else None
    if value is None or (least is not None and value < least):
        expected = "a whole number" if least is None else f"a whole number from {least}"
        reading.faults.append(f"{where}: {name} must be {expected}, got {written!r}")
        return default
    return value


def _attributes(item: Any) -> dict[str, str]:
    return {
        _unquote(name): _unquote("" if value is None else str(value))
        for name, value in item.get_attributes().items()
    }


def _unquote(text: str) -> str:
    """Strip DOT quotes."""
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return text[1:-1].replace('\\"', '"')
    return text
