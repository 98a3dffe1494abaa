"""The first memories, goals and thoughts of a new agent."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from arbor.agents.birth import (
    SOURCES,
    first_aspects,
    first_goals,
    first_knowledge,
    first_working_memory,
)
from arbor.agents.template import TemplateSpec
from arbor.goals.values import GoalType
from arbor.heartbeat.working_memory import LINE_LENGTH, THOUGHT_LENGTH
from arbor.memory.values import MemoryType, Retention
from arbor.selves.values import TEXT_LENGTH, AspectKind

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def spec(**parts: Any) -> TemplateSpec:
    character = {"name": "Small", "knowledge": parts.pop("knowledge", ()), **parts.pop("character", {})}
    return TemplateSpec.model_validate(
        {"name": "Small", "version": "1", "character": character, "actions": ("rest",), **parts}
    )


def test_thoughts_and_interests_become_the_working_memory() -> None:
    mind = first_working_memory(spec(initial_thoughts=("Who am I?",), initial_interests=("rivers",)), now=NOW)
    assert [(thought.text, thought.at) for thought in mind.working_memory.thoughts] == [("Who am I?", NOW)]
    assert mind.working_memory.curiosity == ["rivers"]
    assert mind.shortened == ()


def test_overlong_initial_texts_are_shortened_and_named() -> None:
    thought, interest = "thought " * 100, "rivers " * 40
    mind = first_working_memory(spec(initial_thoughts=(thought,), initial_interests=(interest,)), now=NOW)
    assert len(mind.working_memory.thoughts[0].text) <= THOUGHT_LENGTH
    assert len(mind.working_memory.curiosity[0]) <= LINE_LENGTH
    assert [text.split()[0] for text in mind.shortened] == ["thought", "rivers"]


def test_initial_goals_are_sorted_by_priority_then_template_order() -> None:
    goals = [
        {"type": "explore", "description": name, "priority": priority}
        for name, priority in (("a", 50), ("b", 90), ("c", 50))
    ]
    assert [goal.description for goal in first_goals(spec(initial_goals=goals))] == ["b", "a", "c"]


@pytest.mark.parametrize("kind", GoalType)
def test_every_kind_of_goal_has_a_source(kind: GoalType) -> None:
    assert SOURCES[kind]


def test_knowledge_becomes_memories_that_do_not_fade() -> None:
    memories = first_knowledge(
        spec(
            knowledge=({"category": "rivers", "content": "They freeze from the banks."},), values=("candour",)
        ),
        now=NOW,
    )
    assert [memory.content for memory in memories] == ["They freeze from the banks."]
    assert {memory.type for memory in memories} == {MemoryType.SEMANTIC}
    assert {memory.decay_rate for memory in memories} == {0.0}
    assert {memory.retention for memory in memories} == {Retention.PERMANENT}
    assert {memory.source for memory in memories} == {"template:Small"}


def test_the_character_becomes_aspects_traits_and_values() -> None:
    traits = ({"name": "dry", "intensity": 0.3},)
    small = spec(
        values=("candour",),
        character={
            "nature": "A quiet one. " * 100,
            "role": "keeper",
            "traits": traits,
            "values": ("tea", "candour"),
        },
    )
    aspects = first_aspects(small)
    assert [(aspect.kind, aspect.strength) for aspect in aspects] == [
        (AspectKind.SELF_CONCEPT, 0.5),
        (AspectKind.PURPOSE, 0.5),
        (AspectKind.TRAIT, 0.3),
        *[(AspectKind.VALUE, 0.9)] * 3,
    ]
    assert [aspect.content for aspect in aspects[1:]] == ["keeper", "dry", "tea", "candour", "candour"]
    assert len(aspects[0].content) <= TEXT_LENGTH
    assert {aspect.source for aspect in aspects} == {"template:Small"}
    assert first_aspects(spec()) == ()
