"""The plain search: by meaning alone, exact, of one agent, and only active memories."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.db import connections

from apps.agents.models import Agent
from apps.memories.models import Memory, MemoryAccess
from apps.memories.services.embedding.embedding import embed_texts
from apps.memories.services.recall import search
from apps.memories.services.recall.search import SimilarMemory, search_similar_memories
from apps.tenants.scope import APP, tenant_transaction
from arbor.embedding.models import EmbeddingModel
from arbor.errors import EmbeddingFailed, Invalid
from arbor.memory.values import MemoryStatus, MemoryType
from tests.integration.memories.conftest import NOON, a_memory
from tests.support.embedders import RemoteEmbedder
from tests.support.memories import store_memories

TEXTS = ("The oak is old.", "A boat lies in the shed.", "The ferry came late.", "Read the gauge twice.")


def find(agent: Agent, text: str, **options: Any) -> list[SimilarMemory]:
    return search_similar_memories(tenant_id=agent.tenant_id, agent_id=agent.id, text=text, **options)


def test_the_nearest_in_meaning_come_first(mind: Agent) -> None:
    store_memories(mind, *(a_memory(text, importance=n / 10) for n, text in enumerate(TEXTS)))
    vectors = embed_texts(tenant_id=mind.tenant_id, texts=["an old ship", *TEXTS])
    cosines = dict(zip(TEXTS, (vectors[1:] @ vectors[0]).tolist(), strict=True))
    similar = find(mind, "an old ship")
    assert [memory.content for memory in similar] == sorted(TEXTS, key=lambda text: -cosines[text])
    np.testing.assert_allclose(
        [memory.similarity for memory in similar], sorted(cosines.values(), reverse=True), atol=2e-3
    )
    assert find(mind, "an old ship", limit=2) == similar[:2]
    with tenant_transaction(mind.tenant_id):
        assert not MemoryAccess.objects.exists()


def test_only_memories_of_the_types_asked_for_are_found(mind: Agent) -> None:
    for text, kind in zip(TEXTS, MemoryType, strict=True):
        store_memories(mind, a_memory(text, type=kind))
    procedural, semantic = MemoryType.PROCEDURAL, MemoryType.SEMANTIC
    assert {memory.type for memory in find(mind, "a boat", types=[procedural])} == {procedural}
    assert {memory.type for memory in find(mind, "a boat", types=[procedural, semantic])} == {
        procedural,
        semantic,
    }
    assert len(find(mind, "a boat")) == 4


def test_only_active_embedded_own_memories_are_found(
    mind: Agent, other_mind: Agent, foreign_mind: Agent
) -> None:
    for agent in (mind, other_mind, foreign_mind):
        store_memories(agent, *(a_memory(text) for text in TEXTS))
    with tenant_transaction(mind.tenant_id):
        mine = Memory.objects.filter(agent_id=mind.id)
        mine.filter(content=TEXTS[0]).update(status=MemoryStatus.ARCHIVED)
        mine.filter(content=TEXTS[1]).update(expires_at=NOON - timedelta(days=9_000))
        mine.filter(content=TEXTS[2]).update(embedding=None)
        left = mine.get(content=TEXTS[3]).id
    assert [memory.id for memory in find(mind, "the gauge")] == [left]


def test_a_mind_that_is_empty_has_nothing_similar(mind: Agent) -> None:
    assert find(mind, "a boat") == []


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "a query is 1 to"),
        ("a\0b", {}, "a query must not contain a NUL character"),
        ("a boat", {"limit": 0}, "1 to 200 memories, asked for 0"),
        ("a boat", {"limit": 1_000_000}, "1 to 200 memories, asked for 1000000"),
        ("a boat", {"types": ["dream"]}, "types must be of episodic"),
    ],
)
def test_an_invalid_search_is_refused(mind: Agent, text: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(Invalid, match=message):
        find(mind, text, **options)


def test_a_failing_embedder_raises_an_error(mind: Agent, remote: RemoteEmbedder) -> None:
    store_memories(mind, a_memory(TEXTS[0]))
    remote.away = True
    with pytest.raises(EmbeddingFailed):
        find(mind, "a tree")


def test_a_search_is_repeated_when_the_agent_moved_meanwhile(
    mind: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_memories(mind, *(a_memory(text) for text in TEXTS))
    wrong = EmbeddingModel(name="another", dimension=3)
    answer = search.embed_for_agent
    calls: list[int] = []

    def moved_once(**asking: Any) -> Any:
        calls.append(1)
        return ([1.0, 0.0, 0.0], wrong) if len(calls) == 1 else answer(**asking)

    monkeypatch.setattr(search, "embed_for_agent", moved_once)
    assert len(find(mind, "a boat")) == 4
    monkeypatch.setattr(search, "embed_for_agent", lambda **_: ([1.0, 0.0, 0.0], wrong))
    with pytest.raises(EmbeddingFailed, match="search again"):
        find(mind, "a boat")


def test_a_search_is_one_index_only_scan_of_the_mind(
    mind: Agent, other_mind: Agent, foreign_mind: Agent, vacuum: Callable[[], None]
) -> None:
    for agent in (mind, other_mind, foreign_mind):
        store_memories(
            agent, *(a_memory(f"Stone number {number} lies by the water.") for number in range(400))
        )
    vacuum()
    plans: list[str] = []

    def explain(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.lstrip().startswith("WITH asked AS"):
            execute(f"EXPLAIN {sql}", params, many, context)
            plans.append("\n".join(row[0] for row in context["cursor"].fetchall()))
        return execute(sql, params, many, context)

    with connections[APP].execute_wrapper(explain):
        assert len(find(mind, "stones")) == 10
    (plan,) = plans
    assert "Index Only Scan using memories_memory_mind" in plan, plan
