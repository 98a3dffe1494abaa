"""The typed relations of the knowledge graph (seed 004, "Layer 6: Graph"), and bounded traversals along them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from arbor.errors import Invalid

#: Edges that a walk goes in a row, nodes that it visits, and how long it may take in the database.
MAX_HOPS = 6
MAX_NODES = 1_000
LONGEST_S = 2.0
#: What is shown of a node's text, and what may be noted on an edge.
LABEL_LENGTH = 200
NOTE_LENGTH = 2_000


class Relation(StrEnum):
    """The directed relation of a first node to a second, read from left to right."""

    #: They come to mind together.
    ASSOCIATED = "associated"
    #: The first brought the second about.
    CAUSES = "causes"
    #: The first was concluded from the second.
    DERIVED_FROM = "derived_from"
    #: They cannot both be true.
    CONTRADICTS = "contradicts"
    #: The first is evidence for the second.
    SUPPORTS = "supports"
    #: The second came after the first.
    TEMPORAL_NEXT = "temporal_next"
    #: The first is a case of the second, a concept.
    INSTANCE_OF = "instance_of"
    #: The first is the broader of two concepts, or the goal that the second is a part of.
    PARENT_OF = "parent_of"
    #: The second is what became of the first.
    EVOLVED_INTO = "evolved_into"
    #: They say nearly the same.
    SIMILAR_TO = "similar_to"
    #: The first cannot be without the second.
    REQUIRES = "requires"
    #: The first brings the second to mind.
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
class Paths:
    """The relations that a traversal follows: in their direction, and against it."""

    onward: frozenset[Relation]
    back: frozenset[Relation]


#: Whatever is related, and whatever follows in the direction of its relations.
ANYWHERE = Paths(onward=_ALL, back=_ALL)
ONWARD = Paths(onward=_ALL, back=frozenset())
#: What brought something about: its causes, and what it was concluded or learned from.
TO_CAUSES = Paths(
    onward=frozenset({Relation.DERIVED_FROM, Relation.LEARNED_FROM}), back=frozenset({Relation.CAUSES})
)
#: What speaks for something: its evidence, and what it was concluded from.
TO_EVIDENCE = Paths(onward=frozenset({Relation.DERIVED_FROM}), back=frozenset({Relation.SUPPORTS}))


class GraphNode(NamedTuple):
    """One thing in the graph."""

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
    onward: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """A node that a walk came to, `hops` edges from where it began, and the edges that led there."""

    node: GraphNode
    path: tuple[TraversedEdge, ...]

    @property
    def hops(self) -> int:
        """The number of edges from the start."""
        return len(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraversedNode:
    """A node that a traversal found: kind, beginning of its text, distance, and path."""

    kind: GraphNodeKind
    id: UUID
    label: str
    hops: int
    path: tuple[TraversedEdge, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraversalResult[T]:
    """The result of a traversal; where `bounded`, MAX_NODES were reached and there may be more."""

    found: tuple[T, ...]
    bounded: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """Two things that cannot both be true, how sure that is, and why."""

    first: TraversedNode
    second: TraversedNode
    weight: float
    note: str


def paths_of(relations: Iterable[Relation] | None) -> Paths:
    """Return the paths that follow these relations both ways; none named: all."""
    if relations is None:
        return ANYWHERE
    followed = frozenset(relations)
    return Paths(onward=followed, back=followed)


def check_hops(hops: int) -> int:
    """Return how far a walk is to go. Raises Invalid unless that is 1 to MAX_HOPS."""
    if not 1 <= hops <= MAX_HOPS:
        raise Invalid(f"a walk goes 1 to {MAX_HOPS} edges far, asked for {hops}")
    return hops


def check_edge(source: GraphNode, target: GraphNode, *, weight: float, note: str) -> None:
    """Raise Invalid for an edge that cannot be: from a thing to itself, of no weight there is, or with too long a note."""
    if source.id == target.id:
        raise Invalid(f"a {source.kind} cannot be tied to itself: {source.id}")
    if not (math.isfinite(weight) and 0 <= weight <= 1):
        raise Invalid(f"an edge's weight must be 0 to 1, got {weight}")
    if len(note) > NOTE_LENGTH or "\0" in note:
        raise Invalid(f"an edge's note is up to {NOTE_LENGTH} characters without NUL, got {len(note)}")


def within_bound[T](found: Sequence[T], most: int) -> TraversalResult[T]:
    """Return an answer of `most` at most, of what was asked for one more to know whether there is more."""
    return TraversalResult(found=tuple(found[:most]), bounded=len(found) > most)


def clip(text: str) -> str:
    """Return the beginning of a text on one line, LABEL_LENGTH at most."""
    line = " ".join(text.split())
    return line if len(line) <= LABEL_LENGTH else f"{line[: LABEL_LENGTH - 1]}…"


def unfold(start: GraphNode, levels: Iterable[Sequence[TraversalStep]]) -> list[Reached]:
    """Return what was reached with the paths there, nearest first; `levels` are the steps taken at 1, 2, … edges."""
    reached: dict[UUID, Reached] = {start.id: Reached(node=start, path=())}
    for level in levels:
        for step in level:
            before = reached[step.via]
            ends = (before.node, step.node) if step.onward else (step.node, before.node)
            tie = TraversedEdge(source=ends[0], target=ends[1], relation=step.relation, weight=step.weight)
            reached[step.node.id] = Reached(node=step.node, path=(*before.path, tie))
    del reached[start.id]
    return list(reached.values())
