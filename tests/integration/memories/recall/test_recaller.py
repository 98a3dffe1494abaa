"""Recalls of several agents of a tenant in one transaction."""

from __future__ import annotations

from typing import Any

from apps.agents.models import Agent
from apps.memories.services.embedding.embedding import embed_texts
from apps.memories.services.recall.mind_cache import MindCache
from apps.memories.services.recall.recaller import Recaller
from apps.memories.services.store.remember import remember, store
from apps.tenants.scope import tenant_transaction
from arbor.memory.recall.recall_request import RecallRequest
from tests.integration.memories.conftest import NOON, a_memory, turns
from tests.integration.memories.in_scope import recall_in_scope
from tests.integration.memories.recall.cache_and_scan import caching, scanning

TALK = ("Did you get the boat out of the shed?", "Yes. The hull needs two coats of paint.", "What colour?")
OTHER = ("The library closes early.", "Then the boat must wait.", "Grace has the key of the shed.")


def store_memories(agent: Agent, *texts: str, role: str = "Ada") -> None:
    remember(tenant_id=agent.tenant_id, agent_id=agent.id, memories=turns(*texts, role=role))


def count_statistics_reads(statements: list[str]) -> int:
    return sum("memories_term" in statement for statement in statements)


def test_each_agent_is_answered_as_if_it_were_asked_alone(mind: Agent, other_mind: Agent) -> None:
    store_memories(mind, *TALK)
    store_memories(other_mind, *OTHER, role="Grace")
    (vector,) = embed_texts(tenant_id=mind.tenant_id, texts=["the paint of the boat"])
    queries: list[dict[str, Any]] = [
        {"agent_id": mind.id, "text": "Ada's boat", "vector": vector.tolist(), "limit": 2, "now": NOON},
        {"agent_id": other_mind.id, "text": "Ada's boat", "vector": None, "limit": 5, "now": NOON},
        {"agent_id": mind.id, "text": "the shed", "vector": vector.tolist(), "limit": 1, "now": NOON},
    ]
    with tenant_transaction(mind.tenant_id):
        results = Recaller().recall([RecallRequest(**fields) for fields in queries])
        assert results == [recall_in_scope(**fields) for fields in queries]
    assert [len(memories) for memories in results] == [2, 3, 1]
    assert all(memory.components.speaker for memory in results[0])
    assert not any(memory.components.speaker for memory in results[1])


def test_an_empty_batch_runs_no_statement(mind: Agent, statements: list[str]) -> None:
    with tenant_transaction(mind.tenant_id):
        assert Recaller().recall([]) == []
        assert Recaller().meaning_texts([]) == []
    assert statements == []


def test_another_tenants_agent_is_not_recalled_for(mind: Agent, foreign_mind: Agent) -> None:
    store_memories(mind, *TALK)
    store_memories(foreign_mind, *OTHER)
    requests = [
        RecallRequest(agent_id=agent.id, text="the boat", limit=5, now=NOON) for agent in (mind, foreign_mind)
    ]
    with tenant_transaction(mind.tenant_id):
        own, foreign = Recaller().recall(requests)
    assert len(own) == len(TALK)
    assert foreign == []


def test_meaning_texts_of_several_agents_take_one_statement(
    mind: Agent, other_mind: Agent, statements: list[str]
) -> None:
    store_memories(mind, *TALK)
    store_memories(other_mind, *OTHER, role="Grace")
    statements.clear()
    with tenant_transaction(mind.tenant_id):
        queries = [(mind.id, "Ada's boat"), (other_mind.id, "Ada's boat"), (other_mind.id, "Grace's boat")]
        assert Recaller().meaning_texts(queries) == ["boat", "Ada's boat", "boat"]
    assert len(statements) == 1


def test_recalling_does_not_read_known_words_again(
    mind: Agent, other_mind: Agent, statements: list[str]
) -> None:
    store_memories(mind, *TALK)
    store_memories(other_mind, *OTHER)
    recaller = Recaller()
    with tenant_transaction(mind.tenant_id), scanning():
        recaller.meaning_texts([(mind.id, "the boat in the shed"), (other_mind.id, "the library")])
        statements.clear()
        recaller.recall([RecallRequest(agent_id=mind.id, text="the shed", limit=3, now=NOON)])
        assert count_statistics_reads(statements) == 0
        recaller.recall([RecallRequest(agent_id=other_mind.id, text="the shed", limit=3, now=NOON)])
        assert count_statistics_reads(statements) == 1
        recaller.recall([RecallRequest(agent_id=other_mind.id, text="the library", limit=3, now=NOON)])
        assert count_statistics_reads(statements) == 1


def test_several_cached_minds_take_as_many_statements_as_one(
    mind: Agent, other_mind: Agent, statements: list[str]
) -> None:
    store_memories(mind, *TALK)
    store_memories(other_mind, *OTHER, role="Grace")
    requests = [
        RecallRequest(agent_id=agent.id, text=text, limit=2, now=NOON)
        for agent in (mind, other_mind)
        for text in ("Ada's boat", "the shed")
    ]
    with caching(MindCache()):
        counts = []
        for batch in (requests, requests, requests[:1]):
            statements.clear()
            with tenant_transaction(mind.tenant_id):
                results = Recaller().recall(batch)
            counts.append(len(statements))
            assert all(results)
    # The first recall loads statistics, minds and state; the later ones load changes with the statistics, and state.
    assert counts == [3, 2, 2]


def test_memories_stored_between_two_recalls_are_recalled(mind: Agent) -> None:
    store_memories(mind, *TALK)
    request = RecallRequest(agent_id=mind.id, text="the harbour", limit=9, now=NOON)
    recaller = Recaller()
    with tenant_transaction(mind.tenant_id), caching(MindCache()):
        assert len(recaller.recall([request])[0]) == len(TALK)
        store(agent_id=mind.id, memories=[a_memory("The harbour is empty.")], vectors=None)
        recalled = recaller.recall([request])[0]
    assert "The harbour is empty." in {memory.content for memory in recalled}
