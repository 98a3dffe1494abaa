"""Minds and their embedding models: chosen once, reached by an embedder, compared with queries."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from django.db import connection
from structlog.testing import capture_logs

from apps.agents.models import Agent
from apps.memories.models import Mind
from apps.memories.services.embedding import embedding, queries
from apps.memories.services.embedding.embedders import report_unusable_embedder
from apps.memories.services.embedding.embedding import (
    embed_for_storage,
    embed_query,
    embed_texts,
    embedder_for,
)
from apps.memories.services.embedding.minds import installation_model, model_of, query_vector
from apps.tenants.scope import tenant_transaction
from arbor.embedding.models import EmbeddingModel
from arbor.embedding.ports import HashEmbedder
from arbor.errors import ConfigurationInvalid, EmbeddingFailed, Invalid
from tests.integration.memories.creation import open_mind
from tests.integration.memories.embedding.moves import LONG, SHORT
from tests.support.embedders import RemoteEmbedder


def test_a_new_mind_has_the_installations_model_and_keeps_it(mind: Agent, settings: Any) -> None:
    with tenant_transaction(mind.tenant_id):
        assert not Mind.objects.filter(agent_id=mind.id).exists()
        assert model_of(mind.id) == LONG
        assert open_mind(mind.id) == LONG
    settings.ARBOR_EMBEDDING_DIMENSION = 64
    with tenant_transaction(mind.tenant_id):
        assert installation_model() == SHORT
        assert open_mind(mind.id) == LONG
        assert model_of(mind.id) == LONG
        row = Mind.objects.get(agent_id=mind.id)
    assert str(row) == "wordllama, 256 dimensions"


def test_a_mind_of_another_tenant_is_not_read(mind: Agent, foreign_mind: Agent, settings: Any) -> None:
    settings.ARBOR_EMBEDDING_DIMENSION = 64
    with tenant_transaction(foreign_mind.tenant_id):
        open_mind(foreign_mind.id)
    settings.ARBOR_EMBEDDING_DIMENSION = 256
    with tenant_transaction(mind.tenant_id):
        assert model_of(foreign_mind.id) == LONG


def test_texts_are_embedded_by_the_model_that_is_asked_for(mind: Agent) -> None:
    long = embed_texts(tenant_id=mind.tenant_id, texts=["The tide turns."])
    short = embed_texts(tenant_id=mind.tenant_id, texts=["The tide turns."], model=SHORT)
    assert (long.shape, short.shape) == ((1, 256), (1, 64))
    np.testing.assert_allclose(short[0], long[0][:64] / np.linalg.norm(long[0][:64]), atol=1e-6)
    assert embedder_for(SHORT) is embedder_for(EmbeddingModel(name="wordllama", dimension=64))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            EmbeddingModel(name="openai/gone", dimension=256),
            "cannot be reached: openai/gone needs OPENAI_API_KEY",
        ),
        (
            EmbeddingModel(name="tei/elsewhere", dimension=384),
            "cannot be reached: tei/elsewhere needs its server",
        ),
        (EmbeddingModel(name="wordllama", dimension=100), "must be 64, 128, 256 for wordllama, got 100"),
        (EmbeddingModel(name="wordllama", dimension=2048), "must be at most 1024, got 2048"),
    ],
)
def test_an_unusable_model_counts_as_a_failed_embedder(
    mind: Agent, model: EmbeddingModel, message: str, settings: Any
) -> None:
    settings.ARBOR_EMBEDDING_URL = "http://for.another.model.invalid"
    with pytest.raises(EmbeddingFailed, match=message):
        embed_texts(tenant_id=mind.tenant_id, texts=["Hello."], model=model)
    assert embed_for_storage(tenant_id=mind.tenant_id, texts=["Hello."], model=model) is None


def test_an_address_is_used_for_its_own_model_alone(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    urls = {}

    def connect(name: str, _: object, *, dimension: int, url: str) -> HashEmbedder:
        urls[name] = url
        return HashEmbedder(dimension)

    monkeypatch.setattr(embedding, "connect_embedder", connect)
    settings.ARBOR_EMBEDDING_MODEL = "tei/new"
    settings.ARBOR_EMBEDDING_URL = "http://new.invalid"
    settings.ARBOR_EMBEDDING_URLS = {"tei/old": "http://old.invalid"}
    embedder_for.cache_clear()
    try:
        for name in ("tei/new", "tei/old", "tei/other"):
            embedder_for(EmbeddingModel(name=name, dimension=256))
    finally:
        embedder_for.cache_clear()
    assert urls == {"tei/new": "http://new.invalid", "tei/old": "http://old.invalid", "tei/other": ""}


@pytest.mark.parametrize(
    ("setting", "expected"), [("auto", []), ("always", ["The tide turns."]), ("never", [])]
)
def test_storing_waits_for_a_remote_embedder_only_on_request(
    mind: Agent, remote: RemoteEmbedder, settings: Any, setting: str, expected: list[str]
) -> None:
    settings.ARBOR_EMBED_AT_STORAGE = setting
    vectors = embed_for_storage(tenant_id=mind.tenant_id, texts=["The tide turns."], model=LONG)
    assert (vectors is not None) is bool(expected)
    assert remote.asked == expected


def test_storing_waits_for_an_in_process_embedder_unless_disabled(mind: Agent, settings: Any) -> None:
    arguments: dict[str, Any] = {
        "tenant_id": mind.tenant_id,
        "texts": ["The tide turns."],
        "model": LONG,
    }
    assert embed_for_storage(**arguments) is not None
    settings.ARBOR_EMBED_AT_STORAGE = "never"
    assert embed_for_storage(**arguments) is None
    settings.ARBOR_EMBED_AT_STORAGE = "sometimes"
    assert embed_for_storage(**arguments) is None


def test_a_dimension_above_the_limit_is_refused(settings: Any) -> None:
    settings.ARBOR_EMBEDDING_DIMENSION = 1025
    with pytest.raises(ConfigurationInvalid, match="must be at most 1024, got 1025"):
        installation_model()


@pytest.mark.parametrize(
    ("model", "length", "compared"),
    [
        (LONG, 256, True),
        (None, 256, True),
        (SHORT, 64, False),
        (None, 64, False),
        (EmbeddingModel(name="tei/other", dimension=256), 256, False),
    ],
)
def test_a_querys_vector_counts_only_where_it_can_be_compared(
    mind: Agent, model: EmbeddingModel | None, length: int, compared: bool
) -> None:
    parameters = {"tenant": mind.tenant_id, "agent": mind.id, **query_vector([0.5] * length, model)}

    def counts(values: dict[str, Any]) -> bool:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {queries.QUERY_VECTOR} IS NOT NULL", values)
            return bool(cursor.fetchone()[0])

    with tenant_transaction(mind.tenant_id):
        assert counts(parameters)  # no vector is stored yet, so any is comparable
        open_mind(mind.id)
        assert counts(parameters) is compared
        assert not counts({**parameters, **query_vector(None, model)})


@pytest.mark.parametrize(
    "vector",
    [
        [float("nan")] * 256,
        [float("inf"), *[0.0] * 255],
        [1e9, *[0.0] * 255],
        [-70_000.0, *[0.0] * 255],
        [],
        [0.5] * 1025,
        [[0.5]],
    ],
)
def test_an_invalid_query_vector_is_refused_early(vector: Any) -> None:
    with pytest.raises(Invalid, match="a query's vector"):
        query_vector(vector, LONG)


def test_a_slow_failing_embedder_delays_one_query_only(
    mind: Agent, remote: RemoteEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr(embedding, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(embedding, "_paused_until", {})
    answer = remote.embed

    def slow(texts: Sequence[str]) -> Any:
        clock[0] += 30
        return answer(texts)

    def ask(text: str) -> None:
        embed_query(tenant_id=mind.tenant_id, texts=[text], model=LONG)

    remote.away = True
    for text in ("At once.", "Also at once."):
        with pytest.raises(EmbeddingFailed, match="does not answer"):
            ask(text)
    monkeypatch.setattr(remote, "embed", slow)
    with pytest.raises(EmbeddingFailed, match="does not answer"):
        ask("After half a minute.")
    requests = len(remote.asked)
    with pytest.raises(EmbeddingFailed, match="did not answer, and is not called again"):
        ask("Not at all.")
    assert len(remote.asked) == requests
    remote.away = False
    clock[0] += 11
    ask("Slow, but it answers.")
    ask("And again.")
    assert len(remote.asked) == requests + 2


def test_an_embedder_without_its_key_is_reported(settings: Any) -> None:
    with capture_logs() as logs:
        report_unusable_embedder(process="api")
    assert logs == []
    settings.ARBOR_EMBEDDING_MODEL = "openai/text-embedding-3-small"
    settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL, settings.ARBOR_EMBEDDING_URL = "", "", ""
    with capture_logs() as logs:
        report_unusable_embedder(process="api")
    (entry,) = logs
    assert (entry["event"], entry["process"]) == ("embedder_unusable", "api")
    assert "needs OPENAI_API_KEY" in entry["error"]
