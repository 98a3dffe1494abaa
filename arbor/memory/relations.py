"""The typed relations of the knowledge graph (seed 004, "Layer 6: Graph"), and bounded traversals along them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from arbor.errors import Invalid
from arbor.memory.content import check_line
from arbor.quotations import shorten

#: The most edges of a path, the most nodes of a traversal, and the longest time of its statement.
MAX_HOPS = 6
MAX_NODES = 1_000
TRAVERSAL_TIMEOUT_S = 2.0
#: The characters of a node's text that are shown, and the longest note of an edge.
LABEL_LENGTH = 200
NOTE_LENGTH = 2_000


class Relation(StrEnum):
    """The directed relation of a first node to a second, read from left to right."""

    #: The two are associated, without a closer relation.
    ASSOCIATED = "associated"
    #: The first caused the second.
    CAUSES = "causes"
    #: The first was concluded from the second.
    DERIVED_FROM = "derived_from"
    #: The two cannot both be true.
    CONTRADICTS = "contradicts"
    #: The first is evidence for the second.
    SUPPORTS = "supports"
    #: The second came after the first.
    TEMPORAL_NEXT = "temporal_next"
    #: The first is a case of the second, a concept.
    INSTANCE_OF = "instance_of"
    #: The first is the broader of two concepts, or the goal that the second is a part of.
    PARENT_OF = "parent_of"
    #: The first became the second.
    EVOLVED_INTO = "evolved_into"
    #: The two say nearly the same.
    SIMILAR_TO = "similar_to"
    #: The first cannot be without the second.
    REQUIRES = "requires"
    #: The first reminds of the second.
    REMINDS_OF = "reminds_of"
    #: The first was learned from the second.
    LEARNED_FROM = "learned_from"


class GraphNodeKind(StrEnum):
    """The kinds of nodes of the knowledge graph."""

    #: A memory.
    MEMORY = "memory"
    #: An abstract idea.
    CONCEPT = "concept"
    #: A statement the agent takes to be true.
    BELIEF = "belief"
    #: A part of who the agent takes itself to be.
    ASPECT = "aspect"
    #: Something the agent wants.
    GOAL = "goal"


_ALL = frozenset(Relation)


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedRelations:
    """The relations that a traversal follows: `forward` in their direction, `backward` against it."""

    forward: frozenset[Relation]
    backward: frozenset[Relation]


#: All relations, in both directions, and in their own direction only.
ALL_RELATIONS = FollowedRelations(forward=_ALL, backward=_ALL)
FORWARD_ONLY = FollowedRelations(forward=_ALL, backward=frozenset())
#: From a node to its causes, and to the nodes that it was concluded or learned from.
TO_CAUSES = FollowedRelations(
    forward=frozenset({Relation.DERIVED_FROM, Relation.LEARNED_FROM}), backward=frozenset({Relation.CAUSES})
)
#: From a node to its evidence, and to the nodes that it was concluded from.
TO_EVIDENCE = FollowedRelations(
    forward=frozenset({Relation.DERIVED_FROM}), backward=frozenset({Relation.SUPPORTS})
)


class GraphNode(NamedTuple):
    """A node of the knowledge graph."""

    kind: GraphNodeKind
    id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class TraversedEdge:
    """One edge, in its own direction; its weight is 0 to 1."""

    source: GraphNode
    target: GraphNode
    relation: Relation
    weight: float


class TraversalStep(NamedTuple):
    """The first arrival of a traversal at a node: from `via`, along the edge's direction or against it."""

    node: GraphNode
    via: UUID
    relation: Relation
    weight: float
    forward: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachedNode:
    """A node that a traversal reached, and the edges from the start to it."""

    node: GraphNode
    path: tuple[TraversedEdge, ...]

    @property
    def hops(self) -> int:
        """The number of edges from the start."""
        return len(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabeledNode:
    """A node with its label; its distance and path from the start of a traversal, if there was one."""

    kind: GraphNodeKind
    id: UUID
    label: str
    hops: int
    path: tuple[TraversedEdge, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraversalResult[T]:
    """The result of a traversal; where `bounded`, the search ended at MAX_NODES, and there are more nodes."""

    found: tuple[T, ...]
    bounded: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """Two nodes that cannot both be true, the confidence in that, and the reason."""

    first: LabeledNode
    second: LabeledNode
    weight: float
    note: str


def both_directions(relations: Iterable[Relation] | None) -> FollowedRelations:
    """Return the rule that follows these relations in both directions; None: all relations."""
    if relations is None:
        return ALL_RELATIONS
    followed = frozenset(relations)
    return FollowedRelations(forward=followed, backward=followed)


def check_hops(hops: int) -> int:
    """Return the number of edges of a traversal. Raises Invalid for a number outside 1 to MAX_HOPS."""
    if not 1 <= hops <= MAX_HOPS:
        raise Invalid(f"a traversal follows 1 to {MAX_HOPS} edges, got {hops}")
    return hops


def check_edge(source: GraphNode, target: GraphNode, *, weight: float, note: str) -> None:
    """Raise Invalid for an edge from a node to itself, with a wrong weight, or with too long a note."""
    if source.id == target.id:
        raise Invalid(f"a {source.kind} cannot be related to itself: {source.id}")
    if not 0 <= weight <= 1:
        raise Invalid(f"an edge's weight must be 0 to 1, got {weight}")
    check_line("an edge's note", note, NOTE_LENGTH)


def within_bound[T](found: Sequence[T], most: int) -> TraversalResult[T]:
    """Cut a result to `most` items; the query fetched one more to detect whether there are more."""
    return TraversalResult(found=tuple(found[:most]), bounded=len(found) > most)


def label_of(text: str) -> str:
    """Return a node's label: the beginning of its text on one line, at most LABEL_LENGTH characters."""
    return shorten(" ".join(text.split()), LABEL_LENGTH)


def reached_nodes(start: GraphNode, levels: Iterable[Sequence[TraversalStep]]) -> list[ReachedNode]:
    """Return the reached nodes with their paths, nearest first; `levels` are the steps at 1, 2, … edges from the start."""
    reached: dict[UUID, ReachedNode] = {start.id: ReachedNode(node=start, path=())}
    for level in levels:
        for step in level:
            before = reached[step.via]
            ends = (before.node, step.node) if step.forward else (step.node, before.node)
            edge = TraversedEdge(source=ends[0], target=ends[1], relation=step.relation, weight=step.weight)
            reached[step.node.id] = ReachedNode(node=step.node, path=(*before.path, edge))
    del reached[start.id]
    return list(reached.values())
