"""The embedding backlog: each agent's own embedder, and no failing embedder delays another."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db.models import F

from apps.agents.models import Agent
from apps.memories.models import BufferItem, Episode, Upkeep
from apps.memories.services.embedding import backlog as embedding_backlog
from apps.memories.services.embedding.backlog import embed_backlog
from apps.memories.services.embedding.backlog import embedding_backlog as count_backlog
from apps.memories.services.embedding.embedding import embed_texts
from apps.memories.services.recall.recaller import recall
from apps.memories.services.retention.forgetting import expire_memories
from apps.tenants.models import Tenant, TenantStatus
from apps.tenants.scope import OPS, tenant_transaction
from arbor.memory.content import content_hash
from arbor.memory.recall.recall_request import RecallRequest
from tests.factories.memories import BufferItemFactory
from tests.integration.memories.conftest import (
    NOON,
    REMOTE,
    a_memory,
    at_once,
    memories_of,
    store_without_vectors,
    turns,
    unembedded_contents,
)
from tests.integration.memories.creation import create_mind
from tests.integration.memories.embedding.moves import LONG, SHORT
from tests.support.embedders import RemoteEmbedder


def vector_lengths(agent: Agent) -> set[int]:
    return {len(memory.embedding) for memory in memories_of(agent) if memory.embedding}


def test_a_memory_is_found_by_meaning_once_it_is_embedded(mind: Agent) -> None:
    store_without_vectors(
        mind,
        *turns("The physician examined my knee.", "The soup was too salty.", "Trains run late on Sundays."),
    )

    def search(text: str) -> list[tuple[str, float, float]]:
        memories = recall(
            tenant_id=mind.tenant_id, request=RecallRequest(agent_id=mind.id, text=text, limit=1)
        )
        return [(memory.content, memory.components.words, memory.components.meaning) for memory in memories]

    ((content, words, meaning),) = search("salty soup")
    assert content == "The soup was too salty."
    assert words > 0
    assert meaning == 0
    # The latest memories fill the limit: neither their words nor their meaning count.
    assert [(words, meaning) for _, words, meaning in search("a doctor's visit")] == [(0, 0)]
    assert search("a doctor's visit")[0][0] == "Trains run late on Sundays."
    assert embed_backlog() == 3
    ((content, words, meaning),) = search("a doctor's visit")
    assert content == "The physician examined my knee."
    assert words == 0
    assert meaning > 0


def test_the_backlog_is_embedded_chunk_by_chunk_for_all_tenants(
    mind: Agent, foreign_mind: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_backlog, "CHUNK", 12)
    monkeypatch.setattr(embedding_backlog, "CHUNK_OF_TENANT", 10)
    store_without_vectors(mind, *turns(*(f"Fish {number}." for number in range(35))))
    store_without_vectors(foreign_mind, *turns("Bird 1.", "Bird 2."))
    assert embed_backlog() == 37
    assert unembedded_contents(mind) == unembedded_contents(foreign_mind) == []
    assert {memory.embedding_model for memory in memories_of(mind)} == {"wordllama/l2_supercat_256"}
    assert embed_backlog() == 0


def test_one_tenants_long_backlog_does_not_keep_another_waiting(
    mind: Agent, foreign_mind: Agent, monkeypatch: pytest.MonkeyPatch, remote: RemoteEmbedder
) -> None:
    monkeypatch.setattr(embedding_backlog, "CHUNK_OF_TENANT", 5)
    store_without_vectors(mind, *turns(*(f"Fish {number}." for number in range(20))))
    store_without_vectors(foreign_mind, a_memory("Bird."))
    remote.lasts = 6
    assert embed_backlog() == 6
    assert unembedded_contents(foreign_mind) == []


def test_one_agents_flood_does_not_delay_another_agent(
    mind: Agent, other_mind: Agent, monkeypatch: pytest.MonkeyPatch, remote: RemoteEmbedder
) -> None:
    monkeypatch.setattr(embedding_backlog, "CHUNK_OF_TENANT", 6)
    monkeypatch.setattr(embedding_backlog, "CANDIDATES", 10)
    store_without_vectors(mind, *turns(*(f"Fish {number}." for number in range(40))))
    store_without_vectors(other_mind, *turns("Bird 1.", "Bird 2.", "Bird 3."))
    remote.lasts = 6
    assert embed_backlog() == 6
    assert unembedded_contents(other_mind) == []


def test_a_suspended_tenants_memories_are_not_embedded(
    mind: Agent, foreign_mind: Agent, remote: RemoteEmbedder
) -> None:
    store_without_vectors(mind, *turns("One.", "Two."))
    store_without_vectors(foreign_mind, *turns("Three."))
    Tenant.objects.using(OPS).filter(id=mind.tenant_id).update(status=TenantStatus.SUSPENDED)
    assert embed_backlog() == 1
    assert unembedded_contents(mind) == ["One.", "Two."]


def test_workers_that_embed_the_same_backlog_at_once_do_it_once(mind: Agent) -> None:
    store_without_vectors(mind, *turns(*(f"Star {number}." for number in range(60))))
    assert sum(at_once(lambda _: embed_backlog(), writers=4)) == 60
    assert unembedded_contents(mind) == []


def test_an_archived_memory_waits_for_no_vector(mind: Agent) -> None:
    store_without_vectors(mind, a_memory("Over.", expires_at=datetime.now(UTC) - timedelta(hours=1)))
    assert expire_memories().done == 1
    assert embed_backlog() == 0


# --- The model of each agent -------------------------------------------------------------------------


def test_each_agents_memories_are_embedded_by_its_own_model(mind: Agent, other_mind: Agent) -> None:
    create_mind(mind, SHORT)
    store_without_vectors(mind, *turns("One.", "Two."))
    store_without_vectors(other_mind, a_memory("Three."))
    assert embed_backlog() == 3
    assert (vector_lengths(mind), vector_lengths(other_mind)) == ({64}, {256})
    assert {memory.embedding_model for memory in memories_of(mind)} == {"wordllama/l2_supercat_64"}


def test_summaries_and_buffer_items_are_embedded_too(mind: Agent) -> None:
    create_mind(mind, SHORT)
    now = datetime.now(UTC)
    with tenant_transaction(mind.tenant_id):
        span = {
            "tenant_id": mind.tenant_id,
            "agent": mind,
            "started_at": NOON,
            "last_at": NOON,
            "ended_at": NOON,
        }
        Episode.objects.create(**span, summary="They spoke of the harbour.", summarized_at=NOON)
        Episode.objects.create(**span, session="b", summary="", summarized_at=NOON)
        Episode.objects.create(**span, session="c", summary="Not yet.", summarized_at=None)
        for text, expires_at in (
            ("Buy rope.", now + timedelta(hours=1)),
            ("Over.", now - timedelta(hours=1)),
        ):
            BufferItem.objects.create(
                tenant_id=mind.tenant_id,
                agent=mind,
                content=text,
                content_hash=content_hash(text),
                expires_at=expires_at,
            )
    assert count_backlog().waiting == 2
    assert embed_backlog() == 2
    with tenant_transaction(mind.tenant_id):
        (episode,) = Episode.objects.exclude(embedding=None)
        (item,) = BufferItem.objects.exclude(embedding=None)
    assert (episode.summary, item.content) == ("They spoke of the harbour.", "Buy rope.")
    assert len(episode.embedding) == len(item.embedding) == 64
    assert episode.embedding_model == item.embedding_model == "wordllama/l2_supercat_64"
    assert count_backlog().waiting == 0
    assert embed_backlog() == 0


def test_a_late_vector_renews_neighborhood_and_clusters(mind: Agent) -> None:
    store_without_vectors(mind, *turns("The harbour is full.", "The harbour is empty."))
    with tenant_transaction(mind.tenant_id):
        for memory in memories_of(mind):
            Upkeep.objects.get_or_create(memory=memory, defaults={"agent": mind})
        Upkeep.objects.update(stale=False, unclustered=False)
    assert embed_backlog() == 2
    with tenant_transaction(mind.tenant_id):
        assert set(Upkeep.objects.values_list("stale", "unclustered")) == {(True, True)}


def test_an_agent_moved_meanwhile_gets_no_old_vectors(mind: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    create_mind(mind, LONG)
    store_without_vectors(mind, a_memory("The tide turns."))

    def move_meanwhile(**arguments: Any) -> Any:
        vectors = embed_texts(**arguments)
        monkeypatch.setattr(embedding_backlog, "embed_texts", embed_texts)
        create_mind(mind, SHORT)
        return vectors

    monkeypatch.setattr(embedding_backlog, "embed_texts", move_meanwhile)
    assert embed_backlog() == 0
    assert unembedded_contents(mind) == ["The tide turns."]
    assert embed_backlog() == 1
    assert vector_lengths(mind) == {64}


# --- Agents without a mind ---------------------------------------------------------------------------


def test_agents_without_a_mind_hide_no_texts_of_others(
    mind: Agent, other_mind: Agent, server: RemoteEmbedder, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    """Their texts wait while the installation's embedder rests."""
    monkeypatch.setattr(embedding_backlog, "CHUNK_OF_TENANT", 5)
    create_mind(other_mind, LONG)
    settings.ARBOR_EMBEDDING_MODEL, settings.ARBOR_EMBEDDING_DIMENSION = REMOTE.name, REMOTE.dimension
    server.away = True
    with tenant_transaction(mind.tenant_id):
        # Buffer items come before memories.
        BufferItemFactory.create_batch(10, agent=mind)
    store_without_vectors(other_mind, *turns("One.", "Two."))
    assert embed_backlog() == 2


def test_agents_without_a_mind_do_not_wait_for_another_embedder(
    mind: Agent, foreign_mind: Agent, server: RemoteEmbedder
) -> None:
    create_mind(mind, REMOTE)
    server.away = True
    store_without_vectors(mind, *turns("One."))
    assert embed_backlog() == 0
    with tenant_transaction(foreign_mind.tenant_id):
        BufferItemFactory(agent=foreign_mind)
    assert embed_backlog() == 1


# --- Figures and checks ------------------------------------------------------------------------------


def test_the_backlog_has_its_size_and_its_oldest_age(mind: Agent, foreign_mind: Agent) -> None:
    assert count_backlog().waiting == 0
    assert count_backlog().oldest == timedelta(0)
    store_without_vectors(mind, *turns("One.", "Two."))
    store_without_vectors(foreign_mind, a_memory("Three."))
    with tenant_transaction(mind.tenant_id):
        mind.memories.update(created_at=F("created_at") - timedelta(hours=2))
    backlog = count_backlog()
    assert backlog.waiting == 3
    assert timedelta(hours=2) <= backlog.oldest < timedelta(hours=3)
    # Texts of a suspended tenant are not embedded, so they do not wait.
    Tenant.objects.using(OPS).filter(id=foreign_mind.tenant_id).update(status=TenantStatus.SUSPENDED)
    assert count_backlog().waiting == 2
    with tenant_transaction(mind.tenant_id):
        mind.memories.update(created_at=datetime.now(UTC) + timedelta(hours=1))
    assert count_backlog().oldest < timedelta(minutes=1), "a clock that jumps makes no negative age"
