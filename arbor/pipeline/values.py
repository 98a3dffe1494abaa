"""Nodes, edges and graphs of pipelines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from arbor.pipeline.conditions import Condition, NodeOutcome

# The follow-up loop of a heartbeat has ten round trips (seed 000, 6), and two retries.
MAX_VISITS = 12

# Always true: the condition of an edge whose DOT text has no `condition`.
ALWAYS = Condition()


class PipelineNodeKind(StrEnum):
    """The kinds of nodes."""

    #: The start of a run.
    START = "start"
    #: The end of a run.
    EXIT = "exit"
    #: Chooses an edge without running a handler.
    BRANCH = "branch"
    #: Runs its handler.
    STEP = "step"


@dataclass(frozen=True, kw_only=True, slots=True)
class PipelineNode:
    """One node of a pipeline; `handler` is empty unless the node is a step."""

    name: str
    kind: PipelineNodeKind
    handler: str = ""
    label: str = ""
    retry_target: str = ""
    fallback_retry_target: str = ""
    max_visits: int = MAX_VISITS
    exit_outcome: NodeOutcome = NodeOutcome.SUCCESS
    #: All attributes as written, for handlers that have parameters.
    attributes: Mapping[str, str] = field(default=MappingProxyType({}), hash=False, compare=False)

    @property
    def retry_targets(self) -> tuple[str, ...]:
        """Return the retry targets, the preferred one first."""
        return tuple(name for name in (self.retry_target, self.fallback_retry_target) if name)


@dataclass(frozen=True, kw_only=True, slots=True)
class PipelineEdge:
    """A directed edge between nodes."""

    source: str
    target: str
    condition: Condition = ALWAYS
    weight: int = 0
    label: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Graph:
    """A validated pipeline."""

    name: str
    nodes: Mapping[str, PipelineNode]
    edges: Mapping[str, tuple[PipelineEdge, ...]]
    start: str

    def edges_from(self, node: str) -> tuple[PipelineEdge, ...]:
        """Return the edges that leave a node."""
        return self.edges.get(node, ())

    @property
    def handlers(self) -> frozenset[str]:
        """Return the names of the handlers of all steps."""
        return frozenset(node.handler for node in self.nodes.values() if node.handler)
