"""Cuts of prompts: audited with their tokens, counted by the model's tokenizer where one is loaded."""

from __future__ import annotations

from typing import Any

import pytest

from arbor.heartbeat.prompts.fitting import CutContext, no_room_fault
from arbor.heartbeat.prompts.prompt import build_prompt
from arbor.heartbeat.situation import Situation
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.steps.round_trips import Think, build_the_prompt
from arbor.heartbeat.views import SkillView
from arbor.models.windows import TEMPLATE_TOKENS
from arbor.pipeline.engine import NodeOutcome
from tests.unit.heartbeat.builders import CHARACTER, full_situation, memory, percept
from tests.unit.heartbeat.state_builders import Answers, heartbeat_of, moment_of, rules_of

LONG = "the tide was late again, " * 60
SKILLS = [SkillView(name="Lamps", text="Light them at dusk. " * 40)]


def count_words(text: str) -> int:
    return len(text.split())


def huge_situation(**changes: Any) -> Situation:
    """Return a situation of more than ten times a window of 8,192 tokens."""
    values: dict[str, Any] = {
        "skills": SKILLS,
        "recent": [memory(f"a{n}", content=LONG) for n in range(120)],
        "relevant": [memory(f"b{n}", content=LONG) for n in range(120)],
        "percepts": [percept(LONG * 5, id=f"p{n}", kind="environment") for n in range(5)],
    }
    return full_situation().model_copy(update=values | changes)


def heartbeat_with_prompt(view: Situation, *, window: int = 8_192, **rules: Any) -> HeartbeatState:
    """Return a heartbeat of a small model with its prompt built; `rules` are fields of its rules."""
    moment = moment_of(rules=rules_of(model_context=window, default_model="ollama/small", **rules))
    heartbeat = heartbeat_of(situation=view, character=CHARACTER, moment=moment)
    return Answers().run(build_the_prompt(heartbeat)).state


def test_a_prompt_of_ten_windows_is_cut_to_one_and_audited() -> None:
    view = huge_situation()
    assert build_prompt(view, CHARACTER, "a" * 16, window=10**7).tokens > 10 * 8_192

    heartbeat = heartbeat_with_prompt(view)

    assert heartbeat.prompt is not None
    sections = {section["name"]: section for section in heartbeat.prompt.sections}
    assert sum(section["tokens"] for section in sections.values()) <= 8_192 - 8_192 // 4
    assert SKILLS[0].text.strip() in heartbeat.prompt.system
    assert sections["recent"]["cut"] >= 110
    assert "memory-a119" in heartbeat.prompt.user
    (note,) = heartbeat.effects.audit
    assert note.action == "truncated"
    assert note.message.startswith("the prompt of heartbeat 3 was cut to the window of ollama/small: ")
    assert note.detail["window"] == 8_192
    assert note.detail["sources"]["recent"]["entries"] == sections["recent"]["cut"]
    # The percepts are clipped, not dropped, and count all the same.
    assert {"recent", "relevant", "percepts"} <= set(note.detail["sources"])
    assert note.detail["tokens"] == sum(cut["tokens"] for cut in note.detail["sources"].values()) > 60_000


def test_a_prompt_that_fits_is_not_audited() -> None:
    assert heartbeat_with_prompt(full_situation(), window=32_000).effects.audit == ()


def test_the_prompt_of_the_reflex_policy_is_not_cut() -> None:
    given = rules_of(model_context=8_192, default_model="reflex/default")
    heartbeat = heartbeat_of(situation=huge_situation(), character=CHARACTER, moment=moment_of(rules=given))
    assert Answers().run(build_the_prompt(heartbeat)).state.effects.audit == ()


def test_a_prompt_without_room_fails_and_names_its_largest_part() -> None:
    heartbeat = heartbeat_with_prompt(
        full_situation().model_copy(update={"skills": [SkillView(name="All", text=LONG * 40)]})
    )
    result = Answers().run(Think()(heartbeat))

    assert result.outcome is NodeOutcome.FAILURE
    assert "its largest part is skills with 1" in result.state.failure
    assert "or choose fewer or shorter skills" in result.state.failure


@pytest.mark.parametrize(
    ("sizes", "error"),
    [
        ({"rules": 2, "message": 9}, "its largest part is message with 9: set ARBOR_MODEL_CONTEXT"),
        ({"world_rules": 5}, "its largest part is world rules with 5"),
        ({}, "to a prompt of 12: set"),
    ],
)
def test_the_error_names_the_largest_part_and_the_setting(sizes: dict[str, int], error: str) -> None:
    assert error in no_room_fault(model="ollama/x", window=10, tokens=12, sizes=sizes)


def test_cuts_are_listed_largest_first() -> None:
    cut = CutContext(
        removed={"held": 4, "last_heartbeat": 1_200}, entries={"held": 2}, left={"held": 6, "goals": 9}
    )
    assert cut.in_words == "1,204 tokens left out (last heartbeat 1,200, held 4)"
    assert cut.to_json(model="m", window=9)["sources"]["held"] == {
        "tokens": 4,
        "before": 10,
        "after": 6,
        "entries": 2,
    }


def test_tokens_are_counted_by_the_tokenizer_of_the_models() -> None:
    heartbeat = heartbeat_with_prompt(full_situation(), tokenizers={"ollama": count_words})

    assert heartbeat.prompt is not None
    for section in heartbeat.prompt.sections:
        assert section["tokens"] == count_words(section["text"])
    terms = heartbeat.situation.terms
    assert terms is not None
    assert (terms.tokenizer, terms.window) == ("ollama", 8_192 - TEMPLATE_TOKENS)
    asked = Answers().run(Think()(heartbeat))
    assert asked.state.asked_tokens == sum(section["tokens"] for section in heartbeat.prompt.sections)
    assert asked.suspend is not None


def test_a_resumed_heartbeat_counts_as_its_prompt_was_counted() -> None:
    estimated = heartbeat_with_prompt(full_situation())
    moment = moment_of(rules=rules_of(model_context=8_192, tokenizers={"ollama": count_words}))
    assert estimated.prompt is not None

    continued = heartbeat_of(
        situation=estimated.situation, prompt=estimated.prompt, model=estimated.model, moment=moment
    )

    resumed = Answers().run(Think()(continued)).state

    assert resumed.situation.terms is not None
    assert resumed.situation.terms.tokenizer == ""
    assert resumed.asked_tokens > count_words(estimated.prompt.user)
