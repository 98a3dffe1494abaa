"""Embedders that fail, and texts that they refuse: the backlog waits, and no other is delayed."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from apps.agents.models import Agent
from apps.memories.models import EmbedderFault, EmbeddingCacheEntry, Episode
from apps.memories.services.embedding import backlog as embedding_backlog
from apps.memories.services.embedding.backlog import embed_backlog
from apps.memories.services.embedding.backlog import embedding_backlog as count_backlog
from apps.memories.services.embedding.embedders import embedder_faults
from apps.memories.services.embedding.embedding import embed_texts
from apps.memories.services.embedding.reembed import switch_model
from apps.memories.services.recall.recaller import recall
from apps.tenants.scope import tenant_transaction
from arbor.errors import EmbeddingFailed
from arbor.memory.recall.recall_request import RecallRequest
from tests.integration.memories.conftest import (
    NOON,
    REMOTE,
    memories_of,
    store_without_vectors,
    turns,
    unembedded_contents,
)
from tests.integration.memories.creation import create_mind
from tests.integration.memories.embedding.moves import LONG, SHORT
from tests.support.embedders import RemoteEmbedder, registered_embedder


def test_an_unreadable_text_is_marked_and_delays_no_other(mind: Agent, remote: RemoteEmbedder) -> None:
    texts = [f"Turn {number}." for number in range(9)]
    remote.refused = {texts[0], texts[6]}
    store_without_vectors(mind, *turns(*texts))
    assert embed_backlog() == 7
    assert unembedded_contents(mind) == [texts[0], texts[6]]
    marks = {memory.embedding_model for memory in memories_of(mind) if memory.embedding is None}
    assert marks == {"refused: remote/fake"}
    requests = len(remote.asked)
    assert embed_backlog() == 0
    assert len(remote.asked) == requests
    assert (
        recall(tenant_id=mind.tenant_id, request=RecallRequest(agent_id=mind.id, text="turn 6"))[0].content
        == texts[6]
    )


def test_a_text_refused_during_a_move_waits_for_the_new_embedder(
    mind: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_without_vectors(mind, *turns("One."))

    def refuse_after_move(*args: Any, **options: Any) -> Any:
        with tenant_transaction(mind.tenant_id):
            switch_model(agent_id=mind.id, model=SHORT, actor="cli:test", leave_missing=True)
        raise EmbeddingFailed("the text cannot be embedded")

    monkeypatch.setattr(embedding_backlog, "embed_texts", refuse_after_move)
    assert embed_backlog() == 0
    assert [memory.embedding_model for memory in memories_of(mind)] == [""]


def test_when_the_embedder_is_away_the_backlog_waits(mind: Agent, remote: RemoteEmbedder) -> None:
    store_without_vectors(mind, *turns("One.", "Two."))
    remote.away = True
    assert embed_backlog() == 0
    assert {memory.embedding_model for memory in memories_of(mind)} == {""}
    remote.away = False
    EmbedderFault.objects.update(retry_at=NOON)
    assert embed_backlog() == 2


def test_texts_that_are_gone_do_not_prove_that_the_embedder_is_back(
    mind: Agent, remote: RemoteEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_without_vectors(mind, *turns("One."))
    remote.away = True
    assert embed_backlog() == 0
    EmbedderFault.objects.update(retry_at=NOON)
    # The memory is deleted after it was found: no request is made.
    monkeypatch.setattr(embedding_backlog, "_read", lambda *_: [])
    assert embed_backlog() == 0
    assert len(embedder_faults()) == 1


def test_a_summary_that_cannot_be_read_is_asked_about_once(mind: Agent, remote: RemoteEmbedder) -> None:
    remote.refused = {"\N{PILE OF POO}"}
    with tenant_transaction(mind.tenant_id):
        Episode.objects.create(
            tenant_id=mind.tenant_id,
            agent=mind,
            started_at=NOON,
            last_at=NOON,
            summary="\N{PILE OF POO}",
            summarized_at=NOON,
        )
    assert embed_backlog() == 0
    requests = len(remote.asked)
    assert embed_backlog() == 0
    assert len(remote.asked) == requests
    assert count_backlog().refused == 1


def test_a_failing_embedder_rests_longer_and_delays_no_other(
    mind: Agent, other_mind: Agent, server: RemoteEmbedder
) -> None:
    create_mind(mind, REMOTE)
    create_mind(other_mind, LONG)
    store_without_vectors(mind, *turns("One.", "Two."))
    store_without_vectors(other_mind, *turns("Three."))
    server.away = True
    assert embed_backlog() == 1
    (fault,) = embedder_faults()
    assert (fault.embedding_model, fault.failures) == ("tei/remote 512", 1)
    assert fault.error == "EmbeddingFailed", (
        "the class alone, because the text of a server may contain somebody's data"
    )
    requests = len(server.asked)
    assert embed_backlog() == 0
    assert len(server.asked) == requests, "it was asked before its rest was over"
    rests = []
    for _ in range(8):
        EmbedderFault.objects.update(retry_at=NOON)
        assert embed_backlog() == 0
        (fault,) = embedder_faults()
        rests.append(round((fault.retry_at - datetime.now(UTC)).total_seconds(), -1))
    assert rests == [20, 40, 80, 160, 320, 600, 600, 600]
    server.away = False
    EmbedderFault.objects.update(retry_at=NOON)
    assert embed_backlog() == 2
    assert embedder_faults() == []


def test_a_tenant_with_a_failing_embedder_delays_no_other(
    mind: Agent, foreign_mind: Agent, server: RemoteEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_backlog, "CHUNK_OF_TENANT", 5)
    monkeypatch.setattr(embedding_backlog, "CHUNK", 5)
    create_mind(mind, REMOTE)
    create_mind(foreign_mind, LONG)
    server.away = True
    store_without_vectors(mind, *turns(*(f"Fish {number}." for number in range(30))))
    store_without_vectors(foreign_mind, *turns(*(f"Bird {number}." for number in range(30))))
    assert embed_backlog() == 30
    assert unembedded_contents(foreign_mind) == []


class InvalidEmbedder(RemoteEmbedder):
    """An embedder that returns invalid vectors."""

    def __init__(self, rows: npt.NDArray[np.float32]) -> None:
        super().__init__(REMOTE.dimension)
        self._rows = rows

    def embed(self, texts: Any) -> npt.NDArray[np.float32]:
        self.asked += texts
        return self._rows


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.ones((2, 256), np.float32), "vectors of 256 numbers"),
        (np.ones((5, REMOTE.dimension), np.float32), "must give 2 vectors"),
        (np.full((2, REMOTE.dimension), np.nan, np.float32), "zero or not finite"),
        (np.zeros((2, REMOTE.dimension), np.float32), "zero or not finite"),
        (np.ones(REMOTE.dimension, np.float32), "must give 2 vectors"),
    ],
    ids=["length", "number", "NaN", "zero", "shape"],
)
def test_vectors_that_cannot_be_right_are_stored_nowhere(
    mind: Agent,
    monkeypatch: pytest.MonkeyPatch,
    rows: npt.NDArray[np.float32],
    message: str,
) -> None:
    with registered_embedder(monkeypatch, InvalidEmbedder(rows), name=REMOTE.name):
        create_mind(mind, REMOTE)
        store_without_vectors(mind, *turns("One.", "Two."))
        assert embed_backlog() == 0
        request = RecallRequest(agent_id=mind.id, text="Two.")
        assert recall(tenant_id=mind.tenant_id, request=request)[0].content == "Two."
        (fault,) = embedder_faults()
        assert fault.error == "EmbeddingFailed"
        with pytest.raises(EmbeddingFailed, match=re.escape(message)):
            embed_texts(tenant_id=mind.tenant_id, texts=["One.", "Two."], model=REMOTE)
    assert unembedded_contents(mind) == ["One.", "Two."]
    with tenant_transaction(mind.tenant_id):
        assert not EmbeddingCacheEntry.objects.exists()
