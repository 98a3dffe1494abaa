"""Tiers of thinking and their models."""

from __future__ import annotations

from typing import Any

import pytest

from arbor.errors import ConfigurationInvalid
from arbor.goals.values import GoalState
from arbor.heartbeat.situation import Mode
from arbor.heartbeat.tiers import (
    ThinkTier,
    classify_think,
    code_complexity,
    models_of,
    parse_tier_models,
    tier_of,
)
from arbor.heartbeat.working_memory import WorkingMemory
from tests.unit.heartbeat.builders import goal, intent, percept, situation

CODE = "```python\n" + "\n".join(f"    value_{n} = compute(value_{n - 1})" for n in range(30)) + "\n```"
NESTED = "def f(x):\n" + "\n".join(f"{'    ' * depth}if x[{depth}]:" for depth in range(1, 9))


@pytest.mark.parametrize(
    ("context", "tier"),
    [
        ({}, ThinkTier.STANDARD),
        ({"involves_new_design": True}, ThinkTier.STRATEGIC),
        ({"involves_new_design": True, "is_routine": True}, ThinkTier.STRATEGIC),
        ({"code_complexity": 0.71}, ThinkTier.STRATEGIC),
        ({"code_complexity": 0.71, "is_simple_decision": True}, ThinkTier.STRATEGIC),
        ({"code_complexity": 0.7}, ThinkTier.STANDARD),
        ({"is_routine": True}, ThinkTier.REFLEX),
        ({"is_simple_decision": True}, ThinkTier.REFLEX),
        ({"code_complexity": 0.7, "is_routine": True}, ThinkTier.REFLEX),
    ],
)
def test_the_tier_follows_the_rule_of_the_seed(context: dict[str, Any], tier: ThinkTier) -> None:
    assert classify_think(**context) is tier


@pytest.mark.parametrize(
    ("changes", "tier"),
    [
        ({"mode": Mode.PLAN_EXECUTION, "goals": [goal()]}, ThinkTier.STRATEGIC),
        ({"mode": Mode.CONSOLIDATION}, ThinkTier.REFLEX),
        ({"mode": Mode.CONVERSATION, "percepts": [percept()]}, ThinkTier.STANDARD),
        ({"mode": Mode.CONVERSATION, "percepts": [percept(CODE)]}, ThinkTier.STRATEGIC),
        ({"mode": Mode.CONVERSATION, "percepts": [percept(NESTED)]}, ThinkTier.STRATEGIC),
        ({"mode": Mode.GOAL_PURSUIT, "goals": [goal()], "intents": [intent()]}, ThinkTier.REFLEX),
        (
            {"mode": Mode.GOAL_PURSUIT, "goals": [goal()], "intents": [intent(), intent("ask")]},
            ThinkTier.STANDARD,
        ),
        (
            {"mode": Mode.GOAL_PURSUIT, "goals": [goal()], "intents": [intent()], "percepts": [percept()]},
            ThinkTier.STANDARD,
        ),
        (
            {"mode": Mode.GOAL_PURSUIT, "goals": [goal()], "intents": [intent(action="inquire_deep")]},
            ThinkTier.STANDARD,
        ),
        (
            {"mode": Mode.GOAL_PURSUIT, "goals": [goal()], "intents": [intent(action="fly")]},
            ThinkTier.STANDARD,
        ),
        (
            {"mode": Mode.GOAL_PURSUIT, "goals": [goal()], "intents": [intent(action="brainstorm_goals")]},
            ThinkTier.STRATEGIC,
        ),
        (
            {"mode": Mode.GOAL_PURSUIT, "goals": [goal(description=CODE)], "intents": [intent()]},
            ThinkTier.STRATEGIC,
        ),
        ({"mode": Mode.REFLECTION}, ThinkTier.REFLEX),
        ({"mode": Mode.REFLECTION, "goals": [goal(state=GoalState.QUEUED)]}, ThinkTier.STANDARD),
        ({"mode": Mode.REFLECTION, "working_memory": WorkingMemory(curiosity=["why"])}, ThinkTier.STANDARD),
        ({"mode": Mode.REFLECTION, "working_memory": WorkingMemory(concerns=["wind"])}, ThinkTier.STANDARD),
        ({"mode": Mode.REFLECTION, "percepts": [percept(kind="environment")]}, ThinkTier.STANDARD),
    ],
)
def test_a_situation_has_its_tier(changes: dict[str, Any], tier: ThinkTier) -> None:
    assert tier_of(situation(**changes)) is tier


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("", 0, 0),
        ("The ferry is late; we wait.\nIt may come (or not).", 0, 0.05),
        ("Please explain `x = 1` to me.", 0, 0.05),
        ("def f(x):\n    return x\n", 0.02, 0.3),
        (CODE, 0.7, 1),
        (NESTED, 0.71, 1),
        ("const a = () => {\n  go();\n};", 0.02, 0.3),
        ("```\nhello\n```", 0.02, 0.1),
        (CODE * 5, 1, 1),
    ],
)
def test_code_is_as_complex_as_it_is_long_and_nested(text: str, least: float, most: float) -> None:
    assert least <= code_complexity([text]) <= most


@pytest.mark.parametrize(
    ("tier", "steps", "lowered"),
    [
        ("strategic", 0, "strategic"),
        ("strategic", 1, "standard"),
        ("strategic", 2, "reflex"),
        ("reflex", 1, "reflex"),
    ],
)
def test_a_tier_is_lowered_at_most_to_the_cheapest(tier: str, steps: int, lowered: str) -> None:
    assert ThinkTier(tier).lowered(steps) == lowered


def test_the_models_of_tiers_are_read() -> None:
    read = parse_tier_models("strategic=anthropic/a|openai/b, reflex=ollama/llama3.2:1b")

    assert dict(read) == {
        ThinkTier.STRATEGIC: ("anthropic/a", "openai/b"),
        ThinkTier.REFLEX: ("ollama/llama3.2:1b",),
    }
    assert dict(parse_tier_models(" ")) == {}


@pytest.mark.parametrize(
    "text", ["deep=openai/a", "strategic", "strategic=", "reflex=gpt", "reflex=openai/a|"]
)
def test_invalid_models_of_tiers_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationInvalid, match="provider/model"):
        parse_tier_models(text)


@pytest.mark.parametrize(
    ("policy", "own", "installed", "expected"),
    [
        ({}, "", {}, ("d",)),
        ({}, "", {ThinkTier.STANDARD: ("i", "j")}, ("i", "j")),
        ({}, "", {ThinkTier.REFLEX: ("i",)}, ("d",)),
        ({}, "own", {ThinkTier.STANDARD: ("i",)}, ("own",)),
        ({"standard": ["p", "q", "p"]}, "own", {ThinkTier.STANDARD: ("i",)}, ("p", "q")),
        ({"standard": []}, "own", {}, ("own",)),
        ({"strategic": ["p"]}, "", {}, ("d",)),
    ],
)
def test_models_come_from_policy_agent_installation_or_default(
    policy: Any, own: str, installed: Any, expected: tuple[str, ...]
) -> None:
    models = models_of(ThinkTier.STANDARD, policy=policy, own=own, installed=installed, default="d")

    assert models == expected
