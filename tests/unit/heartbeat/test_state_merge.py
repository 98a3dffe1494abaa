"""Merge of concurrent changes to an agent's state: each row of the module's table."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.agents.energy import MAX_ENERGY
from arbor.heartbeat.state_merge import (
    FoundState,
    after_writing,
    merged_amount,
    merged_memory,
    merged_mood,
    merged_stale_heartbeats,
)
from arbor.heartbeat.working_memory import (
    MAX_BYTES,
    MAX_THOUGHTS,
    THOUGHT_LENGTH,
    Thought,
    WorkingMemory,
    as_stored,
)
from tests.unit.heartbeat.builders import NOW

LATER, EARLIER = NOW + timedelta(minutes=5), NOW - timedelta(minutes=5)


# --- A person, a program: energy, ticks, bonus actions -------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "before", "now", "merged"),
    [
        # Nothing happened meanwhile.
        (9.0, 10.0, 10.0, 9.0),
        # The heartbeat changes nothing.
        (None, 10.0, 15.0, None),
        # A concurrent change is added.
        (9.0, 10.0, 15.0, 14.0),
        (9.0, 10.0, 7.0, 6.0),
        # Within the bounds.
        (18.0, 10.0, 15.0, 20.0),
        (1.0, 10.0, 7.0, 0),
        # The regeneration belongs to the heartbeat.
        (19.0, 10.0, 10.0, 19.0),
    ],
)
def test_concurrent_changes_of_an_amount_are_merged(
    wanted: float | None, before: float, now: float, merged: float | None
) -> None:
    assert merged_amount(wanted, found=before, now=now, most=MAX_ENERGY) == merged


def test_a_whole_amount_stays_whole() -> None:
    for wanted, now in ((3, 15), (3, 5), (3, 2**31 - 1)):
        merged = merged_amount(wanted, found=10, now=now, most=2**31 - 1)
        assert isinstance(merged, int)


@given(
    left=st.lists(st.floats(0, 20), min_size=1, max_size=4),
    gifts=st.lists(st.floats(0, 3), min_size=4, max_size=4),
)
def test_a_grant_between_legs_counts_exactly_once(left: list[float], gifts: list[float]) -> None:
    stored, before, granted = 10.0, FoundState(energy=10.0), 0.0
    for wanted, gift in zip(left, gifts, strict=False):
        stored += gift
        granted += gift
        merged = merged_amount(wanted, found=before.energy, now=stored, most=1_000.0)
        assert merged is not None
        assert merged == pytest.approx(wanted + granted)
        stored, before = merged, after_writing(before, energy=wanted)


# --- A conversation: mood and stale heartbeats --------------------------------------------------------------

STORED_MOOD = {"valence": 0.1, "arousal": 0.3, "at": "2026-01-05T09:00:00Z"}
NEW_MOOD = {"valence": 0.2, "arousal": 0.4, "at": "2026-01-05T09:30:00Z"}


@pytest.mark.parametrize(
    ("wanted", "before", "now", "shift", "merged"),
    [
        (NEW_MOOD, STORED_MOOD, STORED_MOOD, (0.1, 0.1), NEW_MOOD),
        (None, STORED_MOOD, NEW_MOOD, (0.1, 0.1), None),
        # The heartbeat's own share is added to the mood after a conversation.
        (
            NEW_MOOD,
            STORED_MOOD,
            {**STORED_MOOD, "valence": 0.5},
            (0.1, 0.1),
            {**STORED_MOOD, "valence": 0.6, "arousal": 0.4},
        ),
        (
            NEW_MOOD,
            STORED_MOOD,
            {**STORED_MOOD, "valence": 0.95},
            (0.1, 0.0),
            {**STORED_MOOD, "valence": 1.0},
        ),
        (
            NEW_MOOD,
            STORED_MOOD,
            {**STORED_MOOD, "valence": -0.95},
            (-0.1, 0.0),
            {**STORED_MOOD, "valence": -1.0},
        ),
        (
            NEW_MOOD,
            STORED_MOOD,
            {**STORED_MOOD, "arousal": 0.1},
            (0.0, -0.2),
            {**STORED_MOOD, "arousal": 0.0},
        ),
        # No mood is stored yet.
        (NEW_MOOD, {}, {}, (0.1, 0.1), NEW_MOOD),
        (NEW_MOOD, STORED_MOOD, {}, (0.1, 0.1), NEW_MOOD),
        (NEW_MOOD, {}, {**STORED_MOOD, "valence": 0.5}, (0.1, 0.0), {**STORED_MOOD, "valence": 0.6}),
    ],
)
def test_a_concurrently_moved_mood_is_moved_further(
    wanted: dict[str, Any] | None,
    before: dict[str, Any],
    now: dict[str, Any],
    shift: tuple[float, float],
    merged: dict[str, Any] | None,
) -> None:
    result = merged_mood(wanted, found=before, now=now, valence=shift[0], arousal=shift[1])
    assert result == (merged if merged is None else pytest.approx(merged))


def test_a_merged_mood_is_rounded_as_stored() -> None:
    now = {**STORED_MOOD, "valence": 0.1, "arousal": 0.1}
    merged = merged_mood(NEW_MOOD, found=STORED_MOOD, now=now, valence=0.2, arousal=0.2)
    assert merged == {**now, "valence": 0.3, "arousal": 0.3}


@pytest.mark.parametrize(
    ("wanted", "before", "now", "merged"),
    [(4, 3, 3, 4), (0, 3, 3, 0), (4, 3, 0, 0), (4, 3, 5, 4), (None, 3, 0, None)],
)
def test_a_conversation_resets_the_count_of_stale_heartbeats(
    wanted: int | None, before: int, now: int, merged: int | None
) -> None:
    assert merged_stale_heartbeats(wanted, found=before, now=now) == merged


# --- A conversation: working memory --------------------------------------------------------------------


def thought(text: str, at: Any = LATER) -> Thought:
    return Thought(text=text, at=at)


def merge_memory(
    wanted: WorkingMemory, now: WorkingMemory, *, found: WorkingMemory | None = None
) -> WorkingMemory:
    return merged_memory(wanted, now=now, found=found or WorkingMemory(), since=NOW)


def test_merging_does_not_change_the_conversation_partner() -> None:
    wanted = WorkingMemory(current_human="Ann", current_conversation="1", concerns=["wind"], engagement=0.7)
    result = merge_memory(
        wanted, WorkingMemory(current_human="Bo", current_conversation="2", concerns=["rain"])
    )
    assert (result.current_human, result.current_conversation) == ("Bo", "2")
    assert (result.concerns, result.engagement) == (["wind"], 0.7)
    alone = merge_memory(wanted, WorkingMemory())
    assert (alone.current_human, alone.current_conversation) == (None, None)


def test_merged_engagement_is_rounded_as_stored() -> None:
    own, other, found = (WorkingMemory(engagement=share) for share in (0.1, 0.2, 0.0))
    assert merge_memory(own, other, found=found).engagement == 0.3


def test_concurrent_thoughts_come_after_those_of_the_heartbeat() -> None:
    before, own = thought("before", EARLIER), thought("own", NOW)
    now = WorkingMemory(thoughts=[before, thought("talk")])
    result = merge_memory(WorkingMemory(thoughts=[before, own]), now)
    assert [item.text for item in result.thoughts] == ["before", "own", "talk"]


def test_a_thought_that_a_conversation_repeats_is_kept_once() -> None:
    own = [thought("the pier", EARLIER), thought("the crane", EARLIER)]
    result = merge_memory(WorkingMemory(thoughts=own), WorkingMemory(thoughts=[thought("the pier")]))
    assert [item.text for item in result.thoughts] == ["the crane", "the pier"]


def test_the_oldest_thoughts_are_evicted() -> None:
    own = [thought(f"own {number}", EARLIER) for number in range(MAX_THOUGHTS)]
    result = merge_memory(WorkingMemory(thoughts=own), WorkingMemory(thoughts=[thought("talk")]))
    texts = [item.text for item in result.thoughts]
    assert (len(texts), texts[0], texts[-1]) == (MAX_THOUGHTS, "own 1", "talk")


def test_merged_working_memory_always_fits_its_size_limit() -> None:
    # Characters that JSON writes as six.
    own = [thought("\x01" * THOUGHT_LENGTH, EARLIER) for _ in range(MAX_THOUGHTS)]
    talk = [thought("\x02" * THOUGHT_LENGTH) for _ in range(MAX_THOUGHTS)]
    large = {"concerns": ["\x03" * 200] * 5, "curiosity": ["\x04" * 200] * 10}
    result = merge_memory(WorkingMemory(thoughts=own, **large), WorkingMemory(thoughts=talk))
    assert len(as_stored(result).encode()) <= MAX_BYTES
    assert result.thoughts[-1].text == talk[-1].text


@pytest.mark.parametrize(
    ("wanted", "before", "now", "talked"),
    [(4, 4, 4, 4), (4, 4, 6, 6), (0, 12, 12, 0), (0, 12, 14, 2), (4, 4, 0, 4)],
)
def test_turns_since_the_last_consolidation_are_added(
    wanted: int, before: int, now: int, talked: int
) -> None:
    result = merge_memory(
        WorkingMemory(talked=wanted), WorkingMemory(talked=now), found=WorkingMemory(talked=before)
    )
    assert result.talked == talked


@pytest.mark.parametrize(
    ("wanted", "found", "now", "left"),
    [(0.55, 0.5, 0.5, 0.55), (0.4, 0.5, 0.7, 0.6), (0.9, 0.7, 1.0, 1.0), (0.0, 0.1, 0.0, 0.0)],
)
def test_engagement_by_a_conversation_is_not_lost(
    wanted: float, found: float, now: float, left: float
) -> None:
    result = merge_memory(
        WorkingMemory(engagement=wanted),
        WorkingMemory(engagement=now),
        found=WorkingMemory(engagement=found),
    )
    assert result.engagement == pytest.approx(left)
