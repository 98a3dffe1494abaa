"""A pipeline as values: nodes, edges, the graph they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from arbor.pipeline.conditions import Condition
from arbor.pipeline.outcomes import Outcome

# A walk visits a node at most this often: the follow-up loop of a heartbeat has ten turns (seed 000, 6 and its
# origin), so a node seen more often than that and two retries is going round in circles.
MAX_VISITS = 12


# The condition of an edge that has none: it always holds.
ALWAYS = Condition()


class NodeKind(StrEnum):
    """What a node is to the engine."""

    #: Where the walk begins.
    START = "start"
    #: Where it ends.
    EXIT = "exit"
    #: Chooses an edge, runs nothing.
    BRANCH = "branch"
    #: Runs its handler.
    STEP = "step"


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """One node of a pipeline; `handler` is empty unless it is a step."""

    name: str
    kind: NodeKind
    handler: str = ""
    label: str = ""
    retry_target: str = ""
    fallback_retry_target: str = ""
    max_visits: int = MAX_VISITS
    exit_outcome: Outcome = Outcome.SUCCESS

    @property
    def retry_targets(self) -> tuple[str, ...]:
        """Return where the walk may go back to after a failure, the preferred one first."""
        return tuple(name for name in (self.retry_target, self.fallback_retry_target) if name)


@dataclass(frozen=True, kw_only=True, slots=True)
class Edge:
    """One way from a node to the next."""

    source: str
    target: str
    condition: Condition = ALWAYS
    weight: int = 0
    label: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Graph:
    """A checked pipeline."""

    name: str
    nodes: Mapping[str, Node]
    edges: Mapping[str, tuple[Edge, ...]]
    start: str

    def edges_from(self, node: str) -> tuple[Edge, ...]:
        """Return the edges that leave a node."""
        return self.edges.get(node, ())

    @property
    def handlers(self) -> frozenset[str]:
        """Return the handler names that the steps ask for."""
        return frozenset(node.handler for node in self.nodes.values() if node.handler)
