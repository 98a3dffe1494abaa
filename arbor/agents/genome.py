"""An agent's genome: a role and four traits, fixed at creation."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, Field, StringConstraints

# A template is part of its agents' prompts at every heartbeat, so the length of each text is limited.
LINE_LENGTH = 300
PROSE_LENGTH = 8_000
LIST_LENGTH = 50

#: A short text on one line or a few: a name, a trait, a value.
Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LINE_LENGTH)]
#: A Line that may be empty.
OptionalLine = Annotated[str, StringConstraints(strip_whitespace=True, max_length=LINE_LENGTH)]
#: A paragraph or several.
Prose = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=PROSE_LENGTH)]
#: Prose that may be empty.
OptionalProse = Annotated[str, StringConstraints(strip_whitespace=True, max_length=PROSE_LENGTH)]
#: A number from 0 to 1. Strict: the text "0.5" and the word `true` are not numbers.
Fraction = Annotated[float, Field(strict=True, ge=0, le=1)]

Lines = Annotated[tuple[Line, ...], Field(max_length=LIST_LENGTH)]
Proses = Annotated[tuple[Prose, ...], Field(max_length=LIST_LENGTH)]


# The limits between the five descriptions of a trait: strongly low, rather low, balanced, rather high, strongly high.
STRONGLY_LOW, RATHER_LOW, RATHER_HIGH, STRONGLY_HIGH = 0.2, 0.4, 0.6, 0.8


class AgentRole(StrEnum):
    """The role of an agent in the initial population (seed 003, 3.2)."""

    #: Does whatever is needed next.
    GENERALIST = "GENERALIST"
    #: Builds and repairs the tools that others build with.
    COMPILER_SMITH = "COMPILER_SMITH"
    #: Collects knowledge and makes it easy to find.
    LIBRARIAN = "LIBRARIAN"
    #: Decides how the parts fit.
    ARCHITECT = "ARCHITECT"
    #: Explores the unknown.
    EXPLORER = "EXPLORER"


class AgentPart(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """A part of an agent or of a template: immutable, with known keys only."""


class AgentTraits(AgentPart):
    """Four traits, each from 0 to 1 (seed 003, 3.2)."""

    risk_tolerance: Fraction
    collaboration: Fraction
    depth_vs_breadth: Fraction
    quality_vs_speed: Fraction


class AgentGenome(AgentPart):
    """An agent's role and traits (seed 003, 3.2).

    The seed's `knowledge_seeds` are left out: Arbor has no library whose entries they could name.
    """

    role: AgentRole
    traits: AgentTraits


def describe_traits(traits: AgentTraits) -> tuple[str, ...]:
    """Describe the four traits in words."""
    return (
        _describe_trait(traits.risk_tolerance, "conservative", "experimental"),
        _describe_trait(traits.collaboration, "solitary", "team-minded"),
        _describe_trait(traits.depth_vs_breadth, "specialised", "wide-ranging"),
        _describe_trait(traits.quality_vs_speed, "exacting", "quick to ship"),
    )


def _describe_trait(value: float, low: str, high: str) -> str:
    if value <= STRONGLY_LOW:
        return f"strongly {low}"
    if value <= RATHER_LOW:
        return f"rather {low}"
    if value < RATHER_HIGH:
        return f"balanced between {low} and {high}"
    if value < STRONGLY_HIGH:
        return f"rather {high}"
    return f"strongly {high}"
