"""Moving an agent to another embedding model: online, all at once, and safe to break off."""

from __future__ import annotations

import threading
from collections.abc import Iterator
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
    EmbeddingCacheEntry,
    Episode,
    Memory,
    Mind,
    NextEmbedding,
    Upkeep,
)
from apps.memories.services import embedding, reembed
from apps.memories.services.embedding import embed_texts, embedder_for
from apps.memories.services.embedding_backlog import embed_backlog
from apps.memories.services.literals import fitting
from apps.memories.services.minds import model_of, open_mind
from apps.memories.services.recall import recall, recall_in_scope
from apps.memories.services.reembed import Reembedding, find_moves
from apps.memories.services.remember import count_terms, remember, store, terms_of
from apps.memories.services.takeover import TakenOver, take_over
from apps.tenants.scope import APP, tenant_transaction
from arbor.adapters.embedders import connect_embedder
from arbor.embedding.models import EmbeddingModel
from arbor.errors import AlreadyExists, ConfigurationInvalid, EmbeddingFailed
from arbor.memory.lexical import document_vector
from arbor.memory.values import MemoryStatus, NewMemory
from tests.integration.memories.conftest import (
    NOON,
    RemoteEmbedder,
    a_memory,
    at_once,
    forget_vectors,
    memories_of,
    term_counts,
    true_counts,
    turns,
)

LONG = EmbeddingModel(name="wordllama", dimension=256)
SHORT = EmbeddingModel(name="wordllama", dimension=64)
REMOTE = EmbeddingModel(name="tei/remote", dimension=512)
SAID = [
    f"The {what} of ship {number} is {state}."
    for number in range(12)
    for what, state in (("anchor", "rusty"), ("cook", "asleep"), ("harbour fee", "unpaid"))
]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteEmbedder]:
    """Put a remote embedder of 512 dimensions beside the one in this process, and return it."""
    made = RemoteEmbedder(REMOTE.dimension)
    connect = connect_embedder

    def connected(name: str, *parts: Any, **named: Any) -> Any:
        return made if name == REMOTE.name else connect(name, *parts, **named)

    monkeypatch.setattr(embedding, "connect_embedder", connected)
    embedding.embedder_for.cache_clear()
    forget_vectors(monkeypatch)
    yield made
    embedding.embedder_for.cache_clear()


def keep(agent: Agent, *memories: NewMemory) -> None:
    remember(tenant_id=agent.tenant_id, agent_id=agent.id, memories=memories)


def move(agent: Agent, model: EmbeddingModel, **parts: Any) -> TakenOver:
    moves = find_moves(model=model, actor="cli:test", tenant_id=agent.tenant_id, agent_id=agent.id)
    (taken,) = Reembedding(model=model, actor="cli:test", pause=lambda _: None, **parts).run(moves)
    return taken


def vectors_of(agent: Agent) -> dict[str, list[float]]:
    return {each.content: list(each.embedding) for each in memories_of(agent) if each.embedding is not None}


def next_rows(agent: Agent) -> int:
    with tenant_transaction(agent.tenant_id):
        return NextEmbedding.objects.filter(agent_id=agent.id).count()


def mind_of(agent: Agent) -> EmbeddingModel:
    with tenant_transaction(agent.tenant_id):
        return model_of(agent.id)


def recalled_as_by_brute_force(agent: Agent, model: EmbeddingModel, query: str) -> bool:
    """Say whether the similarities of what is recalled are those of the model's own vectors."""
    found = recall(tenant_id=agent.tenant_id, agent_id=agent.id, text=query, limit=5)
    made = embedder_for(model)
    asked = made.embed([query])[0]
    with tenant_transaction(agent.tenant_id):
        got = recall_in_scope(agent_id=agent.id, text=query, vector=asked.tolist(), model=model, limit=5)
    stored = vectors_of(agent)
    own = made.embed(list(stored))
    np.testing.assert_allclose(np.array(list(stored.values())), own, atol=1e-3)
    best = max(zip(own @ asked, stored, strict=True))[1]
    return [each.id for each in found] == [each.id for each in got] and best in {
        each.content for each in found
    }


# --- The move ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [SHORT, REMOTE], ids=["shorter", "longer"])
def test_all_memories_get_the_vectors_of_the_new_model(
    mind: Agent, other_mind: Agent, server: RemoteEmbedder, model: EmbeddingModel
) -> None:
    keep(mind, *turns(*SAID))
    keep(other_mind, a_memory("The tide turns."))
    assert recalled_as_by_brute_force(mind, LONG, "who is sleeping?")
    taken = move(mind, model, batch=10)
    assert (taken.memories, taken.refused, taken.left) == (len(SAID), 0, 0)
    assert mind_of(mind) == model
    assert {len(vector) for vector in vectors_of(mind).values()} == {model.dimension}
    assert {each.embedding_model for each in memories_of(mind)} == {embedder_for(model).model}
    assert recalled_as_by_brute_force(mind, model, "who is sleeping?")
    assert next_rows(mind) == 0
    assert mind_of(other_mind) == LONG
    assert {len(vector) for vector in vectors_of(other_mind).values()} == {256}
    with tenant_transaction(mind.tenant_id):
        (event,) = AuditEvent.objects.filter(action=AuditAction.OPERATOR_ACT, actor="cli:test")
    assert event.agent_id == mind.id
    assert event.message == f"moved 36 memories from the embedding model {LONG} to {model}"


def test_there_and_back_is_as_before(mind: Agent) -> None:
    keep(mind, *turns(*SAID))
    before = vectors_of(mind)
    move(mind, SHORT)
    move(mind, LONG)
    assert vectors_of(mind) == before


def test_what_is_remembered_afterwards_is_embedded_by_the_new_model(mind: Agent) -> None:
    keep(mind, a_memory("Before."))
    move(mind, SHORT)
    keep(mind, a_memory("After."))
    assert {text: len(vector) for text, vector in vectors_of(mind).items()} == {"Before.": 64, "After.": 64}


def test_archived_memories_are_moved_too_and_those_that_wait_for_their_first_vector(mind: Agent) -> None:
    keep(mind, *turns("One.", "Two."))
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
    assert mind_of(mind) == SHORT


def test_what_was_computed_from_the_old_vectors_is_computed_again(mind: Agent) -> None:
    keep(mind, *turns(*SAID[:3]))
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
def test_as_many_words_are_kept_as_the_index_holds_beside_the_new_vector(
    mind: Agent, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    wide = EmbeddingModel(name="tei/wide", dimension=1024)
    made = RemoteEmbedder(1024)
    connect = connect_embedder
    monkeypatch.setattr(
        embedding,
        "connect_embedder",
        lambda name, *parts, **named: made if name == wide.name else connect(name, *parts, **named),
    )
    text = " ".join(f"word{number}" for number in range(300))
    keep(mind, a_memory(text), a_memory("The tide turns."), a_memory("word1 word2 are archived."))
    with tenant_transaction(mind.tenant_id):
        Memory.objects.filter(content__startswith="word1 word2 are").update(status=MemoryStatus.ARCHIVED)
        # Word statistics leave archived memories out, as archiving does.
        count_terms(mind.id, [terms_of(Memory.objects.get(status="archived").lexical)], sign=-1)
    models = [wide] if way == "longer" else [wide, LONG]
    for model in models:
        move(mind, model)
    (memory,) = (each for each in memories_of(mind) if each.content == text)
    expected = fitting(document_vector(text, speaker=""), session="", dimension=models[-1].dimension)
    assert len(memory.lexical.indices()) == len(expected)
    assert (len(expected) < 100) is (way == "longer")
    assert term_counts(mind) == true_counts(mind)
    embedding.embedder_for.cache_clear()


# --- Recall meanwhile --------------------------------------------------------------------------------


def test_recall_answers_all_the_while(mind: Agent) -> None:
    keep(mind, *turns(*SAID))
    stop = threading.Event()

    def ask() -> list[int]:
        answers = []
        try:
            while not stop.is_set():
                # None of its words occurs: only its meaning finds anything.
                found = recall(tenant_id=mind.tenant_id, agent_id=mind.id, text="Who naps, dozes, slumbers?")
                answers.append(len(found))
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
        answers = [number for each in asking for number in each.result()]
    assert len(answers) > 5
    assert min(answers) > 0


def test_a_query_embedded_before_the_move_is_asked_again_after_it(
    mind: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(mind, *turns(*SAID))

    def moved_meanwhile(**asked: Any) -> Any:
        vectors = embed_texts(**asked)
        monkeypatch.setattr("apps.memories.services.recall.embed_query", embed_texts)
        move(mind, SHORT)
        return vectors

    monkeypatch.setattr("apps.memories.services.recall.embed_query", moved_meanwhile)
    found = recall(tenant_id=mind.tenant_id, agent_id=mind.id, text="Who naps, dozes, slumbers?")
    assert "asleep" in found[0].content
    assert mind_of(mind) == SHORT


def test_a_vector_of_the_old_model_is_compared_with_nothing(mind: Agent) -> None:
    keep(mind, *turns(*SAID))
    old = embed_texts(tenant_id=mind.tenant_id, texts=["rusty anchor"])[0].tolist()
    move(mind, SHORT)
    for model in (LONG, None):
        with tenant_transaction(mind.tenant_id):
            found = recall_in_scope(agent_id=mind.id, text="rusty anchor", vector=old, model=model, limit=3)
        assert [each.terms.meaning for each in found] == [0, 0, 0]


def test_vectors_of_the_old_model_are_not_stored_after_the_move(mind: Agent) -> None:
    keep(mind, a_memory("Before."))
    old = embed_texts(tenant_id=mind.tenant_id, texts=["During."])
    move(mind, SHORT)
    with tenant_transaction(mind.tenant_id):
        store(agent_id=mind.id, memories=[a_memory("During.")], vectors=old, model=LONG)
    assert set(vectors_of(mind)) == {"Before."}
    assert embed_backlog() == 1
    assert len(vectors_of(mind)["During."]) == 64


# --- Broken off, doubled, disturbed ------------------------------------------------------------------


def test_a_run_that_was_broken_off_goes_on_where_it_stopped(mind: Agent, server: RemoteEmbedder) -> None:
    keep(mind, *turns(*SAID))

    def interrupt(done: int, total: int) -> None:
        if done >= 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        move(mind, REMOTE, batch=10, progress=interrupt)
    assert next_rows(mind) == 20
    assert mind_of(mind) == LONG
    assert {len(vector) for vector in vectors_of(mind).values()} == {256}
    server.asked.clear()
    seen: list[tuple[int, int]] = []
    assert move(mind, REMOTE, batch=10, progress=lambda *at: seen.append(at)).memories == 36
    assert seen == [(20, 36), (30, 36), (36, 36)]
    assert len(set(server.asked) & set(SAID)) == 16


def test_a_text_embedded_before_comes_from_the_cache(mind: Agent, server: RemoteEmbedder) -> None:
    keep(mind, *turns(*SAID))
    embed_texts(tenant_id=mind.tenant_id, texts=SAID[:30], model=REMOTE)
    server.asked.clear()
    move(mind, REMOTE)
    assert set(server.asked) & set(SAID) == set(SAID[30:])


def test_an_abandoned_move_leaves_nothing_when_the_agent_is_moved_elsewhere_or_stays(
    mind: Agent, server: RemoteEmbedder
) -> None:
    keep(mind, *turns(*SAID))

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
    keep(mind, *turns(*SAID))
    moves = find_moves(model=SHORT, actor="cli:test")

    def work(_: int) -> int:
        return Reembedding(model=SHORT, actor="cli:test", batch=5).run(moves)[0].memories

    assert sorted(at_once(work, writers=4)) == [0, 0, 0, 36]
    assert {len(vector) for vector in vectors_of(mind).values()} == {64}
    assert next_rows(mind) == 0


def test_a_run_to_another_model_does_not_mix_with_one_under_way(mind: Agent, server: RemoteEmbedder) -> None:
    keep(mind, *turns(*SAID))
    moves = find_moves(model=SHORT, actor="cli:test")

    def other_run(done: int, total: int) -> None:
        if done == 10:
            with tenant_transaction(mind.tenant_id):
                kept = list(NextEmbedding.objects.values_list("memory_id", flat=True))
                rest = Memory.objects.exclude(id__in=kept)[:1]
                NextEmbedding.objects.create(
                    tenant_id=mind.tenant_id, agent=mind, memory=rest[0], embedding_model="tei/remote 512"
                )

    with pytest.raises(AlreadyExists, match="another run moves agent Vega to tei/remote 512"):
        Reembedding(model=SHORT, actor="cli:test", batch=10, progress=other_run).run(moves)
    assert mind_of(mind) == LONG
    move(mind, SHORT)
    assert {len(vector) for vector in vectors_of(mind).values()} == {64}


def test_what_is_stored_meanwhile_is_moved_with_the_rest(
    mind: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(mind, *turns(*SAID))

    def stored_meanwhile(**asked: Any) -> Any:
        monkeypatch.setattr(reembed, "take_over", take_over)
        with connections[APP].cursor():
            at_once(lambda _: keep(mind, a_memory("Stored at the last moment.")), writers=1)
        return take_over(**asked)

    monkeypatch.setattr(reembed, "take_over", stored_meanwhile)
    taken = move(mind, SHORT)
    assert (taken.memories, taken.left) == (37, 0)
    assert len(vectors_of(mind)["Stored at the last moment."]) == 64


def test_an_agent_that_never_stops_storing_is_moved_all_the_same(
    mind: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reembed, "CATCHES", 2)
    keep(mind, *turns(*SAID))
    stored = iter(range(100))

    def stored_meanwhile(**asked: Any) -> Any:
        at_once(lambda _: keep(mind, a_memory(f"Thought {next(stored)}.")), writers=1)
        return take_over(**asked)

    monkeypatch.setattr(reembed, "take_over", stored_meanwhile)
    taken = move(mind, SHORT)
    assert (taken.memories, taken.left) == (39, 1)
    assert {len(vector) for vector in vectors_of(mind).values()} == {64}
    assert embed_backlog() == 1
    assert len(vectors_of(mind)["Thought 2."]) == 64


# --- An embedder that fails --------------------------------------------------------------------------


def test_a_model_that_cannot_be_asked_changes_nothing(mind: Agent, server: RemoteEmbedder) -> None:
    keep(mind, *turns(*SAID))
    server.away = True
    with pytest.raises(
        EmbeddingFailed, match="cannot be used, and nothing was changed: the embedding server"
    ):
        move(mind, REMOTE)
    for model, said in (
        (EmbeddingModel(name="wordllama", dimension=1025), "must be at most 1024, got 1025"),
        (EmbeddingModel(name="wordllama", dimension=100), "must be 64, 128, 256 for wordllama"),
        (EmbeddingModel(name="tei/nowhere", dimension=100), "needs its server's address"),
    ):
        with pytest.raises(ConfigurationInvalid, match=said):
            move(mind, model)
    assert (next_rows(mind), mind_of(mind)) == (0, LONG)


def test_an_embedder_that_goes_away_is_waited_for_and_then_the_run_ends(
    mind: Agent, server: RemoteEmbedder
) -> None:
    keep(mind, *turns(*SAID))
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 2:
            server.lasts = None

    server.lasts = 20
    moves = find_moves(model=REMOTE, actor="cli:test", agent_id=mind.id)
    (taken,) = Reembedding(model=REMOTE, actor="cli:test", batch=10, pause=wait).run(moves)
    assert waited == [10, 20]
    assert taken.memories == 36
    server.asked.clear()
    move(mind, LONG)
    forget: dict[str, Any] = {"model": REMOTE, "actor": "cli:test", "agent_id": mind.id}
    with tenant_transaction(mind.tenant_id):
        EmbeddingCacheEntry.objects.all().delete()
    embedding._kept = embedding._Kept()
    server.lasts = 20
    with pytest.raises(EmbeddingFailed, match="does not answer"):
        Reembedding(model=REMOTE, actor="cli:test", batch=10, pause=waited.append).run(find_moves(**forget))
    assert waited[2:] == [10, 20, 40]
    assert next_rows(mind) == 10
    assert mind_of(mind) == LONG


def test_texts_that_the_new_model_cannot_read_are_found_by_their_words(
    mind: Agent, server: RemoteEmbedder
) -> None:
    keep(mind, *turns(*SAID))
    server.refused = {SAID[3], SAID[20]}
    taken = move(mind, REMOTE)
    assert (taken.memories, taken.refused) == (36, 2)
    marks = {each.content: each.embedding_model for each in memories_of(mind) if each.embedding is None}
    assert marks == dict.fromkeys([SAID[3], SAID[20]], "refused: remote/fake")
    assert embed_backlog() == 0
    found = recall(tenant_id=mind.tenant_id, agent_id=mind.id, text=SAID[20], limit=1)
    assert found[0].content == SAID[20]


# --- Who is moved ------------------------------------------------------------------------------------


def test_agents_are_found_by_tenant_alone_or_all(mind: Agent, other_mind: Agent, foreign_mind: Agent) -> None:
    for agent in (mind, other_mind, foreign_mind):
        keep(agent, *turns("One.", "Two."))

    def found(**where: Any) -> set[Any]:
        return {each.agent_id for each in find_moves(model=SHORT, actor="cli:test", **where)}

    assert found() == {mind.id, other_mind.id, foreign_mind.id}
    assert found(tenant_id=mind.tenant_id) == {mind.id, other_mind.id}
    assert found(tenant_id=mind.tenant_id, agent_id=mind.id) == {mind.id}
    assert found(tenant_id=mind.tenant_id, agent_id=foreign_mind.id) == set()
    move(mind, SHORT)
    assert found() == {other_mind.id, foreign_mind.id}
    (one,) = find_moves(model=LONG, actor="cli:test")
    assert (one.name, one.model, one.memories, one.made) == ("Vega", SHORT, 2, 0)


def test_the_number_of_statements_of_the_takeover_does_not_grow(mind: Agent, statements: list[str]) -> None:
    counts = []
    for number in (2, 30):
        keep(mind, *turns(*SAID[:number]))
        target = SHORT if mind_of(mind) == LONG else LONG
        moves = find_moves(model=target, actor="cli:test", agent_id=mind.id)
        Reembedding(model=target, actor="cli:test")._make_missing(moves[0])
        statements.clear()
        with tenant_transaction(mind.tenant_id):
            assert take_over(agent_id=mind.id, model=target, actor="cli:test") is not None
        counts.append(len(statements))
    assert counts[0] == counts[1] <= 14
    with tenant_transaction(mind.tenant_id):
        assert Mind.objects.count() == 1
