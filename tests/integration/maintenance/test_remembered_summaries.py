"""Summaries of episodes as memories: found by every recall, replaced when their episode grows."""

from __future__ import annotations

import pytest

from apps.agents.models import Agent
from apps.maintenance.services.consolidation import maintain_episodes
from apps.memories.models import Episode, Memory
from apps.memories.services.embedding.backlog import embed_backlog
from apps.memories.services.jobs import remembered_summaries
from apps.memories.services.jobs.episodes import episode_memories
from apps.memories.services.jobs.remembered_summaries import remember_summaries
from apps.memories.services.recall.recaller import recall
from apps.memories.services.retention.pins import pin
from apps.tenants.scope import tenant_transaction
from arbor.memory.episodes import session_of_summary, summarized_episode
from arbor.memory.recall.recall_request import RecallFilter, RecallRequest
from arbor.memory.values import MemoryStatus, MemoryType, Retention
from tests.factories.memories import EpisodeFactory
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.maintenance.maintenance_setup import (
    LONG_AGO,
    TALK,
    close_and_settle,
    episodes_of,
    remember_talk,
)
from tests.integration.memories.conftest import term_counts, true_counts


def summarize(agent: Agent, fleet: Fleet) -> None:
    close_and_settle(agent)
    maintain_episodes()
    fleet.run()
    maintain_episodes()


def summaries_of(agent: Agent) -> list[Memory]:
    with tenant_transaction(agent.tenant_id):
        return list(
            Memory.objects.filter(agent_id=agent.id, episode__isnull=False, sequence=0).order_by("id")
        )


def test_a_summary_is_a_memory_of_its_episode(mind: Agent, fleet: Fleet) -> None:
    turns = remember_talk(mind)
    with tenant_transaction(mind.tenant_id):
        Memory.objects.filter(id=turns[1]).update(trust=0.3)
        Memory.objects.filter(id__in=turns).update(emotional_valence=0.5)
    summarize(mind, fleet)
    (episode,) = episodes_of(mind)
    (summary,) = summaries_of(mind)
    assert (summary.content, summary.episode_id) == (episode.summary, episode.id)
    assert (summary.session, summary.type) == (session_of_summary(episode.id), MemoryType.EPISODIC)
    assert (summary.trust, summary.emotional_valence, summary.occurred_at) == (0.3, 0.5, LONG_AGO)
    assert (summary.retention, summary.expires_at, summary.importance) == (Retention.LASTING, None, 0.5)
    assert (episode.size, episode.summarized_at is not None) == (len(TALK), True)
    assert term_counts(mind) == true_counts(mind)
    assert remember_summaries().steps == 0
    with tenant_transaction(mind.tenant_id):
        members = episode_memories(episode_id=episode.id)
    assert [member.content for member in members] == list(TALK)


def test_short_episodes_do_not_delay_the_summaries_after_them(
    mind: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembered_summaries, "_STEP", 1)
    with tenant_transaction(mind.tenant_id):
        for size in (1, 2, 3):
            EpisodeFactory(
                agent=mind, size=size, summary=f"Talk {size}.", ended_at=LONG_AGO, summarized_at=LONG_AGO
            )
    remember_summaries()
    assert [summary.content for summary in summaries_of(mind)] == ["Talk 3."]


def test_recall_finds_a_summary_and_the_turns_behind_it(mind: Agent, fleet: Fleet) -> None:
    remember_talk(mind)
    summarize(mind, fleet)
    embed_backlog()
    request = RecallRequest(agent_id=mind.id, text="What was the talk about the Heron about?")
    found = recall(tenant_id=mind.tenant_id, request=request)
    (episode,) = episodes_of(mind)
    (summary,) = [memory for memory in found if summarized_episode(memory.session) == episode.id]
    assert summary.content == episode.summary
    assert summary.components.words > 0
    assert summary.components.meaning > 0
    behind = RecallRequest(agent_id=mind.id, text="the Heron", only=RecallFilter(episode=episode.id))
    turns = {memory.content for memory in recall(tenant_id=mind.tenant_id, request=behind)}
    assert turns == {*TALK, episode.summary}


def test_the_summary_of_a_grown_episode_replaces_the_earlier(mind: Agent, fleet: Fleet) -> None:
    remember_talk(mind)
    summarize(mind, fleet)
    (before,) = summaries_of(mind)
    remember_talk(mind, *TALK, "The Heron has a new captain, and her name is Ines.")
    summarize(mind, fleet)
    (episode,) = episodes_of(mind)
    earlier, later = summaries_of(mind)
    assert (earlier.id, earlier.status) == (before.id, MemoryStatus.ARCHIVED)
    assert (later.status, later.content) == (MemoryStatus.ACTIVE, episode.summary)
    # The first summary is not part of what the second one summarizes.
    assert episode.summary.count("Lisbon") == 1
    assert term_counts(mind) == true_counts(mind)


def test_a_forgotten_summary_does_not_come_back(mind: Agent, fleet: Fleet) -> None:
    remember_talk(mind)
    summarize(mind, fleet)
    with tenant_transaction(mind.tenant_id):
        Memory.objects.filter(sequence=0).update(status=MemoryStatus.ARCHIVED)
    summarize(mind, fleet)
    assert [summary.status for summary in summaries_of(mind)] == [MemoryStatus.ARCHIVED]


def test_a_short_episode_needs_no_memory_of_its_summary(mind: Agent, fleet: Fleet) -> None:
    remember_talk(mind, *TALK[:2])
    summarize(mind, fleet)
    assert (summaries_of(mind), remember_summaries().steps) == ([], 0)
    assert episodes_of(mind)[0].summary


def test_a_step_of_short_episodes_only_is_followed_by_further_steps(
    mind: Agent, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        remember_talk(mind, *(f"{text} ({number})" for text in TALK[:2]), session=str(number))
    summarize(mind, fleet)
    with tenant_transaction(mind.tenant_id):
        Episode.objects.filter(agent_id=mind.id).update(remembered=False)
    monkeypatch.setattr(remembered_summaries, "_STEP", 2)
    assert remember_summaries().done == 3
    assert [episode.remembered for episode in episodes_of(mind)] == [True] * 3


def test_a_pinned_summary_is_not_archived_when_its_episode_grows(mind: Agent) -> None:
    with tenant_transaction(mind.tenant_id):
        episode = EpisodeFactory(
            agent=mind, size=3, summary="Talk of ice.", ended_at=LONG_AGO, summarized_at=LONG_AGO
        )
    remember_summaries()
    (pinned,) = summaries_of(mind)
    with tenant_transaction(mind.tenant_id):
        pin(memory_ids=[pinned.id], actor="user:ada")
        Episode.objects.filter(id=episode.id).update(size=4, summary="Talk of snow.", remembered=False)
    remember_summaries()
    assert [(memory.content, memory.status) for memory in summaries_of(mind)] == [
        ("Talk of ice.", MemoryStatus.ACTIVE),
        ("Talk of snow.", MemoryStatus.ACTIVE),
    ]
