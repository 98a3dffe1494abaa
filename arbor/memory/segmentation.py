"""Segmentation of memories into episodes: sections of a session's time without a gap.

Seed 004, "Layer 3: Acceleration" and `trg_auto_episode_assignment`; its origin splits after a gap of 30 minutes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from arbor.ids import uuid7

#: The longest silence within an episode.
DEFAULT_GAP = timedelta(minutes=30)


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
