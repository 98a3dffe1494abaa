"""Moves to another embedding model that are interrupted, doubled, or meet a failing embedder."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.db import connections

from apps.agents.models import Agent
from apps.memories.models import (
    EmbeddingCacheEntry,
    Memory,
    NextEmbedding,
)
from apps.memories.services.embedding import reembed
from apps.memories.services.embedding.backlog import embed_backlog
from apps.memories.services.embedding.embedding import embed_texts
from apps.memories.services.embedding.literals import fit_terms
from apps.memories.services.embedding.reembed import Reembedding, find_moves, switch_model
from apps.memories.services.jobs.reindexing import reindex_words
from apps.memories.services.recall.recaller import recall
from apps.memories.services.retention.archive import archive
from apps.memories.services.store.term_counts import terms_of
from apps.tenants.scope import APP, tenant_transaction
from arbor.embedding.models import EmbeddingModel
from arbor.errors import AlreadyExists, ConfigurationInvalid, EmbeddingFailed
from arbor.memory.recall.recall_request import RecallRequest
from arbor.memory.text.lexical import document_vector, term_index, term_of
from arbor.memory.values import MemoryType
from tests.integration.memories.conftest import (
    REMOTE,
    a_memory,
    at_once,
    memories_of,
    term_counts,
    true_counts,
    turns,
)
from tests.integration.memories.embedding.moves import (
    LONG,
    SHORT,
    STATEMENTS,
    count_next_embeddings,
    current_model,
    move,
    vectors_of,
)
from tests.support.embedders import RemoteEmbedder, forget_vectors, registered_embedder
from tests.support.memories import store_memories

# --- Interrupted, doubled and concurrent moves -------------------------------------------------------


def test_an_interrupted_run_continues_where_it_stopped(mind: Agent, server: RemoteEmbedder) -> None:
    store_memories(mind, *turns(*STATEMENTS))

    def interrupt(done: int, total: int) -> None:
        if done >= 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        move(mind, REMOTE, batch=10, progress=interrupt)
    assert count_next_embeddings(mind) == 20
    assert current_model(mind) == LONG
    assert {len(vector) for vector in vectors_of(mind).values()} == {256}
    server.asked.clear()
    progress: list[tuple[int, int]] = []
    assert move(mind, REMOTE, batch=10, progress=lambda *at: progress.append(at)).memories == 36
    assert progress == [(20, 36), (30, 36), (36, 36)]
    assert len(set(server.asked) & set(STATEMENTS)) == 16


def test_words_added_during_a_move_are_found_after_it(mind: Agent, server: RemoteEmbedder) -> None:
    names = " ".join(f"word{number}" for number in range(300))
    plain = a_memory(names, type=MemoryType.PROCEDURAL)
    store_memories(mind, plain)

    def interrupt(done: int, total: int) -> None:
        if done == total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        move(mind, REMOTE, progress=interrupt)
    store_memories(mind, replace(plain, detail={"steps": ["Grease the winch"]}))
    reindex_words()
    move(mind, REMOTE)
    (memory,) = memories_of(mind)
    assert term_index(term_of("winch")) in terms_of(memory.lexical)


def test_a_text_embedded_before_comes_from_the_cache(mind: Agent, server: RemoteEmbedder) -> None:
    store_memories(mind, *turns(*STATEMENTS))
    embed_texts(tenant_id=mind.tenant_id, texts=STATEMENTS[:30], model=REMOTE)
    server.asked.clear()
    move(mind, REMOTE)
    assert set(server.asked) & set(STATEMENTS) == set(STATEMENTS[30:])


def test_an_abandoned_move_leaves_nothing_behind(mind: Agent, server: RemoteEmbedder) -> None:
    store_memories(mind, *turns(*STATEMENTS))

    def interrupt(done: int, total: int) -> None:
        if done >= 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        move(mind, REMOTE, batch=10, progress=interrupt)
    assert move(mind, LONG).memories == 0
    assert (count_next_embeddings(mind), current_model(mind)) == (0, LONG)
    with pytest.raises(KeyboardInterrupt):
        move(mind, REMOTE, batch=10, progress=interrupt)
    move(mind, SHORT)
    assert (count_next_embeddings(mind), current_model(mind)) == (0, SHORT)


def test_concurrent_runs_move_each_memory_once(mind: Agent) -> None:
    store_memories(mind, *turns(*STATEMENTS))
    moves = find_moves(model=SHORT, actor="cli:test")

    def work(_: int) -> int:
        return Reembedding(model=SHORT, actor="cli:test", batch=5).run(moves)[0].memories

    assert sorted(at_once(work, writers=4)) == [0, 0, 0, 36]
    assert {len(vector) for vector in vectors_of(mind).values()} == {64}
    assert count_next_embeddings(mind) == 0


def test_a_run_to_another_model_does_not_mix_with_one_under_way(mind: Agent, server: RemoteEmbedder) -> None:
    store_memories(mind, *turns(*STATEMENTS))
    moves = find_moves(model=SHORT, actor="cli:test")

    def start_other_run(done: int, total: int) -> None:
        if done == 10:
            with tenant_transaction(mind.tenant_id):
                prepared = list(NextEmbedding.objects.values_list("memory_id", flat=True))
                (unprepared,) = Memory.objects.exclude(id__in=prepared)[:1]
                NextEmbedding.objects.create(
                    tenant_id=mind.tenant_id, agent=mind, memory=unprepared, embedding_model="tei/remote 512"
                )

    with pytest.raises(AlreadyExists, match="another run moves agent Vega to tei/remote 512"):
        Reembedding(model=SHORT, actor="cli:test", batch=10, progress=start_other_run).run(moves)
    assert current_model(mind) == LONG
    move(mind, SHORT)
    assert {len(vector) for vector in vectors_of(mind).values()} == {64}


def test_a_memory_stored_during_the_move_is_moved_too(mind: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    store_memories(mind, *turns(*STATEMENTS))

    def store_meanwhile(**arguments: Any) -> Any:
        monkeypatch.setattr(reembed, "switch_model", switch_model)
        with connections[APP].cursor():
            at_once(lambda _: store_memories(mind, a_memory("Stored at the last moment.")), writers=1)
        return switch_model(**arguments)

    monkeypatch.setattr(reembed, "switch_model", store_meanwhile)
    switch = move(mind, SHORT)
    assert (switch.memories, switch.left) == (37, 0)
    assert len(vectors_of(mind)["Stored at the last moment."]) == 64


def test_an_agent_that_never_stops_storing_is_moved_all_the_same(
    mind: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reembed, "EXTRA_PASSES", 2)
    store_memories(mind, *turns(*STATEMENTS))
    stored = iter(range(100))

    def store_meanwhile(**arguments: Any) -> Any:
        at_once(lambda _: store_memories(mind, a_memory(f"Thought {next(stored)}.")), writers=1)
        return switch_model(**arguments)

    monkeypatch.setattr(reembed, "switch_model", store_meanwhile)
    switch = move(mind, SHORT)
    assert (switch.memories, switch.left) == (39, 1)
    assert {len(vector) for vector in vectors_of(mind).values()} == {64}
    assert embed_backlog() == 1
    assert len(vectors_of(mind)["Thought 2."]) == 64


@pytest.mark.parametrize("way", ["longer", "shorter"])
def test_words_of_a_memory_left_to_the_backlog_fit_its_next_vector(
    mind: Agent, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    wide = EmbeddingModel(name="tei/wide", dimension=1024)
    text = " ".join(f"word{number}" for number in range(300))
    with registered_embedder(monkeypatch, RemoteEmbedder(wide.dimension), name=wide.name):
        if way == "shorter":
            store_memories(mind, a_memory("The tide turns."))
            move(mind, wide)
        store_memories(mind, a_memory(text), a_memory("word1 word2 are archived."))
        with tenant_transaction(mind.tenant_id):
            archived = Memory.objects.get(content__startswith="word1 word2 are")
            archive(memory_ids=[archived.id], reason="a test", actor="cli:test")
        model = wide if way == "longer" else LONG
        with tenant_transaction(mind.tenant_id):
            switch = switch_model(agent_id=mind.id, model=model, actor="cli:test", leave_missing=True)
        assert switch is not None
        embed_backlog()
    assert len(vectors_of(mind)[text]) == model.dimension
    (memory,) = (memory for memory in memories_of(mind) if memory.content == text)
    expected = fit_terms(document_vector(text, speaker=""), session="", dimension=model.dimension)
    assert set(terms_of(memory.lexical)) == set(expected)
    assert term_counts(mind) == true_counts(mind)


# --- A failing embedder ------------------------------------------------------------------------------


def test_a_model_that_cannot_be_asked_changes_nothing(mind: Agent, server: RemoteEmbedder) -> None:
    store_memories(mind, *turns(*STATEMENTS))
    server.away = True
    with pytest.raises(
        EmbeddingFailed, match="cannot be used, and nothing was changed: the embedding server"
    ):
        move(mind, REMOTE)
    for model, message in (
        (EmbeddingModel(name="wordllama", dimension=1025), "must be at most 1024, got 1025"),
        (EmbeddingModel(name="wordllama", dimension=100), "must be 64, 128, 256 for wordllama"),
        (EmbeddingModel(name="tei/nowhere", dimension=100), "needs its server's address"),
    ):
        with pytest.raises(ConfigurationInvalid, match=message):
            move(mind, model)
    assert (count_next_embeddings(mind), current_model(mind)) == (0, LONG)


def test_a_run_waits_for_a_lost_embedder_and_then_ends(
    mind: Agent, server: RemoteEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_memories(mind, *turns(*STATEMENTS))
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 2:
            server.lasts = None

    server.lasts = 20
    moves = find_moves(model=REMOTE, actor="cli:test", agent_id=mind.id)
    (switch,) = Reembedding(model=REMOTE, actor="cli:test", batch=10, pause=wait).run(moves)
    assert waited == [10, 20]
    assert switch.memories == 36
    server.asked.clear()
    move(mind, LONG)
    selection: dict[str, Any] = {"model": REMOTE, "actor": "cli:test", "agent_id": mind.id}
    with tenant_transaction(mind.tenant_id):
        EmbeddingCacheEntry.objects.all().delete()
    forget_vectors(monkeypatch)
    server.lasts = 20
    with pytest.raises(EmbeddingFailed, match="does not answer"):
        Reembedding(model=REMOTE, actor="cli:test", batch=10, pause=waited.append).run(
            find_moves(**selection)
        )
    assert waited[2:] == [10, 20, 40]
    assert count_next_embeddings(mind) == 10
    assert current_model(mind) == LONG


def test_texts_refused_by_the_new_model_are_found_by_words(mind: Agent, server: RemoteEmbedder) -> None:
    store_memories(mind, *turns(*STATEMENTS))
    server.refused = {STATEMENTS[3], STATEMENTS[20]}
    switch = move(mind, REMOTE)
    assert (switch.memories, switch.refused) == (36, 2)
    marks = {
        memory.content: memory.embedding_model for memory in memories_of(mind) if memory.embedding is None
    }
    assert marks == dict.fromkeys([STATEMENTS[3], STATEMENTS[20]], "refused: remote/fake")
    assert embed_backlog() == 0
    recalled = recall(
        tenant_id=mind.tenant_id, request=RecallRequest(agent_id=mind.id, text=STATEMENTS[20], limit=1)
    )
    assert recalled[0].content == STATEMENTS[20]
