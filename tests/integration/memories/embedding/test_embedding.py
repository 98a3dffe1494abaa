"""Embedding of texts: one request for each text, a cache by tenant, no request inside a transaction."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.db import OperationalError
from django.db.models import F
from django.db.models.functions import Now

from apps.agents.models import Agent
from apps.audit.models import AuditAction, AuditEvent
from apps.memories.models import EmbeddingCacheEntry
from apps.memories.services.embedding import embedding
from apps.memories.services.embedding.embedders import check_embedder, other_models
from apps.memories.services.embedding.embedding import embed_texts, trim_embedding_cache
from apps.tenants.models import Tenant
from apps.tenants.scope import current_tenant, tenant_transaction
from apps.tenants.statements import change
from arbor.embedding.models import EmbeddingModel
from arbor.embedding.ports import HashEmbedder
from arbor.errors import EmbeddingFailed
from arbor.memory.content import content_hash
from tests.integration.memories.conftest import REMOTE, at_once
from tests.integration.memories.creation import create_mind
from tests.integration.memories.embedding.moves import LONG, SHORT
from tests.support.embedders import RemoteEmbedder, forget_vectors

TEXTS = ["The harbour is full.", "The harbour is empty.", "The harbour is full."]


def age_cache(tenant: Tenant, **age: int) -> None:
    with tenant_transaction(tenant.id):
        EmbeddingCacheEntry.objects.update(used_at=F("used_at") - timedelta(**age))


def count_cached(tenant: Tenant) -> int:
    with tenant_transaction(tenant.id):
        return EmbeddingCacheEntry.objects.count()


def test_each_text_gets_its_vector_in_order(tenant: Tenant) -> None:
    vectors = embed_texts(tenant_id=tenant.id, texts=TEXTS)
    assert vectors.shape == (3, 256)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(vectors[0], vectors[2])
    assert not np.allclose(vectors[0], vectors[1])


def test_an_empty_list_gives_no_vectors(tenant: Tenant, statements: list[str]) -> None:
    assert embed_texts(tenant_id=tenant.id, texts=[]).shape == (0, 256)
    assert statements == []


def test_a_remote_embedder_is_refused_inside_a_transaction(tenant: Tenant, remote: RemoteEmbedder) -> None:
    with tenant_transaction(tenant.id), pytest.raises(RuntimeError, match="before a transaction opens"):
        embed_texts(tenant_id=tenant.id, texts=TEXTS)


def test_an_in_process_embedder_caches_nothing_in_the_database(tenant: Tenant, statements: list[str]) -> None:
    outside = embed_texts(tenant_id=tenant.id, texts=TEXTS)
    assert statements == []
    with tenant_transaction(tenant.id):
        statements.clear()
        inside = embed_texts(tenant_id=tenant.id, texts=TEXTS)
        assert statements == []
    np.testing.assert_array_equal(inside, outside)


def test_a_remote_embedder_is_asked_once_for_a_text(
    tenant: Tenant, remote: RemoteEmbedder, statements: list[str]
) -> None:
    first = embed_texts(tenant_id=tenant.id, texts=TEXTS)
    assert sorted(remote.asked) == ["The harbour is empty.", "The harbour is full."]
    statements.clear()
    again = embed_texts(tenant_id=tenant.id, texts=TEXTS)
    assert len(remote.asked) == 2
    assert statements == []
    np.testing.assert_array_equal(first, again)


def test_the_cache_of_a_tenant_is_shared_between_processes(
    tenant: Tenant, remote: RemoteEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = embed_texts(tenant_id=tenant.id, texts=TEXTS)
    forget_vectors(monkeypatch)
    again = embed_texts(tenant_id=tenant.id, texts=[*TEXTS, "The harbour is new."])
    assert remote.asked[2:] == ["The harbour is new."]
    np.testing.assert_allclose(again[:3], first, atol=1e-3)


def test_a_vector_of_the_tenants_cache_is_read_once_by_a_process(
    tenant: Tenant, remote: RemoteEmbedder, monkeypatch: pytest.MonkeyPatch, statements: list[str]
) -> None:
    embed_texts(tenant_id=tenant.id, texts=["One."])
    forget_vectors(monkeypatch)
    read = embed_texts(tenant_id=tenant.id, texts=["One."])
    assert statements
    statements.clear()
    np.testing.assert_array_equal(embed_texts(tenant_id=tenant.id, texts=["One."]), read)
    assert statements == []
    assert remote.asked == ["One."]


@pytest.mark.parametrize("process", ["the same", "another"])
def test_tenants_do_not_share_cached_vectors(
    process: str,
    tenant: Tenant,
    other_tenant: Tenant,
    remote: RemoteEmbedder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    embed_texts(tenant_id=tenant.id, texts=["A secret."])
    if process == "another":
        forget_vectors(monkeypatch)
    embed_texts(tenant_id=other_tenant.id, texts=["A secret."])
    assert remote.asked == ["A secret.", "A secret."]
    assert (count_cached(tenant), count_cached(other_tenant)) == (1, 1)


def test_vectors_are_cached_by_model(
    tenant: Tenant, remote: RemoteEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    embed_texts(tenant_id=tenant.id, texts=["The tide turns."])
    forget_vectors(monkeypatch)
    remote.model = "remote/newer"
    embed_texts(tenant_id=tenant.id, texts=["The tide turns."])
    assert len(remote.asked) == 2
    assert count_cached(tenant) == 2


def test_workers_with_the_same_texts_do_not_deadlock(
    tenant: Tenant, remote: RemoteEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"Buoy {number} is green." for number in range(60)]

    def work(worker: int) -> None:
        own_texts = texts if worker % 2 else texts[::-1]
        for start in range(0, len(own_texts), 20):
            forget_vectors(monkeypatch)
            embed_texts(tenant_id=tenant.id, texts=own_texts[start : start + 20])

    at_once(work, writers=6)
    assert count_cached(tenant) == len(texts)
    age_cache(tenant, days=2)
    at_once(work, writers=6)
    assert count_cached(tenant) == len(texts)


def test_a_truncated_text_is_audited_once(
    tenant: Tenant, remote: RemoteEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        embed_texts(tenant_id=tenant.id, texts=["short", "long " * 5_000])
        forget_vectors(monkeypatch)
    with tenant_transaction(tenant.id):
        (event,) = AuditEvent.objects.filter(action=AuditAction.TRUNCATED)
    assert event.detail == {"bytes_by_content_hash": {content_hash("long " * 5_000).hex(): 25_000}}


def test_vectors_unused_for_a_month_are_trimmed(
    tenant: Tenant, other_tenant: Tenant, remote: RemoteEmbedder
) -> None:
    embed_texts(tenant_id=tenant.id, texts=["Long ago."])
    age_cache(tenant, days=31)
    embed_texts(tenant_id=tenant.id, texts=["Today."])
    embed_texts(tenant_id=other_tenant.id, texts=["Elsewhere."])
    assert trim_embedding_cache().done == 1
    assert (count_cached(tenant), count_cached(other_tenant)) == (1, 1)
    assert trim_embedding_cache().done == 0


def test_an_error_in_one_tenant_does_not_stop_trimming(
    tenant: Tenant, other_tenant: Tenant, remote: RemoteEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for owner in (tenant, other_tenant):
        embed_texts(tenant_id=owner.id, texts=["Long ago."])
        age_cache(owner, days=31)

    def fail_for_tenant(statement: str, **values: Any) -> int:
        if current_tenant() == tenant.id:
            raise OperationalError("on purpose")
        return change(statement, **values)

    monkeypatch.setattr(embedding, "change", fail_for_tenant)
    trimmed = trim_embedding_cache()
    assert (trimmed.done, trimmed.failed) == (1, 1)
    assert (count_cached(tenant), count_cached(other_tenant)) == (1, 0)


def test_trimming_stops_at_its_time_limit(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "CACHE_TRIM_DURATION", timedelta(0))
    assert trim_embedding_cache().steps == 0


def test_recently_used_vectors_are_not_trimmed(
    tenant: Tenant, remote: RemoteEmbedder, monkeypatch: pytest.MonkeyPatch, statements: list[str]
) -> None:
    embed_texts(tenant_id=tenant.id, texts=["Every day."])
    age_cache(tenant, days=31)
    forget_vectors(monkeypatch)
    embed_texts(tenant_id=tenant.id, texts=["Every day."])
    assert trim_embedding_cache().done == 0
    with tenant_transaction(tenant.id):
        assert EmbeddingCacheEntry.objects.filter(used_at__gt=Now() - timedelta(minutes=1)).exists()
    statements.clear()
    forget_vectors(monkeypatch)
    embed_texts(tenant_id=tenant.id, texts=["Every day."])
    assert not [statement for statement in statements if statement.startswith(("UPDATE", "INSERT"))]


def test_a_failed_request_is_reported_and_caches_nothing(tenant: Tenant, remote: RemoteEmbedder) -> None:
    remote.away = True
    with pytest.raises(EmbeddingFailed, match="does not answer"):
        embed_texts(tenant_id=tenant.id, texts=TEXTS)
    assert count_cached(tenant) == 0
    remote.away = False
    np.testing.assert_allclose(
        embed_texts(tenant_id=tenant.id, texts=TEXTS), HashEmbedder().embed(TEXTS), atol=1e-6
    )


# --- Checks of embedders -----------------------------------------------------------------------------


def test_a_working_embedder_passes_the_check() -> None:
    check = check_embedder()
    assert (check.model, check.made_by, check.error) == (LONG, "wordllama/l2_supercat_256", "")
    assert 0 < check.latency_s < 5
    assert check_embedder(SHORT).made_by == "wordllama/l2_supercat_64"


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (EmbeddingModel(name="tei/nowhere", dimension=64), "needs its server's address"),
        (EmbeddingModel(name="wordllama", dimension=100), "must be 64, 128, 256"),
    ],
)
def test_an_invalid_model_fails_the_check_with_the_reason(model: EmbeddingModel, message: str) -> None:
    assert message in check_embedder(model).error


def test_wrong_and_varying_vectors_fail_the_check(
    remote: RemoteEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "vectors of 256 numbers" in check_embedder(REMOTE).error
    remote.away = True
    assert check_embedder().error == "the embedding server does not answer"
    remote.away = False
    rows = iter(np.eye(2, 256, dtype=np.float32))
    monkeypatch.setattr(remote, "embed", lambda _: next(rows)[None])
    assert "two different vectors" in check_embedder().error


def test_other_models_of_agents_are_counted(mind: Agent, other_mind: Agent, foreign_mind: Agent) -> None:
    for agent, model in ((mind, SHORT), (other_mind, LONG), (foreign_mind, SHORT)):
        create_mind(agent, model)
    (other,) = other_models()
    assert (other.model, other.agents) == (SHORT, 2)
