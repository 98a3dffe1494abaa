"""The working memory after heartbeats and conversations, rebuilt from them, and stored situations."""

from __future__ import annotations

import json
from datetime import timedelta
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from arbor.errors import Invalid
from arbor.heartbeat.situation import Situation
from arbor.heartbeat.working_memory import (
    PastHeartbeat,
    PastTurn,
    Thought,
    WorkingMemory,
    after_conversation,
    after_heartbeat,
    after_turn,
    as_stored,
    idle_intervals,
    initial_working_memory,
    with_goals,
)
from tests.unit.heartbeat.builders import NOW, full_situation, situation


def after(memory: WorkingMemory, **changes: Any) -> WorkingMemory:
    """Return the working memory after a heartbeat; `changes` are its values."""
    return after_heartbeat(memory, PastHeartbeat(**{"acted": True, "at": NOW, **changes}))


def test_a_new_thought_evicts_the_oldest() -> None:
    memory = WorkingMemory(thoughts=[Thought(text=str(n), at=NOW) for n in range(20)])

    thoughts = after(memory, thinking=" new ", at=NOW + timedelta(hours=1)).thoughts

    assert [thought.text for thought in thoughts] == [*(str(n) for n in range(1, 20)), "new"]
    assert thoughts[-1].at == NOW + timedelta(hours=1)


def test_a_repeated_thought_becomes_the_newest() -> None:
    earlier = [Thought(text=text, at=NOW) for text in ("The crane.", "The pier.")]
    thoughts = after(
        WorkingMemory(thoughts=earlier), thinking=" The crane. ", at=NOW + timedelta(hours=1)
    ).thoughts

    assert [thought.text for thought in thoughts] == ["The pier.", "The crane."]
    assert thoughts[-1].at > NOW


def test_an_empty_thought_is_not_added() -> None:
    assert after(WorkingMemory(), thinking="  ").thoughts == []


def test_concerns_are_unique_and_the_oldest_are_evicted() -> None:
    memory = WorkingMemory(concerns=["a", "b", "c", "d", "e"])

    assert after(memory, concerns=["B", " f "]).concerns == ["c", "d", "e", "B", "f"]


def test_the_latest_ten_questions_are_retained() -> None:
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
def test_users_and_actions_raise_engagement(
    before: float, user_waiting: bool, acted: bool, expected: float
) -> None:
    memory = after(WorkingMemory(engagement=before), user_waiting=user_waiting, acted=acted)

    assert memory.engagement == pytest.approx(expected)


@pytest.mark.parametrize(("hours", "expected"), [(0.5, 0.95), (1.04, 0.95), (3, 0.75), (24, 0.0)])
def test_idle_intervals_lower_engagement(hours: float, expected: float) -> None:
    memory = WorkingMemory(engagement=0.9, thoughts=[Thought(text="a", at=NOW - timedelta(hours=hours))])
    idle = idle_intervals(memory, interval=timedelta(hours=1), now=NOW, last_heartbeat_at=None)

    assert after(memory, idle=idle).engagement == expected


def test_idle_intervals_begin_at_a_heartbeat_without_a_thought() -> None:
    memory = WorkingMemory(thoughts=[Thought(text="a", at=NOW - timedelta(hours=9))])
    last = NOW - timedelta(hours=3)

    assert idle_intervals(memory, interval=timedelta(hours=1), now=NOW, last_heartbeat_at=last) == 2


@given(st.lists(st.text(min_size=1), max_size=30), st.text())
def test_a_working_memory_always_fits_64_kilobytes(lines: list[str], thinking: str) -> None:
    memory = WorkingMemory()
    for _ in range(3):
        memory = after(memory, thinking=thinking * 50, concerns=lines, curiosity=lines)

    assert len(json.dumps(memory.model_dump(mode="json"), ensure_ascii=False).encode()) <= 65_536


@pytest.mark.parametrize("original", [situation(), full_situation()])
def test_a_situation_is_equal_after_a_json_round_trip(original: Situation) -> None:
    stored = json.dumps(original.model_dump(mode="json"))

    assert Situation.model_validate(json.loads(stored)) == original


@pytest.mark.parametrize(
    ("name", "former"),
    [
        ("clusters", "themes"),
        ("boundary_matches", "crossed"),
        ("heartbeat_number", "beat_number"),
        ("stale_heartbeats", "stale_beats"),
        ("last_heartbeat", "last_beat"),
    ],
)
def test_former_keys_of_an_older_stored_situation_are_read(name: str, former: str) -> None:
    full = full_situation().model_copy(update={"stale_heartbeats": 3})
    stored = full.model_dump(mode="json")
    assert stored[name]
    stored[former] = stored.pop(name)

    assert Situation.model_validate_json(json.dumps(stored)) == full


def test_experiences_of_an_older_stored_situation_are_read() -> None:
    stored = full_situation().model_dump(mode="json")
    for experience in stored["experiences"]:
        experience["tick"] = experience.pop("heartbeat_number")

    assert stored["experiences"]
    assert Situation.model_validate_json(json.dumps(stored)) == full_situation()


def test_unknown_keys_of_a_stored_situation_are_ignored() -> None:
    stored = situation().model_dump(mode="json") | {"weather": "fair"}

    assert Situation.model_validate(stored) == situation()


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ({}, WorkingMemory()),
        (
            {
                "thoughts": [{"text": "a", "at": NOW.isoformat()}],
                "concerns": ["b"],
                "curiosity": [],
                "engagement": 0.2,
            },
            WorkingMemory(thoughts=[Thought(text="a", at=NOW)], concerns=["b"], engagement=0.2),
        ),
        (
            {
                "version": 2,
                "name": "Vega",
                "started_at": NOW.isoformat(),
                "recent_thoughts": ["a", {"content": "b", "timestamp": NOW.isoformat()}],
                "engagement_level": 7,
                "active_goals": [{"title": "Map the coast"}],
                "concerns": [str(n) for n in range(9)],
            },
            WorkingMemory(
                name="Vega",
                started_at=NOW,
                thoughts=[Thought(text="a", at=NOW), Thought(text="b", at=NOW)],
                active_goals=["Map the coast"],
                concerns=["4", "5", "6", "7", "8"],
                engagement=1.0,
            ),
        ),
        (
            {"version": 2, "recent_thoughts": [{"text": "a", "at": NOW.replace(tzinfo=None).isoformat()}]},
            WorkingMemory(thoughts=[Thought(text="a", at=NOW)]),
        ),
        ({"version": 4, "weather": "fair", "curiosity": ["who?"]}, WorkingMemory(curiosity=["who?"])),
        ({"version": 2, "engagement_level": 10**400}, WorkingMemory(engagement=1.0)),
    ],
)
def test_a_working_memory_of_another_version_is_read(stored: dict[str, Any], expected: WorkingMemory) -> None:
    read = WorkingMemory.model_validate(stored)

    assert read == expected
    assert WorkingMemory.model_validate_json(as_stored(read)) == read


def test_a_thought_of_a_time_that_is_none_in_utc_is_invalid() -> None:
    with pytest.raises(ValidationError, match="years 1 to 9999"):
        Thought.model_validate({"text": "a", "at": "0001-01-01T00:00+14:00"})


def test_resolved_items_are_removed_despite_case_and_spaces() -> None:
    memory = WorkingMemory(concerns=["The map is old"], curiosity=["Who built it?", "Why?"])

    remaining = after(memory, curiosity=["Since when?"], resolved=["the  MAP is old", "who built it?"])

    assert remaining.concerns == []
    assert remaining.curiosity == ["Why?", "Since when?"]


def test_goals_are_replaced_and_limited_to_ten() -> None:
    memory = after(WorkingMemory(active_goals=["old"]), active_goals=[f"goal {n}" for n in range(12)])

    assert memory.active_goals == [f"goal {n}" for n in range(10)]
    assert after(memory).active_goals == memory.active_goals


def test_a_turn_sets_the_human_until_its_conversation_ends() -> None:
    talking = after_turn(WorkingMemory(), thinking="he asks", human="nora", conversation="c1", now=NOW)

    assert (talking.current_human, talking.current_conversation) == ("nora", "c1")
    assert (talking.thoughts[-1].text, talking.engagement, talking.talked) == ("he asks", 0.7, 1)
    assert after_conversation(talking, conversation="another") == talking
    calm = WorkingMemory(engagement=0.1)
    raised = after_turn(calm, thinking="", human="nora", conversation="c1", now=NOW)
    assert raised.engagement == 0.3
    assert after_conversation(talking, conversation="c1").current_human is None


def test_ten_turns_request_consolidation_until_it_ran() -> None:
    memory = WorkingMemory(talked=9)
    assert not memory.wants_consolidation

    updated = after_turn(memory, thinking="", human="nora", conversation="c", now=NOW)
    assert updated.wants_consolidation
    assert after(updated).wants_consolidation
    assert not after(updated, consolidated=True).wants_consolidation


def test_the_prompt_text_drops_the_oldest_thoughts_first() -> None:
    memory = WorkingMemory(
        thoughts=[Thought(text=f"thought {n} " + "x" * 80, at=NOW) for n in range(20)],
        concerns=["the map is old"],
        current_human="nora",
        active_goals=["Map the coast"],
    )

    text = memory.to_prompt_text(100)

    assert len(text) <= 400
    assert "talking with: nora" in text
    assert "working towards: Map the coast" in text
    assert "concern: the map is old" in text
    assert "thought 19" in text
    assert "thought 1 " not in text
    assert memory.to_prompt_text(0) == ""


def test_a_working_memory_over_64_kilobytes_is_refused() -> None:
    memory = WorkingMemory.model_construct(thoughts=[Thought(text="x" * 70_000, at=NOW)])

    with pytest.raises(Invalid, match=r"at most 65,536 bytes, got 7\d,\d{3}"):
        as_stored(memory)


def test_new_goals_are_appended_to_the_known_ones() -> None:
    memory = WorkingMemory(active_goals=["b", "gone", "a" * 199 + "…"])
    updated = with_goals(memory, ["new", "a" * 250, "b"])
    assert updated.active_goals == ["b", "a" * 199 + "…", "new"]
    assert with_goals(memory, []).active_goals == []
    assert len(with_goals(memory, [str(n) for n in range(12)]).active_goals) == 10


@pytest.mark.parametrize("thoughts", [None, 7, {"text": "x"}])
def test_a_working_memory_without_a_list_of_thoughts_is_invalid(thoughts: object) -> None:
    with pytest.raises(ValidationError):
        WorkingMemory.model_validate({"version": 3, "thoughts": thoughts})


def test_working_memory_is_rebuilt_from_events_in_any_order() -> None:
    events: list[PastHeartbeat | PastTurn] = [
        PastHeartbeat(at=NOW, thinking="one", concerns=["a", "b"], curiosity=["why?"], acted=True),
        PastHeartbeat(at=NOW + timedelta(hours=1), thinking="two", resolved=["A"], user_waiting=True),
        PastTurn(at=NOW + timedelta(hours=2), human="nora", conversation="c", thinking="three", over=False),
    ]

    initial = WorkingMemory(agent_id="1", name="Ada", started_at=NOW)

    results = {
        initial_working_memory(initial, order, active_goals=["g"] * 12).model_dump_json()
        for order in permutations(events)
    }

    (only,) = results
    memory = initial_working_memory(initial, events, active_goals=["g"] * 12)
    assert memory.model_dump_json() == only
    assert [thought.text for thought in memory.thoughts] == ["one", "two", "three"]
    assert (memory.concerns, memory.curiosity, memory.current_human) == (["b"], ["why?"], "nora")
    assert (len(memory.active_goals), memory.talked, memory.name) == (10, 1, "Ada")
