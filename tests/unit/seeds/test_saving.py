"""The policy of saved seeds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from arbor.ids import uuid7
from arbor.seeds.saving import LATEST, DatedSeed, expired_seeds

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
AGENT = uuid7()


def saved(*ages: timedelta, agent_id: UUID = AGENT) -> list[DatedSeed]:
    return [DatedSeed(id=uuid7(), agent_id=agent_id, at=NOW - age) for age in ages]


def expired(seeds: list[DatedSeed], *existing: UUID) -> set[UUID]:
    return set(expired_seeds(seeds, existing=frozenset(existing), now=NOW))


def test_the_latest_seeds_stay_whatever_their_age() -> None:
    seeds = saved(*(timedelta(days=100 + day) for day in range(LATEST + 2)))

    assert expired(seeds, AGENT) == {seed.id for seed in seeds[LATEST:]}


def test_one_seed_of_each_day_of_a_week_stays() -> None:
    latest = saved(*(timedelta(minutes=minute) for minute in range(LATEST)))
    daily = saved(*(timedelta(days=day) for day in range(1, 10)))
    second = saved(*(timedelta(days=day, minutes=5) for day in range(1, 10)))

    assert expired([*latest, *daily, *second], AGENT) == {seed.id for seed in (*daily[7:], *second)}


def test_seeds_of_a_destroyed_agent_stay_for_30_days() -> None:
    young, old = saved(timedelta(days=29), timedelta(days=31))

    assert expired([young, old]) == {old.id}


def test_agents_do_not_share_the_number_of_seeds() -> None:
    other = uuid7()
    seeds = saved(*[timedelta(days=50)] * LATEST) + saved(*[timedelta(days=50)] * LATEST, agent_id=other)

    assert expired(seeds, AGENT, other) == set()
