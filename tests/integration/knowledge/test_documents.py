"""Documents: added, changed, published, filed, withdrawn and deleted, with the audit, signals and counts of terms."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from apps.audit.models import AuditAction, AuditEvent
from apps.knowledge.models import Document, DocumentVersion, Passage, PassageTerm
from apps.knowledge.services.documents import (
    NewDocument,
    add_document,
    delete_document,
    document_by_name,
    file_document,
    publish_document,
    reindex_document,
    withdraw_document,
)
from apps.knowledge.services.folders import AddOptions, FileChange, add_file, files_in
from apps.knowledge.services.reading import read_text
from apps.memories.services.store.term_counts import terms_of
from apps.queues import Task, TaskMessage
from apps.signals.services.reading import read_signals
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.errors import DocumentUnreadable, Invalid, NotFound
from arbor.knowledge.values import DocumentStatus, IndexingStatus
from arbor.signals import Cursor
from tests.integration.knowledge.conftest import ACTOR, HANDBOOK, Add, Index
from tests.support.rows import reload


def counted_terms() -> Counter[int]:
    """Return the stored counts of terms."""
    return Counter(dict(PassageTerm.objects.values_list("term", "passages")))


def terms_of_passages() -> Counter[int]:
    """Return the counts of terms as the searchable passages have them."""
    terms: Counter[int] = Counter()
    for lexical in Passage.objects.filter(searchable=True).values_list("lexical", flat=True):
        terms.update([0, *terms_of(lexical)])
    return terms


def signals_of(tenant: Tenant) -> list[str]:
    with tenant_transaction(tenant.id):
        return [record.name for record in read_signals(after=Cursor()).signals]


def acts_of(tenant: Tenant) -> list[str]:
    with tenant_transaction(tenant.id):
        return list(AuditEvent.objects.order_by("id").values_list("action", flat=True))


def test_a_new_file_is_a_draft_and_enqueued(tenant: Tenant, messages: list[TaskMessage]) -> None:
    with tenant_transaction(tenant.id):
        added = add_document(new=NewDocument(name="files/a.md", content=HANDBOOK), actor=ACTOR)
        version = DocumentVersion.objects.get(document=added.document)
    assert (added.is_new, added.is_changed) == (True, False)
    assert added.document.status == DocumentStatus.DRAFT
    assert added.document.indexing == IndexingStatus.PENDING
    assert (version.number, bytes(version.content), version.size) == (1, HANDBOOK, len(HANDBOOK))
    assert [(message.task, message.arguments) for message in messages] == [
        (Task.INDEX_DOCUMENT, {"document_id": str(added.document.id)})
    ]


def test_the_same_file_again_changes_nothing(add: Add, index: Index, tenant: Tenant) -> None:
    document = add().document
    index(document)
    acts = acts_of(tenant)
    again = add()
    assert (again.is_new, again.is_changed, again.document.id) == (False, False, document.id)
    assert reload(document).indexing == IndexingStatus.INDEXED
    assert acts_of(tenant) == acts


def test_another_file_of_that_name_is_a_version(add: Add, index: Index, tenant: Tenant) -> None:
    document = add().document
    index(document)
    changed = add(content=HANDBOOK.replace(b"thirty", b"forty"))
    assert changed.is_changed
    with tenant_transaction(tenant.id):
        # The version before is found until the new one is indexed.
        assert "thirty" in Passage.objects.get().text
    index(document)
    with tenant_transaction(tenant.id):
        passage = Passage.objects.get()
        assert "forty" in passage.text
        assert passage.version.number == reload(document).indexed_version == 2
        assert [version.number for version in DocumentVersion.objects.all()] == [2, 1]
        assert counted_terms() == terms_of_passages()
    assert signals_of(tenant) == [
        "document.published",
        "document.indexed",
        "document.changed",
        "document.indexed",
    ]


def test_only_published_documents_can_be_found(add: Add, index: Index, tenant: Tenant) -> None:
    document = add(publish=False).document
    index(document)
    with tenant_transaction(tenant.id):
        assert not Passage.objects.get().searchable
        assert not counted_terms()
        publish_document(document_id=document.id, actor=ACTOR)
        publish_document(document_id=document.id, actor=ACTOR)
        assert Passage.objects.get().searchable
        assert counted_terms() == terms_of_passages() != Counter()
        withdraw_document(document_id=document.id, actor=ACTOR)
        assert not Passage.objects.get().searchable
        assert not counted_terms()
        assert publish_document(document_id=document.id, actor=ACTOR).status == DocumentStatus.PUBLISHED
    assert acts_of(tenant) == [
        AuditAction.DOCUMENT_ADDED,
        AuditAction.DOCUMENT_PUBLISHED,
        AuditAction.DOCUMENT_WITHDRAWN,
        AuditAction.DOCUMENT_PUBLISHED,
    ]
    assert signals_of(tenant) == [
        "document.indexed",
        "document.published",
        "document.withdrawn",
        "document.published",
    ]


def test_a_category_is_written_to_the_passages(add: Add, index: Index, tenant: Tenant) -> None:
    document = add(category="people").document
    index(document)
    with tenant_transaction(tenant.id):
        file_document(document_id=document.id, category=" staff ", actor=ACTOR)
        file_document(document_id=document.id, category="staff", actor=ACTOR)
        assert Passage.objects.get().category == "staff"
    assert reload(document).category == "staff"
    assert acts_of(tenant).count(AuditAction.DOCUMENT_CHANGED) == 1
    # A new version without a category keeps the category of the document.
    assert add(content=b"new text").document.category == "staff"


def test_a_deletion_removes_versions_passages_and_counts(add: Add, index: Index, tenant: Tenant) -> None:
    document, other = add().document, add(name="other.txt", content=b"An other text.").document
    index(document)
    index(other)
    with tenant_transaction(tenant.id):
        delete_document(document_id=document.id, actor=ACTOR)
        assert DocumentVersion.objects.get().document_id == other.id
        assert Passage.objects.get().document_id == other.id
        assert counted_terms() == terms_of_passages()
        with pytest.raises(NotFound, match=str(document.id)):
            publish_document(document_id=document.id, actor=ACTOR)
    assert signals_of(tenant)[-1] == "document.withdrawn"
    assert acts_of(tenant)[-1] == AuditAction.DOCUMENT_DELETED


def test_reindexing_replaces_the_passages(add: Add, index: Index, tenant: Tenant) -> None:
    document = add().document
    index(document)
    with tenant_transaction(tenant.id):
        before = Passage.objects.get().id
        reindex_document(document_id=document.id, actor=ACTOR)
    assert index(document) is not None
    with tenant_transaction(tenant.id):
        assert Passage.objects.get().id != before
        assert counted_terms() == terms_of_passages()


def test_a_file_whose_name_is_no_unicode_is_refused_legibly(tenant: Tenant, tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.md")).write_bytes(HANDBOOK)
    (file,) = files_in([tmp_path])
    result = add_file(file, options=AddOptions(tenant_id=tenant.id, actor=ACTOR))
    assert (result.change, result.name) == (FileChange.REFUSED, "caf?.md")
    assert result.error.isprintable()
    assert result.error.encode()


@pytest.mark.parametrize("start", [-1, 2**31, 2**63])
def test_a_part_begins_at_a_place_that_texts_have(add: Add, index: Index, tenant: Tenant, start: int) -> None:
    document = add().document
    index(document)
    with tenant_transaction(tenant.id):
        assert read_text(document=reload(document), start=2**31 - 1).text == ""
        with pytest.raises(Invalid, match="a part begins at 0 to"):
            read_text(document=reload(document), start=start)


def test_another_tenants_document_does_not_exist(add: Add, other_tenant: Tenant) -> None:
    document = add().document
    with tenant_transaction(other_tenant.id):
        for text in (document.name, str(document.id)):
            with pytest.raises(NotFound):
                document_by_name(text)
        # The name is free in the other tenant.
        added = add_document(new=NewDocument(name=document.name, content=HANDBOOK), actor=ACTOR)
        assert added.is_new
        assert Document.objects.count() == 1


@pytest.mark.parametrize(
    ("name", "content", "error", "reason"),
    [
        ("a.exe", b"x", Invalid, "ends in"),
        ("a.md", b"", Invalid, "is empty"),
        ("../a.md", b"x", Invalid, "below a folder"),
        ("a.md", b"x" * (2**20 + 1), DocumentUnreadable, r"at most 1 MB \(ARBOR_DOCUMENT_MB\), got 1.0 MB"),
    ],
)
def test_invalid_files_are_refused(
    name: str, content: bytes, error: type[Exception], reason: str, in_tenant: None, settings: Any
) -> None:
    settings.ARBOR_DOCUMENT_MB = 1
    with pytest.raises(error, match=reason):
        add_document(new=NewDocument(name=name, content=content), actor=ACTOR)
    assert not Document.objects.exists()
