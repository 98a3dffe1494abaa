"""Episodes: their segmentation by time, and their ranking."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.memory.episodes import (
    DEFAULT_GAP,
    MEANING_WEIGHT,
    RECENCY_WEIGHT,
    TIME_WEIGHT,
    WORDS_WEIGHT,
    EpisodeCandidate,
    EpisodeSegment,
    Segmentation,
    nearness,
    rank_episodes,
    segment_session,
)
from arbor.memory.recall.timespan import TimeSpan

NOW = datetime(2024, 6, 1, tzinfo=UTC)
JUNE = TimeSpan(start=datetime(2022, 6, 1, tzinfo=UTC), end=datetime(2022, 7, 1, tzinfo=UTC))


def _episode(
    number: int, *, words: float = 0.0, similarity: float | None = None, days_ago: float = 1.0
) -> EpisodeCandidate:
    at = NOW - timedelta(days=days_ago)
    return EpisodeCandidate(UUID(int=number), words, similarity, at - timedelta(hours=1), at)


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (_episode(2, words=0.5), _episode(1, words=0.2)),
        (_episode(2, similarity=0.5), _episode(1, similarity=0.2)),
        (_episode(2, similarity=0.5), _episode(1, similarity=None)),
        (_episode(2, similarity=None), _episode(1, similarity=None, days_ago=100)),
        (_episode(1), _episode(2)),
    ],
)
def test_the_better_match_ranks_first(better: EpisodeCandidate, worse: EpisodeCandidate) -> None:
    ranked = rank_episodes([worse, better], span=None, now=NOW, limit=5)
    assert [episode_id for episode_id, _ in ranked] == [better.id, worse.id]


@pytest.mark.parametrize(
    ("start", "end", "low", "high"),
    [
        (datetime(2022, 6, 3, tzinfo=UTC), datetime(2022, 6, 4, tzinfo=UTC), 1.0, 1.0),
        (datetime(2022, 5, 1, tzinfo=UTC), datetime(2022, 8, 4, tzinfo=UTC), 1.0, 1.0),
        (datetime(2022, 7, 8, tzinfo=UTC), datetime(2022, 7, 9, tzinfo=UTC), 0.3, 0.4),
        (datetime(2023, 6, 3, tzinfo=UTC), datetime(2023, 6, 4, tzinfo=UTC), 0.0, 0.001),
    ],
)
def test_the_nearest_moment_sets_the_nearness_of_an_episode(
    start: datetime, end: datetime, low: float, high: float
) -> None:
    assert low <= nearness(JUNE, start, end) <= high
    assert nearness(None, start, end) == 0.0


_FLOATS = st.floats(-2, 2)


@given(
    rows=st.lists(st.tuples(_FLOATS, st.none() | _FLOATS, st.floats(-1_000, 10_000)), max_size=30),
    limit=st.integers(-1, 40),
)
def test_scores_are_bounded_ordered_and_limited(
    rows: list[tuple[float, float | None, float]], limit: int
) -> None:
    episodes = [
        _episode(number, words=words, similarity=similarity, days_ago=days)
        for number, (words, similarity, days) in enumerate(rows)
    ]
    ranked = rank_episodes(episodes, span=JUNE, now=NOW, limit=limit)
    totals = [components.total for _, components in ranked]
    most = WORDS_WEIGHT + MEANING_WEIGHT + TIME_WEIGHT + RECENCY_WEIGHT
    assert len(ranked) == max(0, min(limit, len(rows)))
    assert totals == sorted(totals, reverse=True)
    assert all(-1e-9 <= total <= most + 1e-9 for total in totals)
    assert ranked == rank_episodes(episodes[::-1], span=JUNE, now=NOW, limit=limit)


NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)
MINUTES = st.lists(st.integers(0, 600), min_size=1, max_size=30)


def moments(*minutes: int) -> list[tuple[datetime, int]]:
    return [(NOON + timedelta(minutes=minute), 0) for minute in minutes]


def a_segment(number: int, first: int, last: int, *, size: int = 2, is_open: bool = False) -> EpisodeSegment:
    (first_at, _), (last_at, _) = moments(first, last)
    return EpisodeSegment(id=UUID(int=number), started_at=first_at, last_at=last_at, size=size, open=is_open)


def partition(minutes: list[int], result: Segmentation) -> set[frozenset[int]]:
    groups = defaultdict(set)
    for minute, (segment, _) in zip(minutes, result.places, strict=True):
        groups[segment].add(minute)
    return {frozenset(group) for group in groups.values()}


def test_half_an_hour_is_one_episode_and_a_minute_more_is_two() -> None:
    assert partition([0, 30, 61], segment_session(moments(0, 30, 61), [])) == {
        frozenset({0, 30}),
        frozenset({61}),
    }


def test_a_later_moment_joins_the_open_episode_at_the_next_place() -> None:
    result = segment_session(moments(25), [a_segment(1, 0, 10, is_open=True)])
    assert result.places == ((UUID(int=1), 3),)
    (changed,) = result.changed
    assert (changed.last_at, changed.size, changed.open) == (moments(25)[0][0], 3, True)


def test_a_new_episode_closes_the_former() -> None:
    result = segment_session(moments(100), [a_segment(1, 0, 10, is_open=True)])
    assert [(segment.id == UUID(int=1), segment.open) for segment in result.changed] == [
        (True, False),
        (False, True),
    ]
    assert result.places[0][0] == result.changed[1].id


def test_an_earlier_moment_joins_the_earlier_episode() -> None:
    earlier, latest = a_segment(1, 0, 10), a_segment(2, 100, 110, is_open=True)
    result = segment_session(moments(20), [earlier, latest])
    assert result.places == ((UUID(int=1), 3),)
    assert [segment.id for segment in result.changed] == [UUID(int=1)]
    assert not result.changed[0].open


def test_a_moment_before_all_others_begins_a_closed_episode() -> None:
    result = segment_session(moments(-90), [a_segment(1, 0, 10, is_open=True)])
    (changed,) = result.changed
    assert (changed.id, changed.open) == (result.places[0][0], False)


def test_a_moment_between_episodes_joins_the_nearer() -> None:
    result = segment_session(moments(35), [a_segment(1, 0, 10), a_segment(2, 50, 60)])
    assert result.places == ((UUID(int=2), 3),)


def test_an_episode_closed_too_soon_is_reopened() -> None:
    result = segment_session(moments(25), [a_segment(1, 0, 10)])
    assert result.places == ((UUID(int=1), 3),)
    assert result.changed[0].open


def test_an_episode_before_a_closed_one_stays_closed() -> None:
    result = segment_session(moments(25), [a_segment(1, 0, 10), a_segment(2, 90, 95)])
    assert [(segment.id, segment.open) for segment in result.changed] == [(UUID(int=1), False)]


def test_moments_at_one_time_are_ordered_by_their_position() -> None:
    result = segment_session([(NOON, 2), (NOON, 0), (NOON, 1)], [])
    assert [place for _, place in result.places] == [3, 1, 2]


def test_an_empty_batch_changes_no_episode() -> None:
    result = segment_session([], [a_segment(1, 0, 10, is_open=True)])
    assert (result.places, result.changed) == ((), ())


def test_a_negative_gap_is_refused() -> None:
    with pytest.raises(ValueError, match="0 or longer"):
        segment_session([], [], gap=timedelta(seconds=-1))


@given(MINUTES, st.randoms())
def test_any_order_of_storing_gives_the_same_episodes(minutes: list[int], chance: Random) -> None:
    shuffled = chance.sample(minutes, len(minutes))
    assert partition(minutes, segment_session(moments(*minutes), [])) == partition(
        shuffled, segment_session(moments(*shuffled), [])
    )


@given(MINUTES)
def test_episodes_have_no_gap_within_and_one_between_them(minutes: list[int]) -> None:
    groups = sorted(sorted(group) for group in partition(minutes, segment_session(moments(*minutes), [])))
    limit = DEFAULT_GAP.total_seconds() / 60
    for group in groups:
        assert all(later - earlier <= limit for earlier, later in pairwise(group))
    assert all(after[0] - before[-1] > limit for before, after in pairwise(groups))


@given(st.lists(MINUTES, min_size=1, max_size=6))
def test_one_episode_at_most_is_open_across_batches(batches: list[list[int]]) -> None:
    segments: dict[UUID, EpisodeSegment] = {}
    places: list[tuple[UUID, int]] = []
    for batch in batches:
        result = segment_session(moments(*batch), list(segments.values()))
        segments |= {segment.id: segment for segment in result.changed}
        places += result.places
    assert len(set(places)) == len(places)
    opened = [segment for segment in segments.values() if segment.open]
    assert len(opened) == 1
    assert opened[0].last_at == max(segment.last_at for segment in segments.values())
    for segment in segments.values():
        assert segment.size == sum(1 for place in places if place[0] == segment.id)
        assert segment.started_at <= segment.last_at
