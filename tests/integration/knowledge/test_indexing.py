"""Indexing: passages with places and vectors, unreadable files, leases, embedders that fail or change, lost messages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from apps.knowledge.models import Document, DocumentVersion, Passage
from apps.knowledge.services import indexing, passages
from apps.knowledge.services.documents import reindex_document
from apps.knowledge.services.indexing import MAX_ATTEMPTS, index_document
from apps.knowledge.services.indexing_job import index_due_documents
from apps.memories.models import EmbedderFault, EmbeddingCacheEntry
from apps.memories.services.embedding.embedding import embed_texts
from apps.signals.services.reading import read_latest_signals
from apps.tenants.models import Tenant, TenantStatus
from apps.tenants.scope import APP, OPS, tenant_transaction
from arbor.errors import ReaderKilled
from arbor.knowledge.chunking import split_document
from arbor.knowledge.values import IndexingStatus
from arbor.memory.text.lexical import document_vector
from tests.integration.knowledge.conftest import ACTOR, HANDBOOK, Add, Index
from tests.support.document_files import docx, pdf
from tests.support.embedders import RemoteEmbedder, forget_vectors
from tests.support.rows import reload

LONG = "\n\n".join(
    f"# Part {number}\n\n" + f"Sentence about topic {number}. " * 60 for number in range(8)
).encode()


def passages_of(document: Document) -> list[Passage]:
    with tenant_transaction(document.tenant_id):
        return list(Passage.objects.filter(document=document).order_by("position"))


def test_passages_have_places_and_vectors(add: Add, index: Index) -> None:
    document = add(content=LONG).document
    indexed = index(document)
    passages = passages_of(document)
    assert indexed is not None
    assert indexed.status is IndexingStatus.INDEXED
    assert indexed.passages == len(passages) > 8
    stored = reload(document)
    assert (stored.passages, stored.embedded, stored.indexed_version) == (len(passages), len(passages), 1)
    assert (stored.title, stored.embedding_model, stored.lease, stored.error) == (
        "Part 0",
        "wordllama 256",
        None,
        "",
    )
    with tenant_transaction(document.tenant_id):
        version = DocumentVersion.objects.get(document=document)
        expected = embed_texts(tenant_id=document.tenant_id, texts=[passage.context for passage in passages])
    assert version.indexed_at is not None
    for position, passage in enumerate(passages):
        assert passage.position == position
        assert passage.text == version.text[passage.start : passage.end]
        assert passage.place.startswith(passage.headings[0])
        assert passage.searchable
        assert np.allclose(np.asarray(passage.embedding), expected[position], atol=0.01)


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("a.pdf", pdf(["First."], ["The second page of it."]), "page 1"),
        ("a.docx", docx(("Heading1", "Leave"), ("", "Thirty days.")), "Leave"),
        ("a.html", b"<h1>Leave</h1><p>Thirty days.", "Leave"),
        ("a.txt", b"Thirty days.", "characters 0 to 12"),
    ],
)
def test_each_kind_of_file_is_indexed(name: str, content: bytes, place: str, add: Add, index: Index) -> None:
    document = add(name=name, content=content).document
    index(document)
    (passage,) = passages_of(document)
    assert passage.place.startswith(place)


def test_an_unreadable_file_leaves_the_version_before_it(add: Add, index: Index, tenant: Tenant) -> None:
    document = add(name="a.pdf", content=pdf(["Good."])).document
    index(document)
    add(name="a.pdf", content=b"%PDF-1.4 broken")
    failed = index(document)
    assert failed is not None
    assert failed.status is IndexingStatus.FAILED
    assert "damaged" in failed.error
    stored = reload(document)
    assert (stored.indexing, stored.error) == (IndexingStatus.FAILED, failed.error)
    assert (stored.version, stored.indexed_version) == (2, 1)
    assert [passage.text for passage in passages_of(document)] == ["Good."]
    with tenant_transaction(tenant.id):
        assert DocumentVersion.objects.get(number=2).error == failed.error
        signal = read_latest_signals(limit=1).signals[0]
    assert (signal.name, signal.agent_id) == ("document.failed", None)
    assert signal.data["error"] in failed.error
    # The document is not indexed again before it changes.
    assert index(document) is None


def test_a_leased_document_is_skipped_until_the_lease_expires(add: Add, index: Index, tenant: Tenant) -> None:
    document = add().document
    now = datetime.now(UTC)
    with tenant_transaction(tenant.id):
        Document.objects.update(
            indexing=IndexingStatus.INDEXING, lease=uuid4(), lease_until=now + timedelta(minutes=1)
        )
    assert index(document) is None
    with tenant_transaction(tenant.id):
        Document.objects.update(lease_until=now - timedelta(minutes=1))
    assert index(document) is not None


def test_a_new_version_supersedes_the_work_on_the_old(
    add: Add, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = add().document

    def add_meanwhile(*args: Any) -> Any:
        monkeypatch.setattr(indexing, "split_document", split_document)
        add(content=HANDBOOK.replace(b"thirty", b"forty"))
        return split_document(*args)

    monkeypatch.setattr(indexing, "split_document", add_meanwhile)
    assert index(document) is None
    assert passages_of(document) == []
    assert index(document) is not None
    assert "forty" in passages_of(document)[0].text


def test_a_document_deleted_meanwhile_is_no_error(
    add: Add, index: Index, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = add().document

    def delete_meanwhile(*args: Any) -> Any:
        with tenant_transaction(tenant.id):
            Document.objects.all().delete()
        return split_document(*args)

    monkeypatch.setattr(indexing, "split_document", delete_meanwhile)
    assert index(document) is None


def test_dead_workers_count_as_failed_attempts(add: Add, index: Index, tenant: Tenant) -> None:
    document = add().document
    with tenant_transaction(tenant.id):
        Document.objects.update(
            indexing=IndexingStatus.INDEXING,
            lease=uuid4(),
            lease_until=datetime.now(UTC) - timedelta(seconds=1),
            failures=MAX_ATTEMPTS - 1,
        )
    index(document)
    stored = reload(document)
    assert (stored.indexing, stored.lease) == (IndexingStatus.FAILED, None)
    assert "5 attempts failed; in the last one the worker ended" in stored.error


def test_an_internal_error_is_tried_again_later(
    add: Add, index: Index, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = add().document

    def fail(*_: Any) -> Any:
        raise RuntimeError("a bug")

    monkeypatch.setattr(indexing, "split_document", fail)
    for attempt in range(1, MAX_ATTEMPTS + 1):
        with tenant_transaction(tenant.id):
            Document.objects.update(retry_at=None)
        index(document)
        assert reload(document).indexing == (
            IndexingStatus.FAILED if attempt == MAX_ATTEMPTS else IndexingStatus.PENDING
        )
        if attempt == 1:
            # The document waits until the next attempt is due.
            assert index(document) is None


def test_a_killed_reader_does_not_make_a_file_unreadable(
    add: Add, index: Index, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = add().document

    class Killed:
        def read(self, **_: Any) -> Any:
            raise ReaderKilled("its reader was killed from outside (SIGTERM)")

    with monkeypatch.context() as patched:
        patched.setattr(indexing, "document_reader", Killed)
        for attempt in range(1, MAX_ATTEMPTS + 1):
            with tenant_transaction(tenant.id):
                Document.objects.update(retry_at=None)
            indexed = index(document)
            assert indexed is not None
            assert "SIGTERM" in indexed.error
            assert indexed.status is (
                IndexingStatus.FAILED if attempt == MAX_ATTEMPTS else IndexingStatus.PENDING
            )
    with tenant_transaction(tenant.id):
        reindex_document(document_id=document.id, actor=ACTOR)
    index(document)
    stored = reload(document)
    assert (stored.indexing, stored.failures, stored.error) == (IndexingStatus.INDEXED, 0, "")


def test_unchanged_passages_keep_their_vectors(
    add: Add, index: Index, remote: RemoteEmbedder, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = add(content=LONG).document
    index(document)
    embedded = len(remote.asked)
    # Vectors must come from the passages, not from a cache.
    forget_vectors(monkeypatch)
    with tenant_transaction(tenant.id):
        EmbeddingCacheEntry.objects.all().delete()
    add(content=LONG.replace(b"topic 7", b"theme 7"))
    index(document)
    assert 0 < len(remote.asked) - embedded < embedded / 2
    assert "theme 7" in passages_of(document)[-1].text


def test_words_are_weighted_before_the_transaction(
    add: Add, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_transactions = []

    def record_transaction(text: str) -> Any:
        open_transactions.append(connections[APP].in_atomic_block)
        return document_vector(text)

    monkeypatch.setattr(passages, "document_vector", record_transaction)
    document = add(content=LONG).document
    index(document)
    assert open_transactions == [False] * len(passages_of(document))


def index_without_vectors(add: Add, index: Index, remote: RemoteEmbedder) -> Document:
    """Index a long document while the embedder is away."""
    document = add(content=LONG).document
    remote.away = True
    index(document)
    remote.away = False
    return document


def test_the_job_locks_a_document_before_its_passages(add: Add, index: Index, remote: RemoteEmbedder) -> None:
    document = index_without_vectors(add, index, remote)
    with CaptureQueriesContext(connections[APP]) as statements:
        index_due_documents()
    assert reload(document).embedded == len(passages_of(document))
    written = [query["sql"] for query in statements]
    lock = next(n for n, sql in enumerate(written) if "knowledge_document" in sql and "FOR UPDATE" in sql)
    write = next(n for n, sql in enumerate(written) if sql.startswith('UPDATE "knowledge_passage"'))
    assert lock < write


def test_the_job_stores_the_vectors_of_a_step_by_one_statement(
    add: Add, index: Index, remote: RemoteEmbedder
) -> None:
    document = index_without_vectors(add, index, remote)
    with CaptureQueriesContext(connections[APP]) as statements:
        index_due_documents()
    stored = passages_of(document)
    assert len(stored) > 8
    expected = remote.embed([passage.context for passage in stored])
    np.testing.assert_allclose([np.asarray(passage.embedding) for passage in stored], expected, atol=1e-3)
    assert {passage.embedding_model for passage in stored} == {reload(document).embedding_model}
    assert sum(query["sql"].startswith('UPDATE "knowledge_passage"') for query in statements) == 1


def test_passages_are_found_by_words_while_the_embedder_fails(
    add: Add, index: Index, remote: RemoteEmbedder, tenant: Tenant
) -> None:
    document = add(content=LONG).document
    remote.away = True
    indexed = index(document)
    assert indexed is not None
    assert indexed.status is IndexingStatus.INDEXED
    assert "found by words alone until embedded" in indexed.error
    assert all(passage.embedding is None and passage.searchable for passage in passages_of(document))
    assert reload(document).embedded == 0
    index_due_documents()
    assert EmbedderFault.objects.using(OPS).exists()
    remote.away = False
    EmbedderFault.objects.all().delete()
    assert index_due_documents().done == len(passages_of(document))
    assert all(passage.embedding is not None for passage in passages_of(document))
    stored = reload(document)
    assert (stored.embedded, stored.error) == (stored.passages, "")


def test_a_text_that_the_embedder_refuses_is_marked(add: Add, index: Index, remote: RemoteEmbedder) -> None:
    document = index_without_vectors(add, index, remote)
    bad = passages_of(document)[2]
    remote.refused = {bad.context}
    index_due_documents()
    passages = passages_of(document)
    assert [passage.id for passage in passages if passage.embedding is None] == [bad.id]
    assert passages[2].embedding_model.startswith("refused: ")
    stored = reload(document)
    assert stored.embedded + stored.refused == stored.passages
    assert (stored.refused, passages[2].is_refused, passages[2].is_embedded) == (1, True, False)
    assert stored.error.startswith("1 passage is found by words alone, refused by the embedder: ")
    asked = len(remote.asked)
    index_due_documents()
    assert len(remote.asked) == asked
    # Another text is tried again.
    add(content=LONG.replace(b"topic", b"theme"))
    index(document)
    stored = reload(document)
    assert (stored.embedded, stored.refused, stored.error) == (stored.passages, 0, "")


def test_vectors_of_an_old_version_do_not_count_for_the_new(
    add: Add, index: Index, remote: RemoteEmbedder
) -> None:
    document = add(name="a.pdf", content=pdf(["Good."])).document
    remote.away = True
    index(document)
    remote.away = False
    add(name="a.pdf", content=b"%PDF-1.4 broken")
    index(document)
    failure = reload(document).error
    assert index_due_documents().done == 1
    assert all(passage.is_embedded for passage in passages_of(document))
    stored = reload(document)
    assert (stored.passages, stored.embedded, stored.error) == (0, 0, failure)


def test_an_attempt_that_takes_long_continues_later(
    add: Add, index: Index, remote: RemoteEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = add(content=LONG).document
    monkeypatch.setattr(indexing, "EMBEDDED_AT_ONCE", 3)
    monkeypatch.setattr(indexing, "EMBEDDING_DURATION", timedelta(0))
    first = index(document)
    assert first is not None
    assert first.status is IndexingStatus.PENDING
    asked = len(remote.asked)
    assert asked == 3
    monkeypatch.setattr(indexing, "EMBEDDING_DURATION", timedelta(seconds=30))
    assert index(document) is not None
    # The vectors of the first attempt come from the cache.
    assert len(remote.asked) == len(passages_of(document)) == reload(document).embedded


def test_the_job_finds_lost_documents_and_other_embedders(add: Add, tenant: Tenant, settings: Any) -> None:
    document = add().document
    assert index_due_documents().done == 1
    assert reload(document).indexing == IndexingStatus.INDEXED
    assert index_due_documents().done == 0
    settings.ARBOR_EMBEDDING_DIMENSION = 128
    assert index_due_documents().done == 1
    (passage,) = passages_of(document)
    assert passage.embedding_model == reload(document).embedding_model == "wordllama 128"
    assert len(np.asarray(passage.embedding)) == 128


def test_documents_of_a_suspended_tenant_wait(add: Add, tenant: Tenant) -> None:
    add()
    Tenant.objects.using("owner").update(status=TenantStatus.SUSPENDED)
    assert index_due_documents().steps == 0


def test_a_document_of_another_tenant_is_not_found(add: Add, other_tenant: Tenant) -> None:
    document = add().document
    assert index_document(document_id=document.id, tenant_id=other_tenant.id) is None
    assert reload(document).indexing == IndexingStatus.PENDING
