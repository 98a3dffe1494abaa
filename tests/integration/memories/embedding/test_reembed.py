"""Moving an agent to another embedding model: online, atomic, and safe to interrupt."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from django.db import connections

from apps.agents.models import Agent
from apps.audit.models import AuditAction, AuditEvent
from apps.memories.models import (
    BufferItem,
    Cluster,
    Episode,
    Memory,
    Mind,
    Upkeep,
)
from apps.memories.services.embedding.backlog import embed_backlog
from apps.memories.services.embedding.embedding import embed_texts, embedder_for
from apps.memories.services.embedding.literals import fit_terms
from apps.memories.services.embedding.reembed import Reembedding, find_moves, switch_model
from apps.memories.services.recall import recaller
from apps.memories.services.recall.recaller import recall
from apps.memories.services.store.remember import store
from apps.memories.services.store.term_counts import count_terms, terms_of
from apps.tenants.scope import tenant_transaction
from arbor.embedding.models import EmbeddingModel
from arbor.memory.recall.recall_request import RecallRequest
from arbor.memory.text.lexical import document_vector
from arbor.memory.values import MemoryStatus
from tests.integration.memories.conftest import (
    NOON,
    REMOTE,
    a_memory,
    memories_of,
    term_counts,
    true_counts,
    turns,
)
from tests.integration.memories.creation import open_mind
from tests.integration.memories.embedding.moves import (
    LONG,
    SHORT,
    STATEMENTS,
    count_next_embeddings,
    current_model,
    move,
    vectors_of,
)
from tests.integration.memories.in_scope import recall_in_scope
from tests.support.embedders import RemoteEmbedder, registered_embedder
from tests.support.memories import store_memories


def is_recalled_as_by_brute_force(agent: Agent, model: EmbeddingModel, query: str) -> bool:
    """Return whether a recall finds the memories for the query's vector by this model, the nearest one included.

    Assert that the stored vectors are those of the model.
    """
    recalled = recall(
        tenant_id=agent.tenant_id, request=RecallRequest(agent_id=agent.id, text=query, limit=5)
    )
    embedder = embedder_for(model)
    vector = embedder.embed([query])[0]
    with tenant_transaction(agent.tenant_id):
        expected = recall_in_scope(
            agent_id=agent.id, text=query, vector=vector.tolist(), model=model, limit=5
        )
    stored = vectors_of(agent)
    own = embedder.embed(list(stored))
    np.testing.assert_allclose(np.array(list(stored.values())), own, atol=1e-3)
    best = max(zip(own @ vector, stored, strict=True))[1]
    return [memory.id for memory in recalled] == [memory.id for memory in expected] and best in {
        memory.content for memory in recalled
    }


# --- The move ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [SHORT, REMOTE], ids=["shorter", "longer"])
def test_all_memories_get_the_vectors_of_the_new_model(
    mind: Agent, other_mind: Agent, server: RemoteEmbedder, model: EmbeddingModel
) -> None:
    store_memories(mind, *turns(*STATEMENTS))
    store_memories(other_mind, a_memory("The tide turns."))
    assert is_recalled_as_by_brute_force(mind, LONG, "who is sleeping?")
    switch = move(mind, model, batch=10)
    assert (switch.memories, switch.refused, switch.left) == (len(STATEMENTS), 0, 0)
    assert current_model(mind) == model
    assert {len(vector) for vector in vectors_of(mind).values()} == {model.dimension}
    assert {memory.embedding_model for memory in memories_of(mind)} == {embedder_for(model).model}
    assert is_recalled_as_by_brute_force(mind, model, "who is sleeping?")
    assert count_next_embeddings(mind) == 0
    assert current_model(other_mind) == LONG
    assert {len(vector) for vector in vectors_of(other_mind).values()} == {256}
    with tenant_transaction(mind.tenant_id):
        (event,) = AuditEvent.objects.filter(action=AuditAction.OPERATOR_ACT, actor="cli:test")
    assert event.agent_id == mind.id
    assert event.message == f"moved 36 memories from the embedding model {LONG} to {model}"


def test_a_move_there_and_back_restores_the_vectors(mind: Agent) -> None:
    store_memories(mind, *turns(*STATEMENTS))
    before = vectors_of(mind)
    move(mind, SHORT)
    move(mind, LONG)
    assert vectors_of(mind) == before


def test_later_memories_are_embedded_by_the_new_model(mind: Agent) -> None:
    store_memories(mind, a_memory("Before."))
    move(mind, SHORT)
    store_memories(mind, a_memory("After."))
    assert {text: len(vector) for text, vector in vectors_of(mind).items()} == {"Before.": 64, "After.": 64}


def test_archived_and_unembedded_memories_are_moved_too(mind: Agent) -> None:
    store_memories(mind, *turns("One.", "Two."))
    with tenant_transaction(mind.tenant_id):
        store(agent_id=mind.id, memories=[a_memory("Three.")], vectors=None)
        Memory.objects.filter(content="One.").update(status=MemoryStatus.ARCHIVED)
    assert move(mind, SHORT).memories == 3
    assert {text: len(vector) for text, vector in vectors_of(mind).items()} == {
        "One.": 64,
        "Two.": 64,
        "Three.": 64,
    }


def test_an_agent_that_remembers_nothing_yet_is_moved_at_once(mind: Agent) -> None:
    with tenant_transaction(mind.tenant_id):
        open_mind(mind.id)
    assert move(mind, SHORT).memories == 0
    assert current_model(mind) == SHORT


def test_derived_values_of_the_old_vectors_are_recomputed(mind: Agent) -> None:
    store_memories(mind, *turns(*STATEMENTS[:3]))
    with tenant_transaction(mind.tenant_id):
        common: dict[str, Any] = {"tenant_id": mind.tenant_id, "agent": mind}
        old = np.full(256, 0.0625)
        Cluster.objects.create(**common, name="ships", centroid=old, stale=False)
        Episode.objects.create(
            **common,
            session="old",
            started_at=NOON,
            last_at=NOON,
            ended_at=NOON,
            summary="Of ships.",
            summarized_at=NOON,
            embedding=old,
            embedding_model="wordllama/l2_supercat_256",
        )
        BufferItem.objects.create(
            **common,
            content="Buy rope.",
            content_hash=b"1" * 32,
            embedding=old,
            expires_at="2999-01-01T00:00Z",
        )
        Upkeep.objects.update(stale=False)
    move(mind, SHORT)
    with tenant_transaction(mind.tenant_id):
        cluster = Cluster.objects.get()
        assert (cluster.centroid, cluster.stale) == (None, True)
        assert set(Upkeep.objects.values_list("stale", flat=True)) == {True}
    assert embed_backlog() == 2
    with tenant_transaction(mind.tenant_id):
        assert len(Episode.objects.get(session="old").embedding) == 64
        assert len(BufferItem.objects.get().embedding) == 64


@pytest.mark.parametrize("way", ["longer", "shorter"])
def test_the_words_that_fit_beside_the_new_vector_stay(
    mind: Agent, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    wide = EmbeddingModel(name="tei/wide", dimension=1024)
    text = " ".join(f"word{number}" for number in range(300))
    store_memories(mind, a_memory(text), a_memory("The tide turns."), a_memory("word1 word2 are archived."))
    with tenant_transaction(mind.tenant_id):
        Memory.objects.filter(content__startswith="word1 word2 are").update(status=MemoryStatus.ARCHIVED)
        # Word statistics exclude archived memories.
        count_terms(mind.id, terms=[terms_of(Memory.objects.get(status="archived").lexical)], sign=-1)
    models = [wide] if way == "longer" else [wide, LONG]
    with registered_embedder(monkeypatch, RemoteEmbedder(wide.dimension), name=wide.name):
        for model in models:
            move(mind, model)
    (memory,) = (memory for memory in memories_of(mind) if memory.content == text)
    expected = fit_terms(document_vector(text, speaker=""), session="", dimension=models[-1].dimension)
    assert len(memory.lexical.indices()) == len(expected)
    assert (len(expected) < 100) is (way == "longer")
    assert term_counts(mind) == true_counts(mind)


# --- Recall during the move --------------------------------------------------------------------------


def test_recall_answers_during_the_move(mind: Agent) -> None:
    store_memories(mind, *turns(*STATEMENTS))
    stop = threading.Event()

    def ask() -> list[int]:
        answers = []
        try:
            while not stop.is_set():
                # None of the words occurs in a memory: only the meaning matches.
                recalled = recall(
                    tenant_id=mind.tenant_id,
                    request=RecallRequest(agent_id=mind.id, text="Who naps, dozes, slumbers?"),
                )
                answers.append(len(recalled))
        finally:
            connections.close_all()
        return answers

    with ThreadPoolExecutor(2) as pool:
        asking = [pool.submit(ask) for _ in range(2)]
        try:
            for model in (SHORT, LONG, SHORT, LONG, SHORT):
                move(mind, model, batch=7)
        finally:
            stop.set()
        answers = [number for future in asking for number in future.result()]
    assert len(answers) > 5
    assert min(answers) > 0


def test_a_query_embedded_before_the_move_is_embedded_again(
    mind: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_memories(mind, *turns(*STATEMENTS))

    def move_meanwhile(**arguments: Any) -> Any:
        vectors = embed_texts(**arguments)
        monkeypatch.setattr(recaller, "embed_query", embed_texts)
        move(mind, SHORT)
        return vectors

    monkeypatch.setattr(recaller, "embed_query", move_meanwhile)
    recalled = recall(
        tenant_id=mind.tenant_id, request=RecallRequest(agent_id=mind.id, text="Who naps, dozes, slumbers?")
    )
    assert "asleep" in recalled[0].content
    assert current_model(mind) == SHORT


def test_a_vector_of_the_old_model_is_compared_with_nothing(mind: Agent) -> None:
    store_memories(mind, *turns(*STATEMENTS))
    old = embed_texts(tenant_id=mind.tenant_id, texts=["rusty anchor"])[0].tolist()
    move(mind, SHORT)
    for model in (LONG, None):
        with tenant_transaction(mind.tenant_id):
            recalled = recall_in_scope(
                agent_id=mind.id, text="rusty anchor", vector=old, model=model, limit=3
            )
        assert [memory.components.meaning for memory in recalled] == [0, 0, 0]


def test_vectors_of_the_old_model_are_not_stored_after_the_move(mind: Agent) -> None:
    store_memories(mind, a_memory("Before."))
    old = embed_texts(tenant_id=mind.tenant_id, texts=["During."])
    move(mind, SHORT)
    with tenant_transaction(mind.tenant_id):
        store(agent_id=mind.id, memories=[a_memory("During.")], vectors=old, model=LONG)
    assert set(vectors_of(mind)) == {"Before."}
    assert embed_backlog() == 1
    assert len(vectors_of(mind)["During."]) == 64


# --- Selected agents ---------------------------------------------------------------------------------


def test_moves_are_found_for_an_agent_a_tenant_or_all(
    mind: Agent, other_mind: Agent, foreign_mind: Agent
) -> None:
    for agent in (mind, other_mind, foreign_mind):
        store_memories(agent, *turns("One.", "Two."))

    def agents_found(**where: Any) -> set[Any]:
        return {move.agent_id for move in find_moves(model=SHORT, actor="cli:test", **where)}

    assert agents_found() == {mind.id, other_mind.id, foreign_mind.id}
    assert agents_found(tenant_id=mind.tenant_id) == {mind.id, other_mind.id}
    assert agents_found(tenant_id=mind.tenant_id, agent_id=mind.id) == {mind.id}
    assert agents_found(tenant_id=mind.tenant_id, agent_id=foreign_mind.id) == set()
    move(mind, SHORT)
    assert agents_found() == {other_mind.id, foreign_mind.id}
    (planned,) = find_moves(model=LONG, actor="cli:test")
    assert (planned.name, planned.model, planned.memories, planned.prepared) == ("Vega", SHORT, 2, 0)


def test_a_switch_takes_as_many_statements_for_any_mind(mind: Agent, statements: list[str]) -> None:
    counts = []
    for number in (2, 30):
        store_memories(mind, *turns(*STATEMENTS[:number]))
        target = SHORT if current_model(mind) == LONG else LONG
        moves = find_moves(model=target, actor="cli:test", agent_id=mind.id)
        Reembedding(model=target, actor="cli:test")._prepare_missing(moves[0])
        statements.clear()
        with tenant_transaction(mind.tenant_id):
            assert switch_model(agent_id=mind.id, model=target, actor="cli:test") is not None
        counts.append(len(statements))
    assert counts[0] == counts[1] <= 14
    with tenant_transaction(mind.tenant_id):
        assert Mind.objects.count() == 1
