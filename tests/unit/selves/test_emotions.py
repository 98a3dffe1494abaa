"""Moods: events, bounds and decay to the baseline."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.selves.emotions import (
    AROUSAL_HALF_LIFE,
    DELTAS,
    USUAL,
    VALENCE_HALF_LIFE,
    Event,
    Feeling,
    Mood,
    baseline_of,
    describe_mood,
    read_mood,
    total_valence,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
STILL = Feeling(0.0, 0.2)


@pytest.mark.parametrize(
    ("event", "valence", "arousal"),
    [
        (Event.BOUNDARY, -0.4, 0.3),
        (Event.FAILURE, -0.1, 0.1),
        (Event.REACH_OUT, 0.2, 0.1),
        (Event.REST, 0.1, -0.2),
        (Event.GOAL_DONE, 0.3, 0.1),
        (Event.GOAL_ABANDONED, -0.2, -0.1),
    ],
)
def test_an_event_moves_a_mood_by_its_delta(event: Event, valence: float, arousal: float) -> None:
    # The origin of seed 004.
    moved = Mood(valence=0.0, arousal=0.5, at=NOW).moved([event])
    assert (moved.valence, moved.arousal) == pytest.approx((valence, 0.5 + arousal))


def test_every_event_has_its_delta() -> None:
    assert DELTAS.keys() == set(Event)


@given(st.lists(st.sampled_from(Event), max_size=40), st.floats(-1, 1), st.floats(0, 1))
def test_a_mood_never_leaves_its_range(events: list[Event], valence: float, arousal: float) -> None:
    mood = Mood(valence=valence, arousal=arousal, at=NOW).moved(events)
    assert -1 <= mood.valence <= 1
    assert 0 <= mood.arousal <= 1
    assert -1 <= total_valence(events) <= 1


@pytest.mark.parametrize("interval", [timedelta(seconds=30), timedelta(minutes=10), timedelta(hours=1)])
def test_a_mood_does_not_depend_on_the_interval_of_heartbeats(interval: timedelta) -> None:
    mood = Mood(valence=0.0, arousal=0.2, at=NOW)
    for number in range(1, timedelta(hours=24) // interval + 1):
        mood = mood.at_time(NOW + number * interval, STILL).moved(
            [Event.SUCCESS, Event.SUCCESS], after=interval
        )
    assert mood.valence == pytest.approx(0.48, abs=0.03)


def test_a_mood_moves_less_near_the_end_of_its_range() -> None:
    low, high = Mood(valence=-0.8, arousal=0.5, at=NOW), Mood(valence=0.8, arousal=0.5, at=NOW)

    assert high.moved([Event.GOAL_DONE]).valence == pytest.approx(0.86)
    assert low.moved([Event.GOAL_DONE]).valence == pytest.approx(-0.5)


def test_a_mood_fades_to_its_baseline_by_halves() -> None:
    mood = Mood(valence=0.8, arousal=1.0, at=NOW)
    later = mood.at_time(NOW + VALENCE_HALF_LIFE, STILL)
    assert later.valence == pytest.approx(0.4)
    assert mood.at_time(NOW + AROUSAL_HALF_LIFE, STILL).arousal == pytest.approx(0.6)
    long_after = mood.at_time(NOW + timedelta(days=30), STILL)
    assert (long_after.valence, long_after.arousal) == (0.0, 0.2)
    assert mood.at_time(NOW - timedelta(days=1), STILL) == mood


@pytest.mark.parametrize(
    "stored",
    [
        None,
        {},
        {"valence": 9, "arousal": 0, "at": NOW.isoformat()},
        # A time without a zone cannot be compared.
        {"valence": 0.9, "arousal": 0.9, "at": NOW.replace(tzinfo=None).isoformat()},
    ],
)
def test_an_unreadable_mood_is_the_baseline(stored: dict[str, object] | None) -> None:
    mood = read_mood(stored, baseline=STILL, now=NOW)
    assert (mood.valence, mood.arousal, mood.at) == (0.0, 0.2, NOW)


@pytest.mark.parametrize(
    ("texts", "baseline"),
    [
        ([], USUAL),
        (["plain"], USUAL),
        (["Warm"], Feeling(0.25, 0.3)),
        (["calm, playful"], Feeling(0.2, 0.35)),
        (["valence 0.4, arousal 0.6"], Feeling(0.4, 0.6)),
        (["Valence: -0.5"], Feeling(-0.5, 0.3)),
        (["valence 7"], Feeling(1.0, 0.3)),
    ],
)
def test_the_baseline_is_parsed_from_the_identity(texts: list[str], baseline: Feeling) -> None:
    assert baseline_of(texts) == pytest.approx(baseline)


@pytest.mark.parametrize(
    ("valence", "arousal", "words"),
    [(0.9, 0.9, "very good and stirred up"), (0.0, 0.3, "even and alert"), (-1.0, 0.0, "very low and still")],
)
def test_a_mood_is_described_in_words(valence: float, arousal: float, words: str) -> None:
    assert describe_mood(valence, arousal) == words
