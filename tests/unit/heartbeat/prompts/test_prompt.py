"""Prompts: the system part, the sections, and the data blocks around untrusted text."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from arbor.goals.values import MAX_NEW_PER_HEARTBEAT
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.prompts.instructions import FURTHER_FORMAT
from arbor.heartbeat.prompts.prompt import Prompt, build_prompt, retry_note
from arbor.heartbeat.prompts.prompt import render as render_sections
from arbor.heartbeat.prompts.sections.moment import DIRECTIVES
from arbor.heartbeat.replies.reply import (
    COMMON_KEYS,
    MAX_ACTIONS,
    MOST,
    REPLY_KEYS,
)
from arbor.heartbeat.replies.reply_schema import asked_keys, reply_schema
from arbor.heartbeat.situation import LastHeartbeat, Mode, Situation
from arbor.heartbeat.views import PERCEPT_LENGTH, PeerView, ProposalView
from arbor.heartbeat.working_memory import WorkingMemory
from arbor.models.token_estimates import estimate_tokens
from arbor.selves.proposals import MIN_INSIGHT, ProposalKind
from tests.unit.heartbeat.builders import (
    CHARACTER,
    NONCE,
    full_situation,
    goal,
    memory,
    percept,
    proposal,
    section,
    situation,
)


def render(shown_situation: Situation | None = None, nonce: str = NONCE) -> Prompt:
    return build_prompt(shown_situation or full_situation(), CHARACTER, nonce)


def test_a_prompt_is_its_sections_in_order() -> None:
    prompt = render()

    assert [part.name for part in prompt.sections] == [
        "world_rules",
        "response_format",
        "actions",
        "character",
        "mark",
        "identity",
        "beliefs",
        "preferences",
        "capabilities",
        "experiences",
        "tallies",
        "peers",
        "goals",
        "plan",
        "intents",
        "approvals",
        "precedents",
        "attempts",
        "publications",
        "handlers",
        "issues",
        "recent",
        "relevant",
        "clusters",
        "held",
        "working_memory",
        "contradictions",
        "proposals",
        "last_heartbeat",
        "timing",
        "environment",
        "energy",
        "mood",
        "drives",
        "notices",
        "signals",
        "percepts",
        "boundaries",
        "directive",
        "further_keys",
        "closing",
    ]
    assert prompt.system == "\n\n".join(part.text for part in prompt.sections[:4])
    assert prompt.user == "\n\n".join(part.text for part in prompt.sections[4:])


def test_the_full_situation_fills_every_dynamic_section() -> None:
    # Tools change the rules too (`test_tools_prompt`).
    empty = [section.name for section in render_sections(full_situation(), NONCE) if not section.text]
    assert empty == ["tools"]


def test_the_system_prompt_does_not_depend_on_the_situation() -> None:
    assert render(situation(), NONCE).system == render(full_situation(), "b" * 16).system


def test_agents_share_the_start_of_their_system_prompts() -> None:
    first = build_prompt(situation(), "# Character\nMira", NONCE).system
    second = build_prompt(situation(name="Otto"), "# Character\nOtto", NONCE).system

    assert first.partition("# Character")[0] == second.partition("# Character")[0]


@pytest.mark.parametrize("key", COMMON_KEYS)
def test_the_response_format_names_every_common_key(key: str) -> None:
    assert f'"{key}"' in render().system


@pytest.mark.parametrize(
    "rule",
    [
        f"At most {MAX_ACTIONS} actions, notes and goal updates each, {MOST['concerns']} concerns; ",
        f"; {MAX_NEW_PER_HEARTBEAT} new goals in a heartbeat, those of rules and brainstorm_goals included",
        "What recall, an inquiry or a look brings you see in this heartbeat",
    ],
)
def test_the_rules_state_the_limits_of_parser_and_loop(rule: str) -> None:
    assert rule in render().system


def test_actions_notes_and_goal_updates_have_the_same_limit() -> None:
    assert MAX_ACTIONS == MOST["memory_notes"] == MOST["goal_updates"]


def test_the_format_states_the_requirements_of_an_insight() -> None:
    assert (
        f"at most {MOST['identity_insights']}, confidence {MIN_INSIGHT} or more"
        in (FURTHER_FORMAT["identity_insights"])
    )
    assert "at least one memory id as evidence" in FURTHER_FORMAT["identity_insights"]


@pytest.mark.parametrize(
    ("changes", "keys"),
    [
        ({"mode": Mode.GOAL_PURSUIT}, []),
        ({"mode": Mode.REFLECTION}, ["identity_insights"]),
        ({"mode": Mode.CONSOLIDATION}, ["identity_insights"]),
        (
            {"mode": Mode.CONSOLIDATION, "proposals": [proposal(str(n)) for n in range(4)]},
            ["proposal_decisions", "identity_insights"],
        ),
        (
            {"mode": Mode.CONSOLIDATION, "proposals": [proposal(str(n)) for n in range(5)]},
            ["proposal_decisions"],
        ),
        ({"mode": Mode.PLAN_EXECUTION, "goals": [goal()]}, ["decompositions"]),
        ({"mode": Mode.PLAN_EXECUTION, "goals": [goal()], "actions": []}, []),
        ({"mode": Mode.CONVERSATION, "working_memory": WorkingMemory(concerns=["wind"])}, ["resolved"]),
        (
            {
                "mode": Mode.GOAL_PURSUIT,
                "proposals": [
                    ProposalView(id="p", kind=ProposalKind.IDENTITY, content="I like maps", confidence=0.8)
                ],
            },
            ["proposal_decisions"],
        ),
        ({"mode": Mode.GOAL_PURSUIT, "peers": [PeerView(name="Otto", trust=0.5)]}, ["peer_notes"]),
        ({"mode": Mode.CONVERSATION, "working_memory": WorkingMemory(curiosity=["why"])}, ["resolved"]),
    ],
)
def test_a_further_key_is_requested_only_where_it_applies(changes: dict[str, Any], keys: list[str]) -> None:
    current = situation(**changes)
    texts = {part.name: part.text for part in render(current).sections}

    assert re.findall(r'^- "(\w+)"', texts.get("further_keys", ""), re.MULTILINE) == keys
    assert asked_keys(current) == (*COMMON_KEYS, *keys)
    assert list(reply_schema(("rest",), asked_keys(current))["properties"]) == [*COMMON_KEYS, *keys]


def test_every_reply_key_is_described_in_the_prompt() -> None:
    assert {*COMMON_KEYS, *FURTHER_FORMAT} == set(REPLY_KEYS)


@pytest.mark.parametrize("name", ACTIONS)
def test_offered_actions_are_listed_with_cost_and_parameters(name: str) -> None:
    spec = ACTIONS[name]
    system = render(situation(actions=ACTIONS.offers(tuple(ACTIONS)))).system
    (line,) = re.findall(rf"^- {name} .*$", system, re.MULTILINE)

    assert f"({spec.cost})" in line
    assert all(f"{param}:" in line for param in spec.params.model_fields)


def test_an_action_that_is_not_offered_is_not_listed() -> None:
    system = render(situation(actions=ACTIONS.offers(("rest",)))).system

    assert "- rest (0)" in system
    assert "- reflect" not in system


@pytest.mark.parametrize("mode", Mode)
def test_each_mode_has_its_own_directive(mode: Mode) -> None:
    text = section("directive", mode=mode)

    assert DIRECTIVES[mode] in text
    assert len(set(DIRECTIVES.values())) == len(Mode)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("timing", "Monday, 2026-01-05 09:30 UTC. You are Mira; this is your heartbeat 3."),
        ("environment", "A user is waiting for you. Percepts waiting: 7."),
        ("energy", "10 of at most 20."),
        (
            "goals",
            "[goal-harbour] Map the harbour (active, objective, from role, priority 2.00, 40% done, due 2026-01-05 09:30, stale)",
        ),
        ("identity", "[aspect-1] self concept: A maker of maps"),
        ("beliefs", "[belief-1] world, 90% sure: The tide keeps its hours"),
        ("beliefs", "[belief-2] others, 40% sure, in doubt: Pilots exaggerate"),
        ("goals", "done when: Every part of the harbour has a name"),
        ("goals", "note: counted the piers"),
        ("goals", "[goal-market] Map the market (queued,"),
        ("goals", "On the backburner: 1."),
        ("intents", "[intent-look] recall: First, look (for goal goal-harbour)"),
        ("intents", "[intent-ask] reflect: First, ask (for goal goal-harbour; attempts: 1)"),
        (
            "recent",
            "[memory-pier] 2026-01-05 09:30, episodic, from Ada: The pier was rebuilt after the storm",
        ),
        ("relevant", "[memory-lighthouse]"),
        ("clusters", "The harbour at night: lamps, tide (feels strongly good)"),
        ("clusters", "Accounts: ledger (feels neutral)"),
        ("clusters", "Lost keys (feels bad)"),
        ("working_memory", "engagement 0.6 of 1"),
        ("working_memory", "thought at 2026-01-05 09:30: The tide is out"),
        ("working_memory", "concern: the map is old"),
        ("working_memory", "curious about: who built the lighthouse"),
        ("last_heartbeat", "I rested."),
        ("last_heartbeat", "- rest: rested"),
        ("percepts", "[percept-1] 2026-01-05 09:30, user_message: The ferry is late"),
        ("percepts", "Waiting for your next heartbeat: 6."),
    ],
)
def test_each_part_of_the_situation_is_shown(name: str, shown: str) -> None:
    texts = {part.name: part.text for part in render().sections}

    assert shown in texts[name]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("environment", "No user is waiting; none has ever been in touch."),
        ("goals", "You have no goals."),
        ("intents", "None."),
        ("recent", "None."),
        ("relevant", "None."),
        ("clusters", "None."),
        ("working_memory", "Nothing yet."),
        ("last_heartbeat", "This is your first."),
        ("percepts", "Nothing."),
    ],
)
def test_an_empty_part_of_the_situation_is_shown_as_empty(name: str, shown: str) -> None:
    assert shown in section(name)


def test_the_last_narrative_is_shown_once() -> None:
    last = LastHeartbeat(number=2, mode=Mode.REFLECTION, narrative="I rested at noon.", outcomes=["rest: ok"])

    prompt = build_prompt(
        situation(last_heartbeat=last, recent=[memory(content=last.narrative)]), CHARACTER, NONCE
    )

    assert prompt.user.count(last.narrative) == 1
    assert "- rest: ok" in section(
        "last_heartbeat", last_heartbeat=last, recent=[memory(content=last.narrative)]
    )


def test_a_peer_is_named_in_percept_format_and_schema() -> None:
    current = situation(percepts=[percept("Ahoy", kind="peer_message", peer="Bo", peer_id="0198c0de")])
    texts = {part.name: part.text for part in render(current).sections}
    schema = reply_schema(("rest",), asked_keys(current))

    assert "peer_message from Bo: Ahoy" in texts["percepts"]
    assert '"peer": "name, as you see it"' in texts["further_keys"]
    assert schema["properties"]["peer_notes"]["items"]["properties"]["peer"]["description"] == (
        "name, as you see it"
    )


@pytest.mark.parametrize(
    ("unit", "shown"),
    [
        ("energy", "8 come back at each heartbeat; what you do not spend is kept, up to 5."),
        (
            "actions",
            "What you do not use is lost, but for every 2 rests you have one more at your next heartbeat, 4 at most.",
        ),
        ("ticks", "None come back before they are all used; what you do not use is kept until then."),
    ],
)
def test_only_the_energy_section_describes_the_action_budget(unit: str, shown: str) -> None:
    prompt = build_prompt(situation(energy=4, max_energy=5, energy_unit=unit, regeneration=8), "", NONCE)

    text = next(section.text for section in prompt.sections if section.name == "energy")
    assert shown in text
    # The part that all agents share precedes the agent's own and must not depend on the budget.
    assert "energy" not in prompt.system.partition("# How you answer")[0]
    assert "name (price): what it is for; its params" in prompt.system
    assert "energy" not in next(line for line in prompt.system.splitlines() if line.startswith("- rest "))


def test_the_longest_percept_is_shown_whole() -> None:
    content = "\n".join(["tide"] * (PERCEPT_LENGTH // 5))
    assert section("percepts", percepts=[percept(content)]).count("tide") == PERCEPT_LENGTH // 5


def test_a_long_memory_is_truncated_visibly() -> None:
    text = section("recent", recent=[memory(content="x" * 5_000)])

    assert len(text) < 1_500
    assert "… (cut; 5000 characters in all)" in text


def test_tokens_are_estimated_for_each_section() -> None:
    prompt = render()

    assert all(part.tokens == estimate_tokens(part.text) > 0 for part in prompt.sections)
    assert (estimate_tokens(""), estimate_tokens("abcd"), estimate_tokens("abcde")) == (0, 1, 2)


def test_no_character_means_no_character_section() -> None:
    prompt = build_prompt(situation(), "  ", NONCE)

    assert "character" not in [part.name for part in prompt.sections]


def test_no_aspects_or_beliefs_means_no_such_sections() -> None:
    names = [part.name for part in render(situation()).sections]

    assert "identity" not in names
    assert "beliefs" not in names


def test_a_retry_note_states_why_the_reply_was_unreadable() -> None:
    assert "could not be read: it breaks off." in retry_note("it breaks off")


@pytest.mark.bar
def test_a_prompt_is_built_in_less_than_a_millisecond() -> None:
    full = full_situation()
    fastest = min(_timed(full) for _ in range(20))

    assert fastest < 0.001


def _timed(full: Situation) -> float:
    started = time.perf_counter()
    render(full)
    return time.perf_counter() - started
