"""The personality seed an agent is born with: a role and four leanings, fixed for life."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel

from arbor.agents.fields import FROZEN, Fraction

# Where a leaning stops being "strongly" the low pole, "rather" the low pole, balanced, "rather" the high pole.
STRONGLY_LOW, RATHER_LOW, RATHER_HIGH, STRONGLY_HIGH = 0.2, 0.4, 0.6, 0.8


class AgentRole(StrEnum):
    """What an agent is for, in the initial population (seed 003, 3.2)."""

    #: Does whatever is needed next.
    GENERALIST = "GENERALIST"
    #: Builds and mends the tools that others build with.
    COMPILER_SMITH = "COMPILER_SMITH"
    #: Keeps what is known, and keeps it findable.
    LIBRARIAN = "LIBRARIAN"
    #: Decides how the parts fit.
    ARCHITECT = "ARCHITECT"
    #: Goes where nobody has looked.
    EXPLORER = "EXPLORER"


class AgentTraits(BaseModel):
    """Four leanings, each from 0 to 1 (seed 003, 3.2)."""

    model_config = FROZEN

    risk_tolerance: Fraction
    collaboration: Fraction
    depth_vs_breadth: Fraction
    quality_vs_speed: Fraction


class AgentGenome(BaseModel):
    """An agent's role and leanings (seed 003, 3.2).

    Its `knowledge_seeds` are left out: there is no library here whose entries they could name.
    """

    model_config = FROZEN

    role: AgentRole
    traits: AgentTraits


def describe_traits(traits: AgentTraits) -> tuple[str, ...]:
    """Say the four leanings in words, for a reader who does not know which end is 0."""
    return (
        _lean(traits.risk_tolerance, "conservative", "experimental"),
        _lean(traits.collaboration, "solitary", "team-minded"),
        _lean(traits.depth_vs_breadth, "specialised", "wide-ranging"),
        _lean(traits.quality_vs_speed, "exacting", "quick to ship"),
    )


def _lean(value: float, low: str, high: str) -> str:
    if value <= STRONGLY_LOW:
        return f"strongly {low}"
    if value <= RATHER_LOW:
        return f"rather {low}"
    if value < RATHER_HIGH:
        return f"balanced between {low} and {high}"
    if value < STRONGLY_HIGH:
        return f"rather {high}"
    return f"strongly {high}"
