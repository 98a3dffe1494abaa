"""The ranking of episodes: a sum of named score components, as for memories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from arbor.memory.decay import days_between, relevance
from arbor.memory.timespan import TimeSpan
from arbor.memory.values import DEFAULT_DECAY_RATE


@dataclass(frozen=True, kw_only=True)
class EpisodeWeights:
    """The weights of the components: words as for memories, meaning more, for a summary says more than a turn."""

    words: float = 1.0
    meaning: float = 0.6
    time: float = 0.25
    recency: float = 0.05


@dataclass(frozen=True, kw_only=True)
class EpisodeTerms:
    """Why an episode was recalled: what each consideration added to its score."""

    #: Its summary's meaning, or without one its nearest memory's, is near the query's.
    meaning: float = 0.0
    #: Its summary, or without one its best memory, has the query's words.
    words: float = 0.0
    #: It lies in the time that the query speaks of.
    time: float = 0.0
    #: It is not long ago.
    recency: float = 0.0

    @property
    def total(self) -> float:
        """The score: the sum of all terms."""
        return sum(self.as_dict().values())

    def as_dict(self) -> dict[str, float]:
        """Return the terms by name, in the order of this class."""
        return {term.name: getattr(self, term.name) for term in fields(self)}


class EpisodeCandidate(NamedTuple):
    """An episode that may be recalled."""

    id: UUID
    #: Inner product of the query's words with the stored vector, 0 to 1.
    words: float
    #: Cosine with the query's embedding; None where there is no vector to compare.
    similarity: float | None
    started_at: datetime
    last_at: datetime


DEFAULT_EPISODE_WEIGHTS = EpisodeWeights()


def rank_episodes(
    candidates: Sequence[EpisodeCandidate],
    *,
    span: TimeSpan | None,
    now: datetime,
    limit: int,
    weights: EpisodeWeights = DEFAULT_EPISODE_WEIGHTS,
) -> list[tuple[UUID, EpisodeTerms]]:
    """Return the `limit` best, the best first, each with its terms; equal scores in the order of their ids."""
    scored = [(episode.id, _terms(episode, span, now, weights)) for episode in candidates]
    return sorted(scored, key=lambda episode: (-episode[1].total, episode[0]))[: max(0, limit)]


def _terms(
    episode: EpisodeCandidate, span: TimeSpan | None, now: datetime, weights: EpisodeWeights
) -> EpisodeTerms:
    return EpisodeTerms(
        meaning=weights.meaning * min(1.0, max(0.0, episode.similarity or 0.0)),
        words=weights.words * min(1.0, max(0.0, episode.words)),
        time=weights.time * nearness(span, episode.started_at, episode.last_at),
        recency=weights.recency
        * relevance(
            importance=1.0,
            decay_rate=DEFAULT_DECAY_RATE,
            days_since_access=days_between(episode.last_at, now),
        ),
    )


def nearness(span: TimeSpan | None, started_at: datetime, last_at: datetime) -> float:
    """Return how near a stretch of time comes to the span, 0 to 1; 1 where they overlap, 0 without a span."""
    if span is None:
        return 0.0
    nearest = min(max(started_at, span.start), last_at)
    return max(span.nearness(moment) for moment in (started_at, nearest, last_at))
