"""The initial working memory, goals, memories and aspects of a new agent, from its template."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from arbor.agents.template import InitialGoal, TemplateSpec
from arbor.goals.values import GoalSource, GoalType
from arbor.heartbeat.working_memory import LINE_LENGTH, THOUGHT_LENGTH, Thought, WorkingMemory
from arbor.memory.values import MemoryType, NewMemory, Retention
from arbor.quotations import shorten
from arbor.selves.values import TEXT_LENGTH, AspectKind, NewAspect

#: The source of a template's goal, by its type. Most goals belong to the role that the agent was created for.
SOURCES: Mapping[GoalType, GoalSource] = MappingProxyType(
    {
        GoalType.ACHIEVE: GoalSource.ROLE,
        GoalType.MAINTAIN: GoalSource.ROLE,
        GoalType.EXPLORE: GoalSource.CURIOSITY,
        GoalType.LEARN: GoalSource.CURIOSITY,
        GoalType.AVOID: GoalSource.ROLE,
        GoalType.COLLABORATE: GoalSource.SOCIAL,
        GoalType.IMPROVE: GoalSource.IDENTITY,
        GoalType.CAPABILITY: GoalSource.IDENTITY,
    }
)

#: Initial memories neither fade nor are archived, and are more important than a passing remark.
INNATE_DECAY_RATE = 0.0
KNOWLEDGE_IMPORTANCE = 0.6
#: A template's aspects are stable, because the agent was designed with them, and its values important.
INNATE_STABILITY = 0.8
VALUE_IMPORTANCE = 0.9


@dataclass(frozen=True, kw_only=True)
class WorkingMemoryDraft:
    """A working memory, and the beginnings of texts that were shortened to fit into it."""

    working_memory: WorkingMemory
    shortened: tuple[str, ...] = ()


def first_working_memory(spec: TemplateSpec, *, now: datetime) -> WorkingMemoryDraft:
    """Build the working memory of a new agent: its first thoughts and interests."""
    thoughts = [shorten(text, THOUGHT_LENGTH) for text in spec.initial_thoughts]
    interests = [shorten(text, LINE_LENGTH) for text in spec.initial_interests]
    full_texts = (*spec.initial_thoughts, *spec.initial_interests)
    fitting_texts = (*thoughts, *interests)
    return WorkingMemoryDraft(
        working_memory=WorkingMemory(
            thoughts=[Thought(text=text, at=now) for text in thoughts], curiosity=interests
        ),
        shortened=tuple(
            shorten(whole, 80)
            for whole, short in zip(full_texts, fitting_texts, strict=True)
            if whole != short
        ),
    )


def first_goals(spec: TemplateSpec) -> tuple[InitialGoal, ...]:
    """Return the template's goals, most important first, equal ones in the template's order."""
    return tuple(sorted(spec.initial_goals, key=lambda goal: -goal.priority))


def first_knowledge(spec: TemplateSpec, *, now: datetime) -> tuple[NewMemory, ...]:
    """Return the knowledge of a template as semantic memories."""
    return tuple(
        NewMemory(
            content=item.content,
            occurred_at=now,
            type=MemoryType.SEMANTIC,
            importance=KNOWLEDGE_IMPORTANCE,
            decay_rate=INNATE_DECAY_RATE,
            retention=Retention.PERMANENT,
            source=f"template:{spec.name}",
            detail={"category": item.category},
        )
        for item in spec.character.knowledge
    )


def first_aspects(spec: TemplateSpec) -> tuple[NewAspect, ...]:
    """Return a new agent's aspects, traits and values; texts too long for an aspect are shortened."""
    character, source = spec.character, f"template:{spec.name}"
    text_of_kind = {
        AspectKind.SELF_CONCEPT: character.nature,
        AspectKind.PURPOSE: character.role,
        AspectKind.EMOTIONAL_BASELINE: character.tone,
    }
    aspects = [
        NewAspect(content=shorten(text, TEXT_LENGTH), kind=kind, stability=INNATE_STABILITY, source=source)
        for kind, text in text_of_kind.items()
        if text
    ]
    traits = [
        NewAspect(
            content=trait.name,
            kind=AspectKind.TRAIT,
            strength=trait.intensity,
            stability=INNATE_STABILITY,
            source=source,
        )
        for trait in character.traits
    ]
    values = [
        NewAspect(
            content=value,
            kind=AspectKind.VALUE,
            strength=VALUE_IMPORTANCE,
            stability=INNATE_STABILITY,
            source=source,
        )
        for value in (*character.values, *spec.values)
    ]
    return (*aspects, *traits, *values)
