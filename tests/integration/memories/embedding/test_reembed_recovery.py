"""Moves to another embedding model that are interrupted, doubled, or meet a failing embedder."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connections

from apps.agents.models import Agent
from apps.memories.models import (
    EmbeddingCacheEntry,
    Memory,
    NextEmbedding,
)
from apps.memories.services.embedding import embedding, reembed
from apps.memories.services.embedding.backlog import embed_backlog
from apps.memories.services.embedding.embedding import embed_texts
from apps.memories.services.embedding.reembed import Reembedding, find_moves, switch_model
from apps.memories.services.recall.recaller import recall
from apps.tenants.scope import APP, tenant_transaction
from arbor.embedding.models import EmbeddingModel
from arbor.errors import AlreadyExists, ConfigurationInvalid, EmbeddingFailed
from arbor.memory.recall.recall_request import RecallRequest
from tests.integration.memories.conftest import (
    REMOTE,
    RemoteEmbedder,
    a_memory,
    at_once,
    memories_of,
    turns,
)
from tests.integration.memories.embedding.moves import LONG, SAID, SHORT, mind_of, move, next_rows, vectors_of
from tests.support.memories import store_memories

# --- Interrupted, doubled and concurrent moves -------------------------------------------------------


def test_a_run_that_was_broken_off_goes_on_where_it_stopped(mind: Agent, server: RemoteEmbedder) -> None:
    store_memories(mind, *turns(*SAID))

    def interrupt(done: int, total: int) -> None:
        if done >= 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        move(mind, REMOTE, batch=10, progress=interrupt)
    assert next_rows(mind) == 20
    assert mind_of(mind) == LONG
    assert {len(vector) for vector in vectors_of(mind).values()} == {256}
    server.asked.clear()
    progress: list[tuple[int, int]] = []
    assert move(mind, REMOTE, batch=10, progress=lambda *at: progress.append(at)).memories == 36
    assert progress == [(20, 36), (30, 36), (36, 36)]
    assert len(set(server.asked) & set(SAID)) == 16


def test_a_text_embedded_before_comes_from_the_cache(mind: Agent, server: RemoteEmbedder) -> None:
    store_memories(mind, *turns(*SAID))
    embed_texts(tenant_id=mind.tenant_id, texts=SAID[:30], model=REMOTE)
    server.asked.clear()
    move(mind, REMOTE)
    assert set(server.asked) & set(SAID) == set(SAID[30:])


def test_an_abandoned_move_leaves_nothing_behind(mind: Agent, server: RemoteEmbedder) -> None:
    store_memories(mind, *turns(*SAID))

    def interrupt(done: int, total: int) -> None:
        if done >= 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        move(mind, REMOTE, batch=10, progress=interrupt)
    assert move(mind, LONG).memories == 0
    assert (next_rows(mind), mind_of(mind)) == (0, LONG)
    with pytest.raises(KeyboardInterrupt):
        move(mind, REMOTE, batch=10, progress=interrupt)
    move(mind, SHORT)
    assert (next_rows(mind), mind_of(mind)) == (0, SHORT)


def test_runs_at_once_do_no_harm(mind: Agent) -> None:
    store_memories(mind, *turns(*SAID))
    moves = find_moves(model=SHORT, actor="cli:test")

    def work(_: int) -> int:
        return Reembedding(model=SHORT, actor="cli:test", batch=5).run(moves)[0].memories

    assert sorted(at_once(work, writers=4)) == [0, 0, 0, 36]
    assert {len(vector) for vector in vectors_of(mind).values()} == {64}
    assert next_rows(mind) == 0


def test_a_run_to_another_model_does_not_mix_with_one_under_way(mind: Agent, server: RemoteEmbedder) -> None:
    store_memories(mind, *turns(*SAID))
    moves = find_moves(model=SHORT, actor="cli:test")

    def other_run(done: int, total: int) -> None:
        if done == 10:
            with tenant_transaction(mind.tenant_id):
                remaining = list(NextEmbedding.objects.values_list("memory_id", flat=True))
                rest = Memory.objects.exclude(id__in=remaining)[:1]
                NextEmbedding.objects.create(
                    tenant_id=mind.tenant_id, agent=mind, memory=rest[0], embedding_model="tei/remote 512"
                )

    with pytest.raises(AlreadyExists, match="another run moves agent Vega to tei/remote 512"):
        Reembedding(model=SHORT, actor="cli:test", batch=10, progress=other_run).run(moves)
    assert mind_of(mind) == LONG
    move(mind, SHORT)
    assert {len(vector) for vector in vectors_of(mind).values()} == {64}


def test_a_memory_stored_during_the_move_is_moved_too(mind: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    store_memories(mind, *turns(*SAID))

    def stored_meanwhile(**arguments: Any) -> Any:
        monkeypatch.setattr(reembed, "switch_model", switch_model)
        with connections[APP].cursor():
            at_once(lambda _: store_memories(mind, a_memory("Stored at the last moment.")), writers=1)
        return switch_model(**arguments)

    monkeypatch.setattr(reembed, "switch_model", stored_meanwhile)
    takeover = move(mind, SHORT)
    assert (takeover.memories, takeover.left) == (37, 0)
    assert len(vectors_of(mind)["Stored at the last moment."]) == 64


def test_an_agent_that_never_stops_storing_is_moved_all_the_same(
    mind: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reembed, "EXTRA_PASSES", 2)
    store_memories(mind, *turns(*SAID))
    stored = iter(range(100))

    def stored_meanwhile(**arguments: Any) -> Any:
        at_once(lambda _: store_memories(mind, a_memory(f"Thought {next(stored)}.")), writers=1)
        return switch_model(**arguments)

    monkeypatch.setattr(reembed, "switch_model", stored_meanwhile)
    takeover = move(mind, SHORT)
    assert (takeover.memories, takeover.left) == (39, 1)
    assert {len(vector) for vector in vectors_of(mind).values()} == {64}
    assert embed_backlog() == 1
    assert len(vectors_of(mind)["Thought 2."]) == 64


# --- A failing embedder ------------------------------------------------------------------------------


def test_a_model_that_cannot_be_asked_changes_nothing(mind: Agent, server: RemoteEmbedder) -> None:
    store_memories(mind, *turns(*SAID))
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
    assert (next_rows(mind), mind_of(mind)) == (0, LONG)


def test_a_run_waits_for_a_lost_embedder_and_then_ends(mind: Agent, server: RemoteEmbedder) -> None:
    store_memories(mind, *turns(*SAID))
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 2:
            server.lasts = None

    server.lasts = 20
    moves = find_moves(model=REMOTE, actor="cli:test", agent_id=mind.id)
    (takeover,) = Reembedding(model=REMOTE, actor="cli:test", batch=10, pause=wait).run(moves)
    assert waited == [10, 20]
    assert takeover.memories == 36
    server.asked.clear()
    move(mind, LONG)
    forget: dict[str, Any] = {"model": REMOTE, "actor": "cli:test", "agent_id": mind.id}
    with tenant_transaction(mind.tenant_id):
        EmbeddingCacheEntry.objects.all().delete()
    embedding._vector_cache = embedding._VectorCache()
    server.lasts = 20
    with pytest.raises(EmbeddingFailed, match="does not answer"):
        Reembedding(model=REMOTE, actor="cli:test", batch=10, pause=waited.append).run(find_moves(**forget))
    assert waited[2:] == [10, 20, 40]
    assert next_rows(mind) == 10
    assert mind_of(mind) == LONG


def test_texts_refused_by_the_new_model_are_found_by_words(mind: Agent, server: RemoteEmbedder) -> None:
    store_memories(mind, *turns(*SAID))
    server.refused = {SAID[3], SAID[20]}
    takeover = move(mind, REMOTE)
    assert (takeover.memories, takeover.refused) == (36, 2)
    marks = {
        memory.content: memory.embedding_model for memory in memories_of(mind) if memory.embedding is None
    }
    assert marks == dict.fromkeys([SAID[3], SAID[20]], "refused: remote/fake")
    assert embed_backlog() == 0
    recalled = recall(
        tenant_id=mind.tenant_id, request=RecallRequest(agent_id=mind.id, text=SAID[20], limit=1)
    )
    assert recalled[0].content == SAID[20]
