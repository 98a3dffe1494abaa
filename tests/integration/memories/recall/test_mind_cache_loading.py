"""The loading of the mind cache: minds that are recalled from often, within a budget; and queries embedded once."""

from __future__ import annotations

from typing import Any

import pytest

from apps.agents.models import Agent
from apps.memories.services.recall import mind_cache, recaller
from apps.memories.services.recall.mind_cache import MindCache
from apps.memories.services.recall.recaller import Recaller, recall
from apps.tenants.scope import tenant_transaction
from arbor.memory.recall.recall_request import RecallRequest
from arbor.memory.values import Recalled
from tests.integration.memories.conftest import NOON, turns
from tests.integration.memories.embedding.moves import SHORT, move
from tests.integration.memories.recall.cache_and_scan import caching, scanning
from tests.support.embedders import RemoteEmbedder
from tests.support.memories import TALK, store_memories

# --- Queries are embedded once ----------------------------------------------------------------------


def test_a_query_is_embedded_once_with_a_cached_mind(
    mind: Agent, remote: RemoteEmbedder, cache: MindCache, statements: list[str]
) -> None:
    store_memories(mind, *turns(*TALK))
    with caching(cache):
        recall_text(mind, "the paint")
        remote.asked.clear()
        statements.clear()
        recall_text(mind, "Ada's brushes")
    assert remote.asked == ["brushes"]
    assert len([statement for statement in statements if "embeddingcacheentry" not in statement]) == 2


def test_a_query_with_a_changed_meaning_is_embedded_again(
    mind: Agent, remote: RemoteEmbedder, cache: MindCache
) -> None:
    store_memories(mind, *turns(*TALK))
    with caching(cache):
        recall_text(mind, "the paint")
        store_memories(mind, *turns("The key hangs by the door.", role="Grace", session="keys"))
        remote.asked.clear()
        recalled = recall_text(mind, "Grace's key")
    assert remote.asked == ["Grace's key", "key"]
    with scanning():
        scanned = recall_text(mind, "Grace's key")
    assert [memory.id for memory in recalled] == [memory.id for memory in scanned]
    assert recalled[0].terms.speaker > 0


def test_a_query_of_a_moved_agent_is_embedded_by_its_model(mind: Agent, cache: MindCache) -> None:
    store_memories(mind, *turns(*TALK))
    with caching(cache):
        recall_text(mind, "the paint")
        move(mind, SHORT)
        recalled = recall_text(mind, "the colour of the hull")
    assert any(memory.terms.meaning for memory in recalled)


def recall_text(agent: Agent, text: str) -> list[Recalled]:
    return recall(tenant_id=agent.tenant_id, request=RecallRequest(agent_id=agent.id, text=text))


# --- Cached minds -----------------------------------------------------------------------------------


def count_cached_after(agent: Agent, minds: MindCache, monkeypatch: pytest.MonkeyPatch, times: int) -> int:
    """Recall a number of times, and return how many minds are cached then."""
    monkeypatch.setattr(recaller, "MINDS", minds)
    for _ in range(times):
        with tenant_transaction(agent.tenant_id):
            Recaller().recall([RecallRequest(agent_id=agent.id, text="boat", limit=3, now=NOON)])
    return len(minds)


def test_a_large_mind_is_loaded_when_it_is_recalled_from_often(
    mind: Agent, cache: MindCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_memories(mind, *turns(*TALK))
    monkeypatch.setattr(mind_cache, "MEMORIES_PER_RECALL", 2)
    assert count_cached_after(mind, cache, monkeypatch, len(TALK) // 2) == 0
    assert count_cached_after(mind, cache, monkeypatch, 1) == 1


def test_recalls_long_ago_do_not_count(
    mind: Agent, cache: MindCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_memories(mind, *turns(*TALK))
    monkeypatch.setattr(mind_cache, "MEMORIES_PER_RECALL", 2)
    count_cached_after(mind, cache, monkeypatch, len(TALK) // 2)
    monkeypatch.setattr(mind_cache, "_COUNTING_S", 0.0)
    assert count_cached_after(mind, cache, monkeypatch, 1) == 0


def test_a_small_mind_is_loaded_at_once(
    mind: Agent, cache: MindCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_memories(mind, *turns(*TALK))
    assert count_cached_after(mind, cache, monkeypatch, 1) == 1


def test_the_least_recently_used_mind_is_evicted_over_budget(
    mind: Agent, other_mind: Agent, cache: MindCache, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    for agent in (mind, other_mind):
        store_memories(agent, *turns(*TALK))
    assert count_cached_after(mind, cache, monkeypatch, 1) == 1
    size = cache.nbytes
    settings.ARBOR_MIND_CACHE_MB = 1.5 * size / 2**20
    assert count_cached_after(other_mind, cache, monkeypatch, 1) == 1
    assert cache.nbytes <= 1.5 * size
    assert [agent_id for _, agent_id in cache._entries] == [other_mind.id]


def test_without_a_budget_every_recall_scans(
    mind: Agent, cache: MindCache, monkeypatch: pytest.MonkeyPatch, statements: list[str]
) -> None:
    store_memories(mind, *turns(*TALK))
    statements.clear()
    with scanning():
        assert count_cached_after(mind, cache, monkeypatch, 3) == 0
    assert sum(statement.lstrip().startswith("WITH asked AS") for statement in statements) == 3
