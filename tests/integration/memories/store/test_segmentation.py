"""Episodes that form as memories are stored."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from apps.agents.models import Agent
from apps.memories.models import Episode, Memory
from apps.memories.services.store.remember import remember
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import fetch
from arbor.errors import ConfigurationInvalid
from arbor.memory.values import MemoryType, NewMemory
from tests.integration.memories.conftest import NOON, a_memory, at_once, memories_of, turns


def memories_at(*minutes: int, session: str = "talk") -> list[NewMemory]:
    """Return turns at these minutes after noon."""
    return [
        a_memory(
            f"Minute {minute} of {session}.",
            session=session,
            position=minute,
            occurred_at=NOON + timedelta(minutes=minute),
        )
        for minute in minutes
    ]


def store_memories(agent: Agent, memories: list[NewMemory]) -> None:
    remember(tenant_id=agent.tenant_id, agent_id=agent.id, memories=memories)


def episodes_of(agent: Agent, session: str = "talk") -> list[Episode]:
    with tenant_transaction(agent.tenant_id):
        return list(Episode.objects.filter(agent_id=agent.id, session=session).order_by("started_at"))


def places_by_episode(agent: Agent) -> dict[UUID | None, list[tuple[int, int]]]:
    """Return places and positions of the memories of each episode, in the order of their places."""
    places: dict[UUID | None, list[tuple[int, int]]] = defaultdict(list)
    for row in sorted(memories_of(agent), key=lambda row: row.sequence):
        places[row.episode_id].append((row.sequence, row.position))
    return places


def test_a_gap_above_half_an_hour_begins_another_episode(mind: Agent) -> None:
    store_memories(mind, memories_at(0, 10, 40, 71, 72))
    first, second = episodes_of(mind)
    assert places_by_episode(mind) == {first.id: [(1, 0), (2, 10), (3, 40)], second.id: [(1, 71), (2, 72)]}
    assert (first.started_at, first.last_at) == (NOON, NOON + timedelta(minutes=40))
    assert first.ended_at is not None
    assert second.ended_at is None
    assert (first.size, second.size) == (3, 2)


def test_an_episode_continues_across_batches(mind: Agent) -> None:
    store_memories(mind, memories_at(0))
    (first,) = episodes_of(mind)
    store_memories(mind, memories_at(20))
    assert [(episode.id, episode.size, episode.ended_at) for episode in episodes_of(mind)] == [
        (first.id, 2, None)
    ]
    store_memories(mind, memories_at(90))
    former, latest = episodes_of(mind)
    assert former.id == first.id
    assert former.ended_at is not None
    assert latest.ended_at is None


def test_a_late_memory_joins_its_earlier_episode(mind: Agent) -> None:
    store_memories(mind, memories_at(0, 90))
    first, _ = episodes_of(mind)
    with tenant_transaction(mind.tenant_id):
        Episode.objects.filter(id=first.id).update(summary="Minute 0.", summarized_at=timezone.now())
    store_memories(mind, memories_at(15))
    first, second = episodes_of(mind)
    assert (first.size, first.summarized_at, first.summary) == (2, None, "Minute 0.")
    assert first.ended_at is not None
    assert second.ended_at is None
    assert places_by_episode(mind)[first.id] == [(1, 0), (2, 15)]


def test_the_latest_episode_reopens_after_the_clock_closed_it(mind: Agent) -> None:
    store_memories(mind, memories_at(0))
    with tenant_transaction(mind.tenant_id):
        Episode.objects.update(ended_at=timezone.now(), summarized_at=timezone.now())
    store_memories(mind, memories_at(10))
    (only,) = episodes_of(mind)
    assert (only.size, only.ended_at, only.summarized_at) == (2, None, None)


def test_sessions_and_agents_have_episodes_of_their_own(mind: Agent, other_mind: Agent) -> None:
    store_memories(mind, [*memories_at(0), *memories_at(5, session="other"), *memories_at(10, session="")])
    store_memories(other_mind, memories_at(0))
    for session in ("talk", "other", ""):
        assert len(episodes_of(mind, session)) == 1
    assert len(episodes_of(other_mind)) == 1


def test_only_episodic_memories_belong_to_an_episode(mind: Agent) -> None:
    store_memories(mind, [a_memory("The archive opens at nine.", type=MemoryType.SEMANTIC)])
    assert episodes_of(mind, "") == []
    assert places_by_episode(mind) == {None: [(0, 0)]}


def test_a_repeated_memory_changes_no_episode(mind: Agent) -> None:
    store_memories(mind, memories_at(0, 10))
    store_memories(mind, memories_at(0, 10))
    assert [episode.size for episode in episodes_of(mind)] == [2]


def test_a_batch_in_any_order_gives_the_same_episodes(mind: Agent, other_mind: Agent) -> None:
    minutes = [0, 10, 45, 50, 120, 125, 300]
    store_memories(mind, memories_at(*minutes))
    store_memories(other_mind, memories_at(*reversed(minutes)))
    one, other = (sorted(places_by_episode(agent).values()) for agent in (mind, other_mind))
    assert one == other
    assert len(one) == 4


def test_the_gap_is_a_setting(mind: Agent, settings: Any) -> None:
    settings.ARBOR_EPISODE_GAP = timedelta(minutes=5)
    store_memories(mind, memories_at(0, 10))
    assert len(episodes_of(mind)) == 2
    settings.ARBOR_EPISODE_GAP = timedelta(minutes=-5)
    with pytest.raises(ConfigurationInvalid, match="ARBOR_EPISODE_GAP_MINUTES must be 0 or more, got -5"):
        store_memories(mind, memories_at(20))


def test_many_writers_leave_one_open_episode_and_unique_places(mind: Agent) -> None:
    def write(writer: int) -> None:
        for minute in range(writer, 160, 8):
            store_memories(mind, memories_at(minute))

    at_once(write, writers=8)
    with tenant_transaction(mind.tenant_id):
        places = list(Memory.objects.values_list("episode_id", "sequence"))
    assert len(places) == len(set(places)) == 160
    assert None not in {episode for episode, _ in places}
    stored = episodes_of(mind)
    assert [episode.ended_at is None for episode in stored].count(True) == 1
    assert sum(episode.size for episode in stored) == 160


def test_conversations_of_one_file_do_not_mix(mind: Agent) -> None:
    store_memories(mind, [*turns("Hello.", "Hello to you.", session="a"), *turns("Good day.", session="b")])
    assert [len(episodes_of(mind, session)) for session in ("a", "b")] == [1, 1]


def test_no_index_has_a_column_that_each_memory_changes(mind: Agent) -> None:
    statement = """
    SELECT DISTINCT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid
        AND (a.attnum = ANY(i.indkey) OR i.indpred::text ~ ('varattno ' || a.attnum || ' '))
    WHERE i.indrelid = 'memories_episode'::regclass AND a.attnum > 0
    """
    with tenant_transaction(mind.tenant_id):
        indexed = {name for (name,) in fetch(statement)}
    assert {"started_at", "ended_at", "session"} <= indexed
    assert not {"last_at", "size"} & indexed
