"""The typed relations of the knowledge graph, and the kinds of nodes they connect (seed 004, "Layer 6: Graph")."""

from __future__ import annotations

from enum import StrEnum


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
