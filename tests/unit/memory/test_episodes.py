"""The ranking of episodes: bounded terms, one order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.memory.episodes import DEFAULT_EPISODE_WEIGHTS, EpisodeCandidate, nearness, rank_episodes
from arbor.memory.timespan import TimeSpan

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
def test_an_episode_is_as_near_as_its_nearest_moment(
    start: datetime, end: datetime, low: float, high: float
) -> None:
    assert low <= nearness(JUNE, start, end) <= high
    assert nearness(None, start, end) == 0.0


_FLOATS = st.floats(-2, 2)


@given(
    rows=st.lists(st.tuples(_FLOATS, st.none() | _FLOATS, st.floats(-1_000, 10_000)), max_size=30),
    limit=st.integers(-1, 40),
)
def test_scores_are_bounded_ordered_and_never_more_than_asked_for(
    rows: list[tuple[float, float | None, float]], limit: int
) -> None:
    episodes = [
        _episode(number, words=words, similarity=similarity, days_ago=days)
        for number, (words, similarity, days) in enumerate(rows)
    ]
    ranked = rank_episodes(episodes, span=JUNE, now=NOW, limit=limit)
    totals = [terms.total for _, terms in ranked]
    weights = DEFAULT_EPISODE_WEIGHTS
    most = weights.words + weights.meaning + weights.time + weights.recency
    assert len(ranked) == max(0, min(limit, len(rows)))
    assert totals == sorted(totals, reverse=True)
    assert all(-1e-9 <= total <= most + 1e-9 for total in totals)
    assert ranked == rank_episodes(episodes[::-1], span=JUNE, now=NOW, limit=limit)
