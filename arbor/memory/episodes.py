"""Episodes: segment a session's time into stretches without a gap, and rank episodes by named score components."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from arbor.ids import read_id, uuid7
from arbor.memory.forgetting import days_between, relevance
from arbor.memory.timespan import TimeSpan
from arbor.memory.values import DEFAULT_DECAY_RATE

#: The longest silence within an episode.
DEFAULT_GAP = timedelta(minutes=30)
#: Sessions of memories that are summaries: each is alone in its own, so that it has no place among the turns.
_SUMMARY = "episode:"


def session_of_summary(episode_id: UUID) -> str:
    """Return the session of the memory that is an episode's summary."""
    return f"{_SUMMARY}{episode_id}"


def summarized_episode(session: str) -> UUID | None:
    """Return the episode of the summary that has this session; None for any other session."""
    return read_id(session.removeprefix(_SUMMARY)) if session.startswith(_SUMMARY) else None


@dataclass(frozen=True, kw_only=True)
class EpisodeSegment:
    """An episode, as far as belonging to it goes."""

    id: UUID
    #: When its first and its last memory happened.
    started_at: datetime
    last_at: datetime
    #: How many memories were ever put in it.
    size: int = 0
    open: bool = True

    def distance(self, first: datetime, last: datetime) -> timedelta:
        """Return the silence between this section and a run of moments; 0 when they overlap."""
        return max(first - self.last_at, self.started_at - last, timedelta())


@dataclass(frozen=True, kw_only=True)
class Segmented:
    """The section of each moment, and the changed sections."""

    #: For each moment, in the order they came: its section, and its place there, from 1.
    places: tuple[tuple[UUID, int], ...]
    #: Sections that are new or have changed. At most one of them is open, and it is the latest of all.
    changed: tuple[EpisodeSegment, ...]
    #: Those of them that have new members.
    joined: frozenset[UUID]


def segment(
    moments: Sequence[tuple[datetime, int]],
    sections: Sequence[EpisodeSegment],
    *,
    gap: timedelta = DEFAULT_GAP,
) -> Segmented:
    """Assign moments of one session, each a time and a position, to its sections or new ones.

    Moments without a gap between them stay together, in whatever order they come. They join the section that is
    nearest, the later of two, if the silence is no longer than `gap`; sections are never merged. `sections` are those
    of the session that may be near, the latest of all, and the open one. The latest is open afterwards, if it was
    touched, and no other.
    """
    if gap < timedelta():
        raise ValueError(f"the gap must be 0 or longer, got {gap}")
    known = {section.id: section for section in sections}
    before = dict(known)
    places: dict[int, tuple[UUID, int]] = {}
    joined: set[UUID] = set()
    for run in _runs(moments, gap):
        first, last = moments[run[0]][0], moments[run[-1]][0]
        section = _nearest(known.values(), first, last, gap) or EpisodeSegment(
            id=uuid7(), started_at=first, last_at=last
        )
        for sequence, number in enumerate(run, start=section.size + 1):
            places[number] = (section.id, sequence)
        known[section.id] = replace(
            section,
            started_at=min(section.started_at, first),
            last_at=max(section.last_at, last),
            size=section.size + len(run),
        )
        joined.add(section.id)
    latest = max(
        known.values(), key=lambda section: (section.last_at, section.started_at, section.open), default=None
    )
    for section in known.values():
        is_open = section is latest and (section.open or section.id in joined)
        known[section.id] = replace(section, open=is_open)
    return Segmented(
        places=tuple(places[number] for number in range(len(moments))),
        changed=tuple(section for section in known.values() if before.get(section.id) != section),
        joined=frozenset(joined),
    )


def _runs(moments: Sequence[tuple[datetime, int]], gap: timedelta) -> Iterator[list[int]]:
    """Yield the moments' numbers in the order of time, those without a gap between them together."""
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
    sections: Iterable[EpisodeSegment], first: datetime, last: datetime, gap: timedelta
) -> EpisodeSegment | None:
    near = [section for section in sections if section.distance(first, last) <= gap]
    return min(
        near, key=lambda section: (section.distance(first, last), -section.last_at.timestamp()), default=None
    )


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
