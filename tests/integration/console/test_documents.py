"""The pages of documents, which are added by a form, followed while they are indexed, published and deleted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from apps.knowledge.models import Document
from apps.knowledge.services.categories import categories_of
from apps.knowledge.services.indexing_job import index_due_documents
from apps.queues import captured
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from tests.factories.agents import AgentStateFactory
from tests.support.console import page_of

ADD = "admin:knowledge_document_add"
LIST = "admin:knowledge_document_changelist"


@pytest.fixture(autouse=True)
def _no_messages(database: None) -> Iterator[None]:
    """Capture the messages to the fleet."""
    with captured():
        yield


def file(name: str, content: bytes = b"# Leave\n\nThirty days.") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, content)


def document_of(tenant: Tenant) -> Document:
    with tenant_transaction(tenant.id):
        return Document.objects.get()


def test_files_are_added_and_followed(operator: Client, tenant: Tenant) -> None:
    assert b"arbor document add --help" in operator.get(reverse(LIST)).content
    form = operator.get(reverse(ADD)).content.decode()
    assert 'enctype="multipart/form-data"' in form
    posted = {"chosen": [file("leave.md")], "category": "policies", "publish": "on"}
    assert operator.post(reverse(ADD), posted).headers["Location"] == reverse(LIST)
    document = document_of(tenant)
    assert (document.category, document.status) == ("policies", "published")
    address = page_of(document)
    live = operator.get(address, headers={"X-Live": "1"})
    assert ("X-Ended" in live.headers, b"pending" in live.content) == (False, True)
    index_due_documents()
    live = operator.get(address, headers={"X-Live": "1"})
    assert ("X-Ended" in live.headers, b"1 of 1 embedded" in live.content) == (True, True)
    page = operator.get(address).content.decode()
    assert "Thirty days." in page
    assert "characters 0 to" in page
    download = operator.get(reverse("admin:document-download", args=[document.id, 1]))
    assert download.headers["Content-Disposition"].startswith("attachment")
    assert download.content == b"# Leave\n\nThirty days."


def test_refused_files_are_named_and_the_others_added(operator: Client, tenant: Tenant) -> None:
    response = operator.post(reverse(ADD), {"chosen": [file("leave.md"), file("program.exe")]})
    page = response.content.decode()
    assert "program.exe: a document&#x27;s name ends in" in page
    assert reverse("admin:knowledge_document_change", args=[document_of(tenant).id]) in page
    answer = operator.post(reverse(ADD), {"chosen": [file("a.exe")]}, headers={"Accept": "application/json"})
    assert (answer.status_code, answer.json()["documents"]) == (422, [])
    assert "a.exe" in answer.json()["errors"][0]
    answer = operator.post(reverse(ADD), {"chosen": [file("b.md")]}, headers={"Accept": "application/json"})
    assert (answer.status_code, answer.json()["documents"][0]["name"]) == (201, "b.md")


def test_a_failed_document_is_read_again(operator: Client, tenant: Tenant) -> None:
    operator.post(reverse(ADD), {"chosen": [file("leave.pdf", b"%PDF-1.4 broken")]})
    index_due_documents()
    document = document_of(tenant)
    page = operator.get(page_of(document)).content.decode()
    assert (document.indexing, "Read again" in page) == ("failed", True)
    operator.post(reverse("admin:document-act", args=[document.id]), {"act": "reindex"})
    assert document_of(tenant).indexing == "pending"
    assert "Read again" not in operator.get(page_of(document)).content.decode()


def test_a_file_above_the_limit_is_refused(operator: Client, settings: Any) -> None:
    settings.ARBOR_DOCUMENT_MB = 0
    page = operator.post(reverse(ADD), {"chosen": [file("leave.md")]}).content.decode()
    assert "ARBOR_DOCUMENT_MB" in page


def test_operators_act_and_viewers_read(operator: Client, viewer: Client, tenant: Tenant) -> None:
    operator.post(reverse(ADD), {"chosen": [file("leave.md")]})
    document = document_of(tenant)
    act = reverse("admin:document-act", args=[document.id])
    assert viewer.get(page_of(document)).status_code == 200
    assert viewer.get(reverse(ADD)).status_code == 403
    assert viewer.post(act, {"act": "publish"}).status_code == 403
    for verb, status in (("publish", "published"), ("withdraw", "withdrawn"), ("reindex", "withdrawn")):
        assert operator.post(act, {"act": verb}).headers["Location"] == page_of(document)
        assert document_of(tenant).status == status
    operator.post(act, {"act": "file", "category": "people"})
    assert document_of(tenant).category == "people"
    assert (
        "at most 60"
        in operator.post(act, {"act": "file", "category": "x" * 61}, follow=True).content.decode()
    )
    assert operator.post(act, {"act": "burn"}).status_code == 404
    found = operator.get(reverse(LIST), {"q": "LEAVE"}).content.decode()
    assert str(document.id) in found
    assert str(document.id) in operator.get(reverse(LIST), {"q": str(document.id)}).content.decode()
    assert str(document.id) not in operator.get(reverse(LIST), {"q": "nothing"}).content.decode()
    assert operator.post(act, {"act": "delete"}).headers["Location"] == reverse(LIST)
    with tenant_transaction(tenant.id):
        assert not Document.objects.exists()


def test_an_operator_limits_an_agent_to_categories(operator: Client, viewer: Client, tenant: Tenant) -> None:
    with tenant_transaction(tenant.id):
        agent = AgentStateFactory.create().agent
    address = reverse("admin:agent-documents", args=[agent.id])
    assert "No category to choose from" in operator.get(address).content.decode()
    assert address in operator.get(page_of(agent)).content.decode()
    operator.post(reverse(ADD), {"chosen": [file("leave.md")], "category": "policies", "publish": "on"})
    operator.post(reverse(ADD), {"chosen": [file("notes.md")]})

    def choose(**posted: object) -> tuple[str, list[str] | None]:
        page = operator.post(address, posted, follow=True).content.decode()
        with tenant_transaction(tenant.id):
            return page, categories_of(agent.id)

    page, found = choose(scope="chosen", category=["policies", ""])
    assert found == ["", "policies"]
    assert f"{agent.name} finds documents of no category, policies." in page
    assert 'value="policies" checked' in page
    assert "1 published" in page
    page, found = choose(scope="chosen")
    assert (found, "finds no document" in page) == ([], True)
    page, found = choose(scope="chosen", category=["later"])
    assert (found, 'value="later" checked' in page) == (["later"], True)
    page, found = choose(scope="some")
    assert (found, "the scope must be all or chosen" in page) == (["later"], True)
    assert viewer.post(address, {"scope": "all"}).status_code == 403
    shown = viewer.get(address).content.decode()
    assert ('value="later" checked disabled' in shown, "Save" in shown) == (True, False)
    page, found = choose(scope="all")
    assert (found, "finds all published documents" in page) == (None, True)
