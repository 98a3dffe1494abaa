"""Segment a session into episodes at its gaps, and rank episodes by named score components."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from arbor.ids import read_id, uuid7
from arbor.memory.forgetting import days_between, relevance
from arbor.memory.recall.timespan import TimeSpan
from arbor.memory.values import DEFAULT_DECAY_RATE

#: The longest silence within an episode.
DEFAULT_GAP = timedelta(minutes=30)
#: The beginning of the sessions of summaries. Each summary has a session of its own, so that it has no place among the turns.
_SUMMARY_PREFIX = "episode:"


def session_of_summary(episode_id: UUID) -> str:
    """Return the session of the memory that is an episode's summary."""
    return f"{_SUMMARY_PREFIX}{episode_id}"


def summarized_episode(session: str) -> UUID | None:
    """Return the episode of the summary that has this session; None for any other session."""
    return read_id(session.removeprefix(_SUMMARY_PREFIX)) if session.startswith(_SUMMARY_PREFIX) else None


@dataclass(frozen=True, kw_only=True)
class EpisodeSegment:
    """The fields of an episode that decide which memories belong to it."""

    id: UUID
    #: The times of the first and the last memory.
    started_at: datetime
    last_at: datetime
    #: The number of memories that were ever assigned to the episode.
    size: int = 0
    open: bool = True

    def distance(self, first: datetime, last: datetime) -> timedelta:
        """Return the time between this segment and a run of moments; 0 when they overlap."""
        return max(first - self.last_at, self.started_at - last, timedelta())


@dataclass(frozen=True, kw_only=True)
class Segmentation:
    """The result of `segment_session`: the segment of each moment, and the changed segments."""

    #: For each moment, in the given order: its segment, and its position in the segment, from 1.
    places: tuple[tuple[UUID, int], ...]
    #: The segments that are new or have changed. At most one of them is open: the latest of all segments.
    changed: tuple[EpisodeSegment, ...]


def segment_session(
    moments: Sequence[tuple[datetime, int]],
    segments: Sequence[EpisodeSegment],
    *,
    gap: timedelta = DEFAULT_GAP,
) -> Segmentation:
    """Assign moments of one session, each a time and a position, to its segments or new ones.

    Moments without a gap between them get one segment, whatever their order. They join the nearest segment (the later one
    of two equally near) if the time between is at most `gap`; segments are never merged. `segments` must contain the
    session's segments that may be near, the latest, and the open one. Afterwards only the latest segment may be open: it is
    if it was open before, or has new members.
    """
    if gap < timedelta():
        raise ValueError(f"the gap must be 0 or longer, got {gap}")
    known = {segment.id: segment for segment in segments}
    before = dict(known)
    places: dict[int, tuple[UUID, int]] = {}
    joined: set[UUID] = set()
    for run in _runs(moments, gap):
        first, last = moments[run[0]][0], moments[run[-1]][0]
        segment = _nearest(known.values(), first, last, gap) or EpisodeSegment(
            id=uuid7(), started_at=first, last_at=last
        )
        for sequence, number in enumerate(run, start=segment.size + 1):
            places[number] = (segment.id, sequence)
        known[segment.id] = replace(
            segment,
            started_at=min(segment.started_at, first),
            last_at=max(segment.last_at, last),
            size=segment.size + len(run),
        )
        joined.add(segment.id)
    latest = max(
        known.values(), key=lambda segment: (segment.last_at, segment.started_at, segment.open), default=None
    )
    for segment in known.values():
        is_open = segment is latest and (segment.open or segment.id in joined)
        known[segment.id] = replace(segment, open=is_open)
    return Segmentation(
        places=tuple(places[number] for number in range(len(moments))),
        changed=tuple(segment for segment in known.values() if before.get(segment.id) != segment),
    )


def _runs(moments: Sequence[tuple[datetime, int]], gap: timedelta) -> Iterator[list[int]]:
    """Yield the indices of the moments in the order of time, grouped by gaps."""
    order = sorted(range(len(moments)), key=lambda number: (*moments[number], number))
    run: list[int] = []
    for number in order:
        if run and moments[number][0] - moments[run[-1]][0] > gap:
            yield run
            run = []
        run.append(number)
    if run:
        yield run


def _nearest(
    segments: Iterable[EpisodeSegment], first: datetime, last: datetime, gap: timedelta
) -> EpisodeSegment | None:
    near = [segment for segment in segments if segment.distance(first, last) <= gap]
    return min(
        near, key=lambda segment: (segment.distance(first, last), -segment.last_at.timestamp()), default=None
    )


@dataclass(frozen=True, kw_only=True)
class EpisodeScoreComponents:
    """The score components of a recalled episode: the addends of its score."""

    #: The summary, or without one the nearest memory, is near the query in meaning.
    meaning: float = 0.0
    #: The summary, or without one the best memory, contains words of the query.
    words: float = 0.0
    #: The episode lies in the time that the query mentions.
    time: float = 0.0
    #: The episode is recent.
    recency: float = 0.0

    @property
    def total(self) -> float:
        """The score: the sum of all components."""
        return sum(self.as_dict().values())

    def as_dict(self) -> dict[str, float]:
        """Return the components by name, in the order of this class."""
        return {component.name: getattr(self, component.name) for component in fields(self)}


class EpisodeCandidate(NamedTuple):
    """An episode that may be recalled."""

    id: UUID
    #: The inner product of the query's words with the stored vector, 0 to 1.
    words: float
    #: The cosine with the query's embedding; None without a vector to compare.
    similarity: float | None
    started_at: datetime
    last_at: datetime


#: The weights of the components. Words weigh as for memories; meaning weighs more, because a summary says more than a turn.
WORDS_WEIGHT, MEANING_WEIGHT, TIME_WEIGHT, RECENCY_WEIGHT = 1.0, 0.6, 0.25, 0.05


def rank_episodes(
    candidates: Sequence[EpisodeCandidate],
    *,
    span: TimeSpan | None,
    now: datetime,
    limit: int,
) -> list[tuple[UUID, EpisodeScoreComponents]]:
    """Return the `limit` best episodes with their score components, the best first; equal scores in the order of their ids."""
    scored = [(episode.id, _components(episode, span, now)) for episode in candidates]
    return sorted(scored, key=lambda episode: (-episode[1].total, episode[0]))[: max(0, limit)]


def _components(episode: EpisodeCandidate, span: TimeSpan | None, now: datetime) -> EpisodeScoreComponents:
    return EpisodeScoreComponents(
        meaning=MEANING_WEIGHT * min(1.0, max(0.0, episode.similarity or 0.0)),
        words=WORDS_WEIGHT * min(1.0, max(0.0, episode.words)),
        time=TIME_WEIGHT * nearness(span, episode.started_at, episode.last_at),
        recency=RECENCY_WEIGHT
        * relevance(
            importance=1.0,
            decay_rate=DEFAULT_DECAY_RATE,
            days_since_access=days_between(episode.last_at, now),
        ),
    )


def nearness(span: TimeSpan | None, started_at: datetime, last_at: datetime) -> float:
    """Return the nearness of a stretch of time to the span, 0 to 1: 1 where they overlap, 0 without a span."""
    if span is None:
        return 0.0
    nearest = min(max(started_at, span.start), last_at)
    return max(span.nearness(moment) for moment in (started_at, nearest, last_at))
