"""`arbor search` and `arbor document search`."""

from __future__ import annotations

from apps.tenants.services import tenant_by_slug
from tests.factories.knowledge import published_passage
from tests.integration.cli.conftest import Arbor
from tests.support.embedders import RemoteEmbedder

PASSAGE = "Flights need the approval of a manager."


def test_sources_and_documents_are_searched(arbor: Arbor, vega: str) -> None:
    assert "knows nothing that fits" in arbor("search", vega, "flights").out
    assert "No published document" in arbor("document", "search", "flights").out
    slug = arbor("search", vega, "flights", "--json").json["tenant"]
    published_passage(tenant_by_slug(slug).id, PASSAGE)
    found = arbor("search", vega, "Who approves flights?", "--json").json
    assert [(row["source"], row["content"]) for row in found["results"]] == [("kb", PASSAGE)]
    assert found["forbidden"] == ["audit_log"]
    assert PASSAGE in " ".join(arbor("search", vega, "flights").out.split())
    (passage,) = arbor("document", "search", "flights", "--json").json["results"]
    assert (passage["title"], passage["text"]) == ("Travel", PASSAGE)
    assert arbor("search", vega, " ").code != 0
    filtered = arbor(
        "document", "search", "flights", "--category", "people", "--limit", "1", "--tenant", slug
    )
    assert "No published document" in filtered.out
    with_term = arbor("search", vega, "flights", "--term", "quay", "--limit", "1", "--tenant", slug, "--json")
    assert with_term.json["term"] == "quay"


def test_a_search_by_words_alone_says_so(arbor: Arbor, vega: str, remote: RemoteEmbedder) -> None:
    slug = arbor("search", vega, "flights", "--json").json["tenant"]
    published_passage(tenant_by_slug(slug).id, PASSAGE)
    remote.away = True
    for words in ("flights to the quay", "nothing at all"):
        shown = " ".join(arbor("search", vega, words).out.split())
        assert "Incomplete: documents were searched by words alone: the embedder did not answer" in shown
        assert "Words alone were compared" in arbor("document", "search", words).out
    assert arbor("document", "search", "flights to the quay", "--json").json["by_meaning"] is False
