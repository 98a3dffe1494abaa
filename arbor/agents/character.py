"""An agent's character, and its rendering as a system prompt."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from arbor.agents.genome import (
    LIST_LENGTH,
    AgentGenome,
    AgentPart,
    Fraction,
    Line,
    Lines,
    OptionalLine,
    OptionalProse,
    Prose,
    Proses,
    describe_traits,
)
from arbor.selves.self_knowledge import Quality, SelfKnowledge

#: The least intensity of a trait that is called high, and moderate (seed 000, 1).
HIGH_INTENSITY = 0.7
MODERATE_INTENSITY = 0.4


class Trait(AgentPart):
    """One trait of character; intensity from 0 to 1."""

    name: Line
    intensity: Fraction


class KnowledgeItem(AgentPart):
    """One thing the character knows from the start."""

    category: Line
    content: Prose


class RelationshipStyle(AgentPart):
    """An agent's manner with others."""

    approach: OptionalProse = ""
    communication: OptionalProse = ""
    conflict: OptionalProse = ""
    growth: OptionalProse = ""


class Character(AgentPart):
    """A personality, the same at every heartbeat."""

    name: Line
    description: OptionalProse = ""
    role: OptionalLine = ""
    tone: OptionalLine = ""
    style: OptionalProse = ""
    traits: Annotated[tuple[Trait, ...], Field(max_length=LIST_LENGTH)] = ()
    values: Lines = ()
    quirks: Lines = ()
    knowledge: Annotated[tuple[KnowledgeItem, ...], Field(max_length=LIST_LENGTH)] = ()
    #: The kind of being, in a sentence or two.
    nature: OptionalProse = ""
    background: OptionalProse = ""
    #: The world its work takes place in.
    domain_context: OptionalProse = ""
    instructions: Proses = ()
    relationship_style: RelationshipStyle = RelationshipStyle()


def to_system_prompt(
    character: Character,
    *,
    name: str | None = None,
    genome: AgentGenome | None = None,
    knowledge: SelfKnowledge | None = None,
) -> str:
    """Render a character as its agent's system prompt; equal input gives equal bytes.

    `name` is the individual's own name, where it is not the character's. `knowledge` has the traits, values and capabilities that
    the agent has now; without it, the traits and values of its birth are shown. Sections without content are omitted.
    """
    own_name = name or character.name
    opening = f"You are {own_name}."
    if own_name != character.name:
        opening += f" Your character is called {character.name}."
    if character.description:
        opening += f" {character.description}"
    sections = (
        (f"# Character: {own_name}", opening),
        ("## Identity", _identity(character)),
        ("## Personality", _personality(character, genome, knowledge or _at_birth(character))),
        ("## Voice", _voice(character)),
        ("## Knowledge", _knowledge(character)),
        ("## Instructions", _bullets(character.instructions)),
    )
    return "\n\n".join(f"{heading}\n\n{content}" for heading, content in sections if content) + "\n"


def intensity_word(intensity: float) -> str:
    """Return high, moderate or low for an intensity from 0 to 1."""
    if intensity >= HIGH_INTENSITY:
        return "high"
    return "moderate" if intensity >= MODERATE_INTENSITY else "low"


def _identity(character: Character) -> str:
    return _paragraphs(
        _labelled("Role", character.role),
        _labelled("Nature", character.nature),
        _labelled("Background", character.background),
    )


def _at_birth(character: Character) -> SelfKnowledge:
    return SelfKnowledge(
        traits=tuple(Quality(name=trait.name, strength=trait.intensity) for trait in character.traits),
        values=tuple(Quality(name=value, strength=1.0) for value in character.values),
    )


def _personality(character: Character, genome: AgentGenome | None, knowledge: SelfKnowledge) -> str:
    leanings = describe_traits(genome.traits) if genome else ()
    return _paragraphs(
        _list("Traits", map(_graded, knowledge.traits)),
        _list("Leanings", leanings),
        _list("Values", (f"{value.name}{_doubt(value)}" for value in knowledge.values)),
        _list("Capabilities", map(_graded, knowledge.capabilities)),
        _list("Quirks", character.quirks),
    )


def _graded(quality: Quality) -> str:
    return f"{quality.name} ({intensity_word(quality.strength)}){_doubt(quality)}"


def _doubt(quality: Quality) -> str:
    return " (in doubt)" if quality.questioned else ""


def _voice(character: Character) -> str:
    manner = character.relationship_style
    return _paragraphs(
        _labelled("Tone", character.tone),
        _labelled("Style", character.style),
        _labelled("With others", manner.approach),
        _labelled("In conversation", manner.communication),
        _labelled("In disagreement", manner.conflict),
        _labelled("As time passes", manner.growth),
    )


def _knowledge(character: Character) -> str:
    items = [f"[{item.category}] {item.content}" for item in character.knowledge]
    return _paragraphs(character.domain_context, _bullets(items))


def _labelled(label: str, text: str) -> str:
    return f"{label}: {text}" if text else ""


def _list(label: str, items: Iterable[str]) -> str:
    bullets = _bullets(items)
    return f"{label}:\n{bullets}" if bullets else ""


def _bullets(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _paragraphs(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)
