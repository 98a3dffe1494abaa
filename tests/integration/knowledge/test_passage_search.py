"""Searches of passages: ranking, citations, categories of the agent, exact and by HNSW."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from django.db import connections

from apps.agents.models import Agent
from apps.knowledge.models import DocumentVersion, Passage, PassageTerm
from apps.knowledge.services.categories import set_categories
from apps.knowledge.services.documents import withdraw_document
from apps.knowledge.services.passage_queries import ITERATIVE_SCAN
from apps.knowledge.services.passage_search import (
    ALWAYS_EXACT,
    PassageQuery,
    passage_candidates,
    passage_statement,
    passage_values,
    passages_from,
    query_vector_of,
    search_passages,
)
from apps.knowledge.services.search import search_my_memories
from apps.tenants.models import Tenant
from apps.tenants.scope import APP, tenant_transaction
from arbor.errors import Invalid
from arbor.memory.text.lexical import query_terms, query_vector
from tests.integration.knowledge.conftest import ACTOR, Add, Index
from tests.support.document_files import pdf
from tests.support.embedders import RemoteEmbedder

FILES = {
    "leave.md": (b"# Leave\n\nEverybody has thirty days of leave a year.", "people"),
    "travel.md": (b"# Travel\n\n## Flights\n\nFlights need the approval of a manager.", "policies"),
    "orders.md": (b"# Orders\n\nOrder ZX-4711 was delivered in May.", None),
}


@pytest.fixture
def library(add: Add, index: Index) -> dict[str, Any]:
    """Add and index the files; return their documents by name."""
    documents = {}
    for name, (content, category) in FILES.items():
        documents[name] = add(name, content, category=category).document
        index(documents[name])
    return documents


def names_found(tenant: Tenant, text: str, **parts: Any) -> list[str]:
    found = search_passages(tenant_id=tenant.id, query=PassageQuery(text=text, **parts))
    return [passage.name for passage in found.passages]


def test_the_passage_about_a_text_comes_first_and_is_cited(tenant: Tenant, library: Any) -> None:
    found = search_passages(tenant_id=tenant.id, query=PassageQuery(text="Who approves flights?"))
    assert found.by_meaning
    best = found.passages[0]
    assert (best.name, best.version, best.document_id) == ("travel.md", 1, library["travel.md"].id)
    assert best.citation.startswith("Travel, version 1, Travel › Flights, characters ")
    assert best.similarity is not None
    assert best.similarity > 0.2
    assert best.words > 0


@pytest.mark.parametrize(
    ("name", "content", "citation"),
    [
        (
            "trips.md",
            b"# Trips\n\n## By air\n\nFlights need a permit.",
            "Trips, version 2, Trips › By air, characters ",
        ),
        (
            "trips.pdf",
            pdf(
                ["A page about trains."],
                [*(f"The train {n} leaves." for n in range(80)), "Flights need a permit."],
            ),
            "trips, version 2, page 2, characters ",
        ),
    ],
)
def test_every_answer_cites_document_version_headings_and_page(
    name: str, content: bytes, citation: str, tenant: Tenant, add: Add, index: Index, agent: Agent
) -> None:
    asked = "Which flights need a permit?"
    index(add(name, content.replace(b"permit", b"ticket")).document)
    index(add(name, content).document)
    with tenant_transaction(tenant.id):
        text = DocumentVersion.objects.get(number=2).text
    found = search_passages(tenant_id=tenant.id, query=PassageQuery(text=asked)).passages
    assert found
    for passage in found:
        place = f"characters {text.index(passage.text):,} to {text.index(passage.text) + len(passage.text):,}"
        assert (passage.version, passage.citation.endswith(place)) == (2, True)
    assert found[0].citation.startswith(citation)
    assert "Flights need a permit." in found[0].text
    # The search of all sources of an agent has the same citations.
    results = search_my_memories(tenant_id=tenant.id, agent_id=agent.id, text=asked).results
    assert {result.citation for result in results} <= {passage.citation for passage in found}
    assert results[0].citation == found[0].citation


def test_a_number_is_found_by_its_word(tenant: Tenant, library: Any) -> None:
    assert names_found(tenant, "ZX-4711")[0] == "orders.md"


def test_without_an_embedder_passages_are_found_by_words(
    tenant: Tenant, library: Any, remote: RemoteEmbedder
) -> None:
    remote.away = True
    found = search_passages(tenant_id=tenant.id, query=PassageQuery(text="thirty days"))
    assert not found.by_meaning
    assert [(passage.name, passage.similarity) for passage in found.passages] == [("leave.md", None)]


def test_a_slow_search_ends_and_says_so(
    tenant: Tenant, library: Any, superuser: psycopg.Connection[Any], settings: Any
) -> None:
    settings.ARBOR_SEARCH_SOURCE_MS = 50
    query = PassageQuery(text="thirty days")
    with superuser.transaction():
        superuser.execute("LOCK TABLE knowledge_passage IN ACCESS EXCLUSIVE MODE")
        found = search_passages(tenant_id=tenant.id, query=query)
    assert (found.notes, list(found.passages)) == (
        ["documents were not searched: it took longer than 50 ms"],
        [],
    )
    assert search_passages(tenant_id=tenant.id, query=query).notes == []


def test_agents_find_documents_of_their_categories(tenant: Tenant, library: Any, agent: Agent) -> None:
    asked = "flights, leave and orders"
    assert set(names_found(tenant, asked, agent_id=agent.id)) == FILES.keys()
    for categories, expected in (({"people"}, {"leave.md"}), ({""}, {"orders.md"}), ((), set())):
        with tenant_transaction(tenant.id):
            set_categories(agent_id=agent.id, categories=categories, actor=ACTOR)
        assert set(names_found(tenant, asked, agent_id=agent.id)) == expected
    assert names_found(tenant, asked, category="policies") == ["travel.md"]


def test_withdrawn_documents_are_not_found(tenant: Tenant, library: Any) -> None:
    with tenant_transaction(tenant.id):
        withdraw_document(document_id=library["travel.md"].id, actor=ACTOR)
    assert "travel.md" not in names_found(tenant, "Who approves flights?")


def test_hnsw_finds_what_the_exact_search_finds(tenant: Tenant, library: Any) -> None:
    query = PassageQuery(text="Who approves flights?")
    vector = query_vector_of(tenant_id=tenant.id, text=query.text)
    near, similarities = {}, {}
    with tenant_transaction(tenant.id), connections[APP].cursor() as cursor:
        cursor.execute(ITERATIVE_SCAN)
        for exact in (0, ALWAYS_EXACT):
            values = passage_values(query, vector, exact=exact) | {"tenant": tenant.id}
            cursor.execute(passage_statement(), values)
            rows = cursor.fetchall()
            near[exact] = rows[0][1]
            similarities[exact] = {passage.name: passage.similarity for passage in passages_from(rows)}
    assert near == {0: len(FILES), ALWAYS_EXACT: 0}
    assert similarities[0] == pytest.approx(similarities[ALWAYS_EXACT])
    assert similarities[0]["travel.md"] == max(filter(None, similarities[0].values()))


def test_words_weigh_as_in_a_recall(tenant: Tenant, library: Any) -> None:
    text = "Who approves flights in May?"
    with tenant_transaction(tenant.id):
        counts = dict(PassageTerm.objects.values_list("term", "passages"))
        weights = query_vector(query_terms(text), counts, counts[0])
        found, _ = passage_candidates(PassageQuery(text=text), None)
        stored = {
            row.id: {i + 1: v for i, v in zip(row.lexical.indices(), row.lexical.values(), strict=True)}
            for row in Passage.objects.all()
        }
    assert found
    for passage in found:
        expected = sum(weights.get(term, 0) * weight for term, weight in stored[passage.id].items())
        assert passage.words == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("invalid", [{"text": " "}, {"limit": 0}, {"limit": 51}])
def test_invalid_searches_are_refused(invalid: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match=r"characters|1 to 50"):
        PassageQuery(**{"text": "leave", **invalid})
