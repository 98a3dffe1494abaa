"""Fitting of each side of a prompt into its token share."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from arbor.goals.values import GoalState
from arbor.heartbeat.prompts import token_shares
from arbor.heartbeat.prompts.fitting import fit
from arbor.heartbeat.prompts.prompt import build_prompt, render
from arbor.heartbeat.prompts.reductions import REDUCTIONS
from arbor.heartbeat.prompts.token_shares import MIN_SCALE, SHARES, PromptSide, shares, side_of
from arbor.heartbeat.situation import (
    ClusterView,
    Environment,
    LastHeartbeat,
    Notice,
    NoticeKind,
    Situation,
)
from arbor.heartbeat.views import MatchedBoundary
from arbor.models.token_estimates import estimate_tokens
from arbor.quotations import RenderedSection
from tests.unit.heartbeat.builders import NONCE, NOW, full_situation, goal, intent, memory, percept, situation

LONG = "word " * 220


def fit_situation(view: Situation, **allowed: int) -> tuple[Situation, dict[str, int], dict[str, str]]:
    """Fit a situation into these shares, by default those of seed 003.

    Return the fitted situation, the number of omitted entries and the text, each by section.
    """
    given = {**SHARES, **{PromptSide(name): tokens for name, tokens in allowed.items()}}
    fit_result, rendered = fit(view, given, lambda situation: render(situation, NONCE))
    return fit_result.situation, dict(fit_result.cut), {section.name: section.text for section in rendered}


def side_tokens(texts: dict[str, str], side: PromptSide) -> int:
    return sum(estimate_tokens(text) for name, text in texts.items() if side_of(name) is side)


@pytest.mark.parametrize(
    ("window", "fixed", "reply", "scale"),
    [
        (200_000, 2_000, 4_096, 1.0),
        (16_384, 2_000, 4_096, 1.0),
        # 8,192 - 2,000 - 2,048 for the reply leave 4,144 of 5,000.
        (8_192, 2_000, 4_096, 4_144 / 5_000),
        (8_192, 2_000, 512, 1.0),
        (4_096, 2_000, 4_096, 1_072 / 5_000),
        (2_048, 2_000, 4_096, MIN_SCALE),
    ],
)
def test_shares_are_scaled_down_to_a_small_window(window: int, fixed: int, reply: int, scale: float) -> None:
    by_side = shares(window=window, fixed=fixed, reply=reply)

    assert {side: by_side[side] for side in PromptSide} == {
        side: int(SHARES[side] * scale) for side in PromptSide
    }


def test_the_shares_are_those_of_the_seed() -> None:
    assert dict(SHARES) == {
        "identity": 500,
        "memory": 2_000,
        "world_state": 1_500,
        "action_history": 1_000,
    }


def test_a_fitting_situation_is_rendered_once_and_unchanged() -> None:
    rendered: list[Situation] = []
    view = full_situation()

    def rendering(situation: Situation) -> list[RenderedSection]:
        rendered.append(situation)
        return render(situation, NONCE)

    fit_result, _ = fit(view, SHARES, rendering, room=16_000)

    assert fit_result.situation is view
    assert fit_result.cut == {}
    assert rendered == [view]


def test_a_situation_that_fits_is_counted_once_for_each_limit() -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return 1

    _, rendered = fit(full_situation(), SHARES, partial(render, nonce=NONCE), most=1_000, count=count)

    assert len(counted) == 2 * len(rendered)


@pytest.mark.parametrize(
    ("changes", "allowed", "cut", "shown", "omitted"),
    [
        # The best recalled memories and the latest recent ones stay.
        (
            {
                "recent": [memory(f"a{n}", content=LONG) for n in range(4)],
                "relevant": [memory(f"b{n}", content=LONG) for n in range(4)],
            },
            {"memory": 700},
            {"recent": 3, "relevant": 3},
            ["memory-a3", "memory-b0"],
            ["memory-a0", "memory-b1", "memory-b3"],
        ),
        (
            {
                "recent": [memory(f"a{n}", content=LONG) for n in range(4)],
                "clusters": [ClusterView(name="tide")],
            },
            {"memory": 900},
            {"clusters": 1, "recent": 2},
            ["memory-a2", "memory-a3"],
            ["tide", "memory-a0", "memory-a1"],
        ),
        (
            {
                "goals": [
                    goal("harbour", priority=3),
                    goal("market", priority=1),
                    goal("attic", state=GoalState.QUEUED, priority=5),
                ]
            },
            {"world_state": 100},
            {"goals": 2},
            ["goal-harbour"],
            ["goal-market", "goal-attic"],
        ),
        (
            {"goals": [goal("attic"), goal("harbour"), goal("market")]},
            {"world_state": 100},
            {"goals": 2},
            ["goal-attic"],
            ["goal-harbour", "goal-market"],
        ),
        (
            {"goals": [goal()], "intents": [intent(f"i{n}", description=LONG[:300]) for n in range(4)]},
            {"world_state": 330},
            {"intents": 2},
            ["intent-i0", "intent-i1"],
            ["intent-i2", "intent-i3"],
        ),
        (
            {
                "percepts": [
                    percept(LONG, id="p1", kind="environment"),
                    percept(LONG, id="p2"),
                    percept(LONG, id="p3", kind="error"),
                ]
            },
            {"world_state": 400},
            {"percepts": 1},
            ["p1", "p2"],
            ["p3"],
        ),
        # The latest percepts stay pending; urgent ones and messages are shown.
        (
            {
                "percepts": [
                    percept("wind " * 100, id="p1", kind="environment"),
                    percept("fire", id="p2", kind="environment", urgent=True),
                    percept("ahoy", id="p3", kind="peer_message"),
                    percept("rain " * 100, id="p4", kind="environment"),
                ]
            },
            {"world_state": 230},
            {"percepts": 1},
            ["p1", "fire", "ahoy"],
            ["p4"],
        ),
    ],
)
def test_the_least_important_entries_are_cut_first_and_counted(
    changes: dict[str, Any],
    allowed: dict[str, int],
    cut: dict[str, int],
    shown: list[str],
    omitted: list[str],
) -> None:
    _, dropped, texts = fit_situation(situation(**changes), **allowed)

    assert dropped == cut
    whole = "\n".join(texts.values())
    assert all(text in whole for text in shown)
    assert not any(text in whole for text in omitted)
    for name, number in cut.items():
        heading = f"## Not shown: {name} ({number})"
        assert texts[name] == heading or f"Not shown, for want of room: {number}." in texts[name]


def test_an_emptied_section_is_a_heading_that_names_it() -> None:
    view = situation(
        notices=[Notice(kind=NoticeKind.STAGNATION, text=LONG)],
        clusters=[ClusterView(name=LONG)],
        recent=[memory("a1", content=LONG)],
    )

    _, _, texts = fit_situation(view, world_state=10, memory=60)

    assert texts["notices"] == "## Not shown: notices (1)"
    assert texts["clusters"] == "## Not shown: clusters (1)"


def test_a_side_over_its_share_is_cut_to_fit() -> None:
    view = situation(
        recent=[memory(f"a{n}", content=LONG) for n in range(10)],
        relevant=[memory(f"b{n}", content=LONG) for n in range(10)],
    )

    _, _, texts = fit_situation(view)

    assert 1_000 < side_tokens(texts, PromptSide.MEMORY) <= SHARES[PromptSide.MEMORY] + 20


def test_a_long_percept_is_clipped_before_any_is_left_out() -> None:
    view = situation(
        percepts=[percept("wind " * 800, id="p1", kind="environment"), percept("rain", id="p2", kind="error")]
    )

    shown, cut, texts = fit_situation(view, world_state=300)

    assert not cut
    assert [percept.id for percept in shown.percepts] == ["p1", "p2"]
    assert "wind … (cut; 3999 characters in all)" in texts["percepts"]


@pytest.mark.parametrize(
    "changes", [{}, {"kind": "peer_message"}, {"kind": "timeout", "urgent": True}], ids=str
)
def test_messages_and_urgent_percepts_are_never_left_out(changes: dict[str, Any]) -> None:
    view = situation(percepts=[percept("please " * 1_100, **changes)], goals=[goal(str(n)) for n in range(3)])

    shown, _, texts = fit_situation(view, world_state=10)

    assert ("please " * 280).strip() in texts["percepts"]
    assert "characters in all)" in texts["percepts"]
    assert [percept.id for percept in shown.percepts] == ["percept-1"]


def test_a_large_window_shows_what_a_small_one_cuts() -> None:
    percepts = [percept("wind " * 1_200, id=f"p{n}", kind="environment") for n in range(5)]
    view = situation(
        percepts=percepts,
        environment=Environment(now=NOW, pending_percepts=5),
        crossed=[
            MatchedBoundary(
                boundary="no_harm", response="refuse", why=f"about {percept.id}", about=percept.id
            )
            for percept in percepts
        ],
        recent=[memory(f"a{n}", content=LONG) for n in range(10)],
    )

    large = build_prompt(view, "", NONCE, window=200_000)
    small = build_prompt(view, "", NONCE, window=4_096)

    assert large.percepts == ("p0", "p1", "p2", "p3", "p4")
    assert not any(section.cut for section in large.sections)
    assert large.user.count("wind") == 6_000
    assert 0 < len(small.percepts) < 5
    assert small.percepts == large.percepts[: len(small.percepts)]
    assert f"Waiting for your next heartbeat: {5 - len(small.percepts)}." in small.user
    # Boundary matches of percepts that stay pending are not shown.
    assert "about p0" in small.user
    assert "about p4" not in small.user


@pytest.mark.parametrize("window", [6_000, 8_192, 16_384, 32_768])
def test_the_reply_has_its_tokens_whatever_the_percepts(window: int) -> None:
    view = situation(
        percepts=[percept("please " * 1_100, id=f"p{n}") for n in range(5)],
        recent=[memory(f"a{n}", content=LONG) for n in range(10)],
    )

    prompt = build_prompt(view, "", NONCE, window=window, reply_tokens=4_096)

    tokens = sum(section.tokens for section in prompt.sections)
    assert len(prompt.percepts) == 5
    assert tokens <= window - min(4_096, window // 4) or window < 8_192
    assert tokens < window


def test_the_oldest_outcomes_of_the_last_heartbeat_are_cut_first() -> None:
    heartbeat = LastHeartbeat(
        number=1, mode="reflection", narrative="I rested.", outcomes=[f"{n}: {LONG}" for n in range(5)]
    )

    _, cut, texts = fit_situation(situation(last_beat=heartbeat))

    assert 0 < cut["last_beat"] < 5
    assert "4: word" in texts["last_beat"]
    assert "0: word" not in texts["last_beat"]


@pytest.mark.parametrize(
    "name",
    ["mark", "timing", "energy", "directive", "mood", "drives", "boundaries", "further_keys", "closing"],
)
def test_sections_that_every_heartbeat_needs_are_never_cut(name: str) -> None:
    assert side_of(name) is None


def test_the_prompt_lists_its_omissions() -> None:
    view = situation(recent=[memory(f"a{n}", content=LONG) for n in range(12)])

    prompt = build_prompt(view, "# Character", NONCE, window=6_000)

    section = next(section for section in prompt.sections if section.name == "recent")
    assert section.cut > 0
    assert section.text.endswith(f"Not shown, for want of room: {section.cut}.")
    assert section.text in prompt.user
    assert sum(section.cut for section in prompt.sections) == section.cut


def test_a_small_window_gives_a_small_prompt() -> None:
    view = situation(
        recent=[memory(f"a{n}", content=LONG) for n in range(5)],
        relevant=[memory(f"b{n}", content=LONG) for n in range(5)],
    )

    large = build_prompt(view, "", NONCE, window=200_000)
    small = build_prompt(view, "", NONCE, window=4_096)

    assert estimate_tokens(small.system) < estimate_tokens(large.system) / 1.2
    assert estimate_tokens(small.user) < estimate_tokens(large.user) / 1.5


def test_every_section_that_can_be_cut_is_one_that_is_rendered() -> None:
    rendered = {section.name for section in render(full_situation(), NONCE)}

    assert {reduction.section for reductions in REDUCTIONS.values() for reduction in reductions} <= rendered
    assert set(token_shares._SIDE_OF) <= rendered


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        # Characters and tokens of common tokenizers.
        ("The lighthouse keeper counts the ferries at dawn. ", 9, 14),
        ("灯塔看守人在黎明时分数着渡船。", 13, 24),
        ("Смотритель маяка считает паромы на рассвете.", 12, 30),
        ("🌊🌊🌊🌊", 5, 12),
        ("01a2066b-4e69-76fe-988b-e8018c9ad457", 22, 34),
        ("2026-11-23 03:41", 8, 16),
        ('{"goals": [{"id": "a", "notes": ["b", "c"]}]}', 16, 26),
    ],
)
def test_tokens_are_estimated_by_script(text: str, least: int, most: int) -> None:
    assert least <= estimate_tokens(text) <= most


def test_chinese_percepts_fit_the_window_too() -> None:
    view = situation(
        percepts=[percept("灯塔看守人在黎明时分数着渡船。" * 200, id=f"p{n}") for n in range(5)],
        recent=[memory(f"a{n}", content="看守人" * 300) for n in range(10)],
    )

    prompt = build_prompt(view, "", NONCE, window=8_192, reply_tokens=4_096)

    assert sum(section.tokens for section in prompt.sections) < 8_192
    assert prompt.percepts
