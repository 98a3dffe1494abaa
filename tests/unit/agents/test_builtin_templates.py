"""The fourteen built-in templates."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

from arbor.agents import template
from arbor.agents.character import to_system_prompt
from arbor.agents.genome import AgentRole
from arbor.agents.template import TemplateSource, TemplateSpec, TrustTier, load_builtin_templates
from arbor.authority.grants import AUDIT_RESOURCE
from arbor.heartbeat.actions import ACTIONS

TEMPLATES = {spec.name: spec for _, spec in load_builtin_templates(known_actions=ACTIONS)}
#: Actions that every agent may use.
FOR_ALL = frozenset(
    {"observe", "review_goals", "recall", "remember", "connect", "maintain", "reflect", "synthesize", "rest"}
    | {"brainstorm_goals"}
)
ORIGINAL = ("ClaudeCode", "CodeReviewer", "Diagnostician", "Monitor", "Researcher", "Scout")
EXECUTE = "arbor://actions/execute/"

# Tier, traits, kinds of goal, capabilities: those of the templates of the origin of seed 000.
AS_IN_THE_ORIGIN = {
    "Scout": (
        "probationary",
        {"efficient": 0.9, "focused": 0.8},
        ["explore"],
        ["arbor://fs/read/**"],
    ),
    "ClaudeCode": (
        "trusted",
        {"thoughtful": 0.95, "curious": 0.9, "honest": 0.95, "careful": 0.85, "creative": 0.8},
        ["collaborate", "maintain", "improve"],
        [
            f"arbor://{prefix}/**"
            for prefix in (
                *("fs/read", "fs/write", "memory/read", "memory/write", "shell/execute", "ai/generate"),
                *("signals/emit", "signals/subscribe", "consensus/propose", "consensus/evaluate"),
                *("tool/use", "actions/execute"),
            )
        ],
    ),
    "CodeReviewer": (
        "probationary",
        {"detail-oriented": 0.9, "constructive": 0.8},
        ["maintain"],
        ["arbor://fs/read/**", "arbor://shell/safe", "arbor://memory/**"],
    ),
    "Diagnostician": (
        "trusted",
        {"analytical": 0.9, "systematic": 0.85, "cautious": 0.8},
        ["maintain", "achieve", "achieve"],
        [
            EXECUTE + action
            for action in (
                *(
                    "file.read",
                    "file.write",
                    "ai.analyze",
                    "proposal.submit",
                    "proposal.revise",
                    "proposal.status",
                ),
                *("code.hot_load", "monitor.read", "shell.execute", "background_checks.run"),
            )
        ],
    ),
    "Monitor": (
        "probationary",
        {"vigilant": 0.95, "analytical": 0.85, "precise": 0.9},
        ["maintain", "achieve", "achieve"],
        [
            "arbor://monitor/read/**",
            "arbor://monitor/query",
            "arbor://signals/emit",
            "arbor://signals/subscribe",
        ],
    ),
    "Researcher": (
        "probationary",
        {"curious": 0.9, "systematic": 0.8, "patient": 0.7},
        ["explore", "maintain", "capability"],
        [
            *("arbor://fs/read/**", "arbor://memory/**", "arbor://shell/safe"),
            *("arbor://orchestrator/run", "arbor://council/consult"),
            *(
                EXECUTE + action
                for action in (
                    *("pipeline.run", "pipeline.validate", "docs.lookup"),
                    *("eval.check", "eval.list", "eval.get"),
                )
            ),
        ],
    ),
}
# Seed 003, 10.8: role, then risk, collaboration, depth, quality.
INITIAL_POPULATION = {
    "Halvard": (AgentRole.COMPILER_SMITH, 0.3, 0.5, 0.2, 0.2),
    "Cinder": (AgentRole.COMPILER_SMITH, 0.7, 0.3, 0.3, 0.6),
    "Odalys": (AgentRole.LIBRARIAN, 0.4, 0.7, 0.5, 0.3),
    "Folio": (AgentRole.LIBRARIAN, 0.5, 0.6, 0.8, 0.4),
    "Corbel": (AgentRole.ARCHITECT, 0.3, 0.8, 0.4, 0.1),
    "Kestrel": (AgentRole.EXPLORER, 0.9, 0.4, 0.7, 0.7),
    "Alder": (AgentRole.GENERALIST, 0.5, 0.5, 0.5, 0.5),
    "Juniper": (AgentRole.GENERALIST, 0.6, 0.6, 0.6, 0.4),
}


def test_six_original_and_eight_further_templates_are_built_in() -> None:
    assert sorted(TEMPLATES) == sorted([*ORIGINAL, *INITIAL_POPULATION])
    assert len(TEMPLATES) == 14


def test_a_file_has_the_name_of_its_template() -> None:
    folder = Path(template.__file__).parent / "templates"
    assert sorted(file.stem for file in folder.iterdir()) == sorted(TEMPLATES)


@pytest.mark.parametrize("name", ORIGINAL)
def test_the_six_originals_keep_tier_traits_goals_and_requests(name: str) -> None:
    spec = TEMPLATES[name]
    tier, traits, goals, capabilities = AS_IN_THE_ORIGIN[name]
    assert spec.trust_tier == tier
    assert {trait.name: trait.intensity for trait in spec.character.traits} == traits
    assert [goal.type for goal in spec.initial_goals] == goals
    requests = [request.resource for request in spec.required_capabilities]
    assert [resource for resource in requests if resource != AUDIT_RESOURCE] == capabilities
    assert spec.genome is None


def test_templates_that_look_for_causes_request_the_audit_log() -> None:
    requesting = {
        name
        for name, spec in TEMPLATES.items()
        if AUDIT_RESOURCE in [request.resource for request in spec.required_capabilities]
    }
    assert requesting == {"Diagnostician", "Monitor", "Odalys"}


@pytest.mark.parametrize("name", INITIAL_POPULATION)
def test_the_eight_have_the_genome_of_the_initial_population(name: str) -> None:
    genome = TEMPLATES[name].genome
    assert genome is not None
    traits = genome.traits
    assert INITIAL_POPULATION[name] == (
        genome.role,
        traits.risk_tolerance,
        traits.collaboration,
        traits.depth_vs_breadth,
        traits.quality_vs_speed,
    )
    assert TEMPLATES[name].trust_tier is TrustTier.PROBATIONARY


@pytest.mark.parametrize("spec", TEMPLATES.values(), ids=lambda spec: spec.name)
def test_each_template_has_a_full_character_and_goals(spec: TemplateSpec) -> None:
    character = spec.character
    assert spec.source is TemplateSource.BUILTIN
    assert 4 <= len(spec.values) <= 5
    assert 3 <= len(spec.initial_interests) <= 5
    assert 2 <= len(spec.initial_thoughts) <= 3
    assert 1 <= len(spec.initial_goals) <= 3
    assert len(character.instructions) == 5
    assert len(character.knowledge) >= 3
    assert len(character.quirks) == 3
    assert all(
        [
            *(spec.description, character.description, character.role, character.tone, character.style),
            *(character.nature, character.background, character.domain_context),
            *character.relationship_style.model_dump().values(),
        ]
    )
    assert all(goal.title and goal.title != goal.description for goal in spec.initial_goals)
    assert all(request.description for request in spec.required_capabilities)
    assert set(spec.actions) >= FOR_ALL


@pytest.mark.parametrize("spec", TEMPLATES.values(), ids=lambda spec: spec.name)
def test_the_prompt_of_each_has_every_section_and_a_modest_length(spec: TemplateSpec) -> None:
    prompt = to_system_prompt(spec.character, genome=spec.genome)
    for heading in (
        "# Character",
        "## Identity",
        "## Personality",
        "## Voice",
        "## Knowledge",
        "## Instructions",
    ):
        assert f"\n{heading}" in "\n" + prompt
    assert ("Leanings:" in prompt) == (spec.genome is not None)
    assert len(prompt) < 6_000, "every heartbeat sends this to a model"


def test_no_two_templates_share_a_sentence() -> None:
    sentences = {
        name: set(_texts(spec.model_dump(exclude={"required_capabilities"})))
        for name, spec in TEMPLATES.items()
    }
    for first, second in combinations(sentences, 2):
        assert not sentences[first] & sentences[second], (first, second)


def _texts(value: object) -> list[str]:
    """Return the texts that are long enough to be unique."""
    if isinstance(value, dict):
        return [text for item in value.values() for text in _texts(item)]
    if isinstance(value, (list, tuple)):
        return [text for item in value for text in _texts(item)]
    return [value] if isinstance(value, str) and len(value) > 25 else []


def test_templates_permit_inquiries_and_messages_by_their_role() -> None:
    templates_by_action = {
        action: {name for name, spec in TEMPLATES.items() if action in spec.actions} for action in ACTIONS
    }

    assert (
        {"Researcher", "Folio", "Kestrel"}
        <= templates_by_action["inquire_deep"]
        < templates_by_action["inquire_shallow"]
    )
    assert "Scout" in templates_by_action["inquire_shallow"]
    assert len(templates_by_action["reach_out_user"]) > len(TEMPLATES) / 2
    assert 0 < len(templates_by_action["reach_out_public"]) < len(TEMPLATES) / 4
