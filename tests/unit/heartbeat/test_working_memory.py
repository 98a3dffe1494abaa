"""The present moment: what a beat leaves on the mind."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.heartbeat.situation import Situation
from arbor.heartbeat.working_memory import Thought, WorkingMemory, after_beat
from tests.unit.heartbeat.builders import NOW, full_situation, situation


def after(memory: WorkingMemory, **changes: Any) -> WorkingMemory:
    values: dict[str, Any] = {
        "thinking": "",
        "concerns": [],
        "curiosity": [],
        "user_waiting": False,
        "acted": True,
        "now": NOW,
    }
    return after_beat(memory, **(values | changes))


def test_a_beats_thought_is_added_and_the_oldest_falls_out() -> None:
    memory = WorkingMemory(thoughts=[Thought(text=str(n), at=NOW) for n in range(20)])

    thoughts = after(memory, thinking=" new ", now=NOW + timedelta(hours=1)).thoughts

    assert [thought.text for thought in thoughts] == [*(str(n) for n in range(1, 20)), "new"]
    assert thoughts[-1].at == NOW + timedelta(hours=1)


def test_a_beat_without_a_thought_adds_none() -> None:
    assert after(WorkingMemory(), thinking="  ").thoughts == []


def test_concerns_are_said_once_and_the_latest_stay() -> None:
    memory = WorkingMemory(concerns=["a", "b", "c", "d", "e"])

    assert after(memory, concerns=["B", " f "]).concerns == ["c", "d", "e", "B", "f"]


def test_questions_are_kept_up_to_ten() -> None:
    assert after(WorkingMemory(), curiosity=[f"q{n}" for n in range(12)]).curiosity == [
        f"q{n}" for n in range(2, 12)
    ]


@pytest.mark.parametrize(
    ("before", "user_waiting", "acted", "expected"),
    [
        (0.5, True, True, 0.75),
        (0.5, False, True, 0.55),
        (0.5, False, False, 0.4),
        (0.95, True, True, 1),
        (0, False, False, 0),
    ],
)
def test_engagement_follows_what_happens(
    before: float, user_waiting: bool, acted: bool, expected: float
) -> None:
    memory = after(WorkingMemory(engagement=before), user_waiting=user_waiting, acted=acted)

    assert memory.engagement == pytest.approx(expected)


@given(st.lists(st.text(min_size=1), max_size=30), st.text())
def test_a_working_memory_always_fits_64_kilobytes(lines: list[str], thinking: str) -> None:
    memory = WorkingMemory()
    for _ in range(3):
        memory = after(memory, thinking=thinking * 50, concerns=lines, curiosity=lines)

    assert len(json.dumps(memory.model_dump(mode="json"), ensure_ascii=False).encode()) <= 65_536


@pytest.mark.parametrize("seen", [situation(), full_situation()])
def test_a_situation_survives_json(seen: Situation) -> None:
    stored = json.dumps(seen.model_dump(mode="json"))

    assert Situation.model_validate(json.loads(stored)) == seen


def test_a_situation_from_another_version_is_read() -> None:
    stored = situation().model_dump(mode="json") | {"weather": "fair"}

    assert Situation.model_validate(stored) == situation()
