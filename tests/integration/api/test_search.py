"""Searches over the API: cited, and of the token's tenant only."""

from __future__ import annotations

from typing import Any

from apps.tenants.models import Tenant
from tests.factories.knowledge import published_passage
from tests.support.api import Caller
from tests.support.embedders import RemoteEmbedder

PASSAGE = "Flights need the approval of a manager."


def test_all_sources_and_documents_are_searched(
    tenant: Tenant, owner: Caller, viewer: Caller, outsider: Caller, vega: dict[str, Any]
) -> None:
    passage = published_passage(tenant.id, PASSAGE)
    address = f"/agents/{vega['id']}/search"
    found = viewer.post(address, {"query": "flights"}).json()
    assert (found["term"], found["missing"], found["forbidden"]) == ("flights", [], ["audit_log"])
    (result,) = found["results"]
    assert (result["source"], result["id"], result["content"]) == ("kb", str(passage.id), PASSAGE)
    assert result["citation"].startswith("Travel, version 1")
    expected = 0.5 * result["similarity"] + 0.2 * result["recency"] + 0.2 * 0.5 + 0.1 * 0.5
    assert abs(result["score"] - expected) < 1e-6
    documents = viewer.post("/documents/search", {"query": "flights", "agent_id": vega["id"]}).json()
    assert [row["id"] for row in documents["results"]] == [str(passage.id)]
    assert outsider.post(address, {"query": "flights"}).status_code == 404
    assert outsider.post("/documents/search", {"query": "flights"}).json()["results"] == []
    foreign = outsider.post("/documents/search", {"query": "flights", "agent_id": vega["id"]})
    assert foreign.status_code == 404
    assert viewer.post(address, {"query": " "}).status_code == 422


def test_a_search_by_words_alone_says_so(
    tenant: Tenant, viewer: Caller, vega: dict[str, Any], remote: RemoteEmbedder
) -> None:
    passage = published_passage(tenant.id, PASSAGE)
    remote.away = True
    found = viewer.post(f"/agents/{vega['id']}/search", {"query": "flights"}).json()
    assert [result["id"] for result in found["results"]] == [str(passage.id)]
    assert [note.partition(":")[0] for note in found["missing"]] == [
        "memories were not searched",
        "documents were searched by words alone",
    ]
    documents = viewer.post("/documents/search", {"query": "flights"}).json()
    assert (documents["by_meaning"], documents["results"][0]["similarity"]) == (False, None)
