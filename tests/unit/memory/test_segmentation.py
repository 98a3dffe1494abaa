"""Memories that form an episode."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.memory.episodes import DEFAULT_GAP, EpisodeSegment, Segmentation, segment

NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)
MINUTES = st.lists(st.integers(0, 600), min_size=1, max_size=30)


def moments(*minutes: int) -> list[tuple[datetime, int]]:
    return [(NOON + timedelta(minutes=minute), 0) for minute in minutes]


def a_section(number: int, first: int, last: int, *, size: int = 2, is_open: bool = False) -> EpisodeSegment:
    (first_at, _), (last_at, _) = moments(first, last)
    return EpisodeSegment(id=UUID(int=number), started_at=first_at, last_at=last_at, size=size, open=is_open)


def partition(minutes: list[int], found: Segmentation) -> set[frozenset[int]]:
    groups = defaultdict(set)
    for minute, (section, _) in zip(minutes, found.places, strict=True):
        groups[section].add(minute)
    return {frozenset(group) for group in groups.values()}


def test_half_an_hour_is_one_episode_and_a_minute_more_is_two() -> None:
    assert partition([0, 30, 61], segment(moments(0, 30, 61), [])) == {frozenset({0, 30}), frozenset({61})}


def test_a_later_moment_joins_the_open_episode_and_takes_the_next_place() -> None:
    found = segment(moments(25), [a_section(1, 0, 10, is_open=True)])
    assert found.places == ((UUID(int=1), 3),)
    (changed,) = found.changed
    assert (changed.last_at, changed.size, changed.open) == (moments(25)[0][0], 3, True)


def test_a_new_episode_closes_the_former() -> None:
    found = segment(moments(100), [a_section(1, 0, 10, is_open=True)])
    assert [(section.id == UUID(int=1), section.open) for section in found.changed] == [
        (True, False),
        (False, True),
    ]
    assert found.joined == {found.places[0][0]}


def test_an_earlier_moment_joins_the_earlier_episode() -> None:
    earlier, latest = a_section(1, 0, 10), a_section(2, 100, 110, is_open=True)
    found = segment(moments(20), [earlier, latest])
    assert found.places == ((UUID(int=1), 3),)
    assert [section.id for section in found.changed] == [UUID(int=1)]
    assert not found.changed[0].open


def test_a_moment_before_all_others_begins_an_episode_that_is_over() -> None:
    found = segment(moments(-90), [a_section(1, 0, 10, is_open=True)])
    (changed,) = found.changed
    assert (changed.id, changed.open) == (found.places[0][0], False)


def test_a_moment_between_episodes_joins_the_nearer() -> None:
    found = segment(moments(35), [a_section(1, 0, 10), a_section(2, 50, 60)])
    assert found.places == ((UUID(int=2), 3),)


def test_an_episode_that_was_closed_too_soon_goes_on() -> None:
    found = segment(moments(25), [a_section(1, 0, 10)])
    assert found.places == ((UUID(int=1), 3),)
    assert found.changed[0].open


def test_one_that_is_before_another_that_is_closed_stays_closed() -> None:
    found = segment(moments(25), [a_section(1, 0, 10), a_section(2, 90, 95)])
    assert [(section.id, section.open) for section in found.changed] == [(UUID(int=1), False)]


def test_moments_at_one_time_are_ordered_by_their_position() -> None:
    found = segment([(NOON, 2), (NOON, 0), (NOON, 1)], [])
    assert [place for _, place in found.places] == [3, 1, 2]


def test_nothing_changes_nothing() -> None:
    found = segment([], [a_section(1, 0, 10, is_open=True)])
    assert (found.places, found.changed, found.joined) == ((), (), frozenset())


def test_a_gap_below_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="0 or longer"):
        segment([], [], gap=timedelta(seconds=-1))


@given(MINUTES, st.randoms())
def test_any_order_of_storing_gives_the_same_episodes(minutes: list[int], chance: object) -> None:
    shuffled = chance.sample(minutes, len(minutes))  # type: ignore[attr-defined]
    assert partition(minutes, segment(moments(*minutes), [])) == partition(
        shuffled, segment(moments(*shuffled), [])
    )


@given(MINUTES)
def test_episodes_have_no_gap_within_and_one_between_them(minutes: list[int]) -> None:
    groups = sorted(sorted(group) for group in partition(minutes, segment(moments(*minutes), [])))
    limit = DEFAULT_GAP.total_seconds() / 60
    for group in groups:
        assert all(later - earlier <= limit for earlier, later in pairwise(group))
    assert all(after[0] - before[-1] > limit for before, after in pairwise(groups))


@given(st.lists(MINUTES, min_size=1, max_size=6))
def test_one_episode_at_most_is_open_across_batches(batches: list[list[int]]) -> None:
    sections: dict[UUID, EpisodeSegment] = {}
    places: list[tuple[UUID, int]] = []
    for batch in batches:
        found = segment(moments(*batch), list(sections.values()))
        sections |= {section.id: section for section in found.changed}
        places += found.places
    assert len(set(places)) == len(places)
    opened = [section for section in sections.values() if section.open]
    assert len(opened) == 1
    assert opened[0].last_at == max(section.last_at for section in sections.values())
    for section in sections.values():
        assert section.size == sum(1 for place in places if place[0] == section.id)
        assert section.started_at <= section.last_at
