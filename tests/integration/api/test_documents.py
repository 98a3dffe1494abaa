"""Documents over the API: added as files, read with their passages, and limited for an agent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from apps.api.api import PATH
from apps.knowledge.services.indexing_job import index_due_documents
from apps.queues import captured
from tests.support.api import Caller

HANDBOOK = b"# Leave\n\nThirty days a year."


@pytest.fixture(autouse=True)
def _captured(database: None) -> Iterator[None]:
    with captured():
        yield


def send(caller: Caller, content: bytes = HANDBOOK, **query: str) -> Any:
    """Add a file."""
    parameters = {"name": "hr/leave.md", **query}
    return caller.client.post(
        f"{PATH}/documents",
        query_params=parameters,
        data=content,
        content_type="application/octet-stream",
        headers={"Authorization": f"Bearer {caller.token}"},
    )


def test_a_file_is_added_indexed_and_read(owner: Caller, viewer: Caller) -> None:
    assert send(viewer).status_code == 403
    response = send(owner, category="policies", publish="true")
    assert response.status_code == 201, response.content
    added = response.json()
    document = added["document"]
    assert (added["is_new"], document["status"], document["indexing"]) == (True, "published", "pending")
    address = f"/documents/{document['id']}"
    missing = viewer.get(f"{address}/text")
    assert (missing.status_code, "has not been indexed yet" in missing.json()["detail"]) == (404, True)
    index_due_documents()
    shown = viewer.get(address).json()
    assert (shown["title"], shown["indexing"], shown["passages"]) == ("Leave", "indexed", 1)
    (passage,) = viewer.get(f"{address}/passages").json()["items"]
    assert passage["place"] == "Leave, characters 0 to 26"
    assert (passage["is_embedded"], passage["text"]) == (True, "Leave\n\nThirty days a year.")
    text = viewer.get(f"{address}/text", start=7, length=6).json()
    assert (text["text"], text["length"]) == ("Thirty", 26)
    assert viewer.get(f"{address}/file").content == HANDBOOK
    send(owner, b"# Leave\n\nForty days.")
    assert [version["number"] for version in viewer.get(f"{address}/versions").json()["items"]] == [2, 1]
    assert viewer.get(f"{address}/file", version=1).content == HANDBOOK
    assert viewer.get(f"{address}/file", version=3).status_code == 404


def test_a_document_is_changed_and_deleted(owner: Caller, viewer: Caller) -> None:
    address = f"/documents/{send(owner).json()['document']['id']}"
    assert owner.send("patch", address, {"category": "people"}).json()["category"] == "people"
    assert owner.post(f"{address}/publish").json()["status"] == "published"
    assert viewer.get("/documents", status="published", category="people", text="LEAVE").json()["items"] != []
    assert viewer.get("/documents", indexing="failed").json()["items"] == []
    assert viewer.get("/document-categories").json()["items"] == [
        {"category": "people", "documents": 1, "published": 1}
    ]
    assert owner.post(f"{address}/reindex").json()["indexing"] == "pending"
    assert owner.post(f"{address}/withdraw").json()["status"] == "withdrawn"
    assert viewer.delete(address).status_code == 403
    assert owner.delete(address).status_code == 200
    assert owner.get(address).status_code == 404


def test_an_agent_is_limited_to_categories(owner: Caller, vega: dict[str, Any]) -> None:
    address = f"/agents/{vega['id']}/document-categories"
    assert owner.get(address).json() == {"categories": None}
    for categories in (["people", ""], [], None):
        payload = {"categories": categories}
        changed = owner.send("put", address, payload)
        assert changed.json()["categories"] == (None if categories is None else sorted(categories))
        assert owner.get(address).json() == changed.json()
    assert owner.send("put", address, {}).status_code == 422


@pytest.mark.parametrize(
    ("query", "content", "reason"),
    [
        ({"name": "a.exe"}, b"x", "ends in"),
        ({"name": "../a.md"}, b"x", "below a folder"),
        ({}, b"", "is empty"),
    ],
)
def test_an_invalid_file_is_refused(
    owner: Caller, query: dict[str, str], content: bytes, reason: str
) -> None:
    response = send(owner, content, **query)
    assert (response.status_code, reason in response.json()["detail"]) == (422, True)


def test_another_tenant_finds_nothing(owner: Caller, outsider: Caller) -> None:
    document_id = send(owner).json()["document"]["id"]
    assert outsider.get("/documents").json()["items"] == []
    for address in ("", "/text", "/file", "/passages", "/versions"):
        assert outsider.get(f"/documents/{document_id}{address}").status_code == 404
    for verb in ("publish", "withdraw", "reindex"):
        assert outsider.post(f"/documents/{document_id}/{verb}").status_code == 404
