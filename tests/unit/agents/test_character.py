"""System prompts of characters: deterministic, in fixed order, without empty sections."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from arbor.agents.character import (
    Character,
    KnowledgeItem,
    RelationshipStyle,
    Trait,
    intensity_word,
    to_system_prompt,
)
from arbor.agents.genome import AgentGenome, AgentRole, AgentTraits, describe_traits

ADA = Character(
    name="Ada",
    description="Keeps the tide tables.",
    role="harbour clerk",
    tone="dry",
    style="Short sentences.",
    traits=(Trait(name="patient", intensity=0.7), Trait(name="vain", intensity=0.1)),
    values=("punctuality",),
    quirks=("Counts gulls.",),
    knowledge=(KnowledgeItem(category="tides", content="Spring tides follow the full moon."),),
    background="Grew up on a lightship.",
    instructions=("Check the date first.", "Say when a table is old."),
)


def test_a_full_character_renders_every_section_in_order() -> None:
    assert to_system_prompt(ADA) == (
        "# Character: Ada\n\nYou are Ada. Keeps the tide tables.\n\n"
        "## Identity\n\nRole: harbour clerk\n\nBackground: Grew up on a lightship.\n\n"
        "## Personality\n\nTraits:\n- patient (high)\n- vain (low)\n\nValues:\n- punctuality\n\n"
        "Quirks:\n- Counts gulls.\n\n"
        "## Voice\n\nTone: dry\n\nStyle: Short sentences.\n\n"
        "## Knowledge\n\n- [tides] Spring tides follow the full moon.\n\n"
        "## Instructions\n\n- Check the date first.\n- Say when a table is old.\n"
    )


def test_a_bare_character_has_no_empty_headings() -> None:
    assert to_system_prompt(Character(name="Ada")) == "# Character: Ada\n\nYou are Ada.\n"


@pytest.mark.parametrize(
    ("changes", "line", "section"),
    [
        ({"nature": "A tidy mind."}, "Nature: A tidy mind.", "Identity"),
        ({"domain_context": "The north harbour."}, "The north harbour.", "Knowledge"),
        ({"relationship_style": RelationshipStyle(approach="Waits.")}, "With others: Waits.", "Voice"),
        (
            {"relationship_style": RelationshipStyle(communication="Waits.")},
            "In conversation: Waits.",
            "Voice",
        ),
        ({"relationship_style": RelationshipStyle(conflict="Waits.")}, "In disagreement: Waits.", "Voice"),
        ({"relationship_style": RelationshipStyle(growth="Waits.")}, "As time passes: Waits.", "Voice"),
    ],
)
def test_each_optional_part_is_rendered_in_its_section(
    changes: dict[str, object], line: str, section: str
) -> None:
    prompt = to_system_prompt(ADA.model_copy(update=changes))
    under_heading = prompt.split(f"## {section}\n")[1].split("\n## ")[0]
    assert line in under_heading
    assert line not in to_system_prompt(ADA)


def test_an_agent_may_have_another_name_than_its_character() -> None:
    prompt = to_system_prompt(ADA, name="Ada the Second")
    assert prompt.startswith(
        "# Character: Ada the Second\n\nYou are Ada the Second. Your character is called Ada. Keeps"
    )


def test_traits_of_a_genome_are_rendered_under_personality() -> None:
    genome = AgentGenome(
        role=AgentRole.ARCHITECT,
        traits=AgentTraits(risk_tolerance=0.3, collaboration=0.8, depth_vs_breadth=0.5, quality_vs_speed=0.1),
    )
    prompt = to_system_prompt(ADA, genome=genome)
    assert (
        "Leanings:\n- rather conservative\n- strongly team-minded\n"
        "- balanced between specialised and wide-ranging\n- strongly exacting\n"
    ) in prompt


@pytest.mark.parametrize(
    ("intensity", "word"),
    [(1, "high"), (0.7, "high"), (0.69, "moderate"), (0.4, "moderate"), (0.39, "low"), (0, "low")],
)
def test_intensity_is_rendered_as_one_of_three_words(intensity: float, word: str) -> None:
    assert intensity_word(intensity) == word


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.0, "strongly conservative"),
        (0.2, "strongly conservative"),
        (0.4, "rather conservative"),
        (0.5, "balanced between conservative and experimental"),
        (0.6, "rather experimental"),
        (0.8, "strongly experimental"),
    ],
)
def test_a_genome_trait_is_rendered_in_one_of_five_ways(value: float, words: str) -> None:
    traits = AgentTraits(risk_tolerance=value, collaboration=0, depth_vs_breadth=0, quality_vs_speed=0)
    assert describe_traits(traits)[0] == words


@pytest.mark.parametrize("intensity", [-0.01, 1.01, float("nan"), True, "0.5"])
def test_an_intensity_must_be_a_number_from_0_to_1(intensity: object) -> None:
    with pytest.raises(ValidationError):
        Trait.model_validate({"name": "patient", "intensity": intensity})


def test_a_character_without_a_name_is_refused() -> None:
    with pytest.raises(ValidationError):
        Character(name="  ")


@given(
    name=st.text(min_size=1, max_size=40).filter(lambda text: text.strip()),
    values=st.lists(st.text(min_size=1, max_size=20).filter(lambda text: text.strip()), max_size=4),
    background=st.text(max_size=60),
)
def test_a_json_round_trip_of_a_character_preserves_its_prompt(
    name: str, values: list[str], background: str
) -> None:
    character = Character.model_validate({"name": name, "values": values, "background": background})
    again = Character.model_validate_json(character.model_dump_json())
    assert again == character
    assert to_system_prompt(again) == to_system_prompt(character)
