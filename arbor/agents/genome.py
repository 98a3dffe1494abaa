"""An agent's genome: a role and four traits, fixed at creation."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel

from arbor.agents.fields import FROZEN, Fraction

# Upper limits of a trait that is "strongly" the low pole, "rather" the low pole, balanced, "rather" the high pole.
STRONGLY_LOW, RATHER_LOW, RATHER_HIGH, STRONGLY_HIGH = 0.2, 0.4, 0.6, 0.8


class AgentRole(StrEnum):
    """The role of an agent in the initial population (seed 003, 3.2)."""

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
    """Four traits, each from 0 to 1 (seed 003, 3.2)."""

    model_config = FROZEN

    risk_tolerance: Fraction
    collaboration: Fraction
    depth_vs_breadth: Fraction
    quality_vs_speed: Fraction


class AgentGenome(BaseModel):
    """An agent's role and traits (seed 003, 3.2).

    The seed's `knowledge_seeds` are left out: Arbor has no library whose entries they could name.
    """

    model_config = FROZEN

    role: AgentRole
    traits: AgentTraits


def describe_traits(traits: AgentTraits) -> tuple[str, ...]:
    """Describe the four traits in words."""
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
