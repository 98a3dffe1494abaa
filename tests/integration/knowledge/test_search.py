"""Searches of all sources: ranking by the formula, isolation by tenant and agent, sources that fail."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import psycopg
import pytest
from pgvector import HalfVector

from apps.agents.models import Agent
from apps.audit.models import AuditAction, AuditEvent
from apps.audit.services import record
from apps.authority.services.grants import grant_capability
from apps.fleet.creation import NewAgent, create_agents
from apps.knowledge.services import search as searches
from apps.knowledge.services.passages import set_searchable
from apps.knowledge.services.search import answer_search, search_my_memories
from apps.knowledge.services.search_sources import read_of
from apps.memories.services.embedding.embedding import embed_texts
from apps.tenants import round_trip
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.authority.grants import AUDIT_RESOURCE
from arbor.errors import Invalid, NotFound
from arbor.heartbeat.needs import SourceSearch
from arbor.knowledge.merging import MemorySearch, SearchSource, recency_of, word_share
from tests.factories.knowledge import DocumentFactory, DocumentVersionFactory, PassageFactory
from tests.factories.memories import MemoryFactory
from tests.factories.workflows import WorkflowStepFactory
from tests.integration.knowledge.conftest import ACTOR
from tests.integration.memories.conftest import statements
from tests.support.embedders import RemoteEmbedder

__all__ = ["statements"]

MEMORY = "Nora told me that the quay is closed for repairs until May."
PASSAGE = "Quay repairs: the quay is closed to ships while the harbour office repairs it."
STEP = "The quay repairs cost 40,000."
ACT = "approved the quay repairs"
QUERY = "quay repairs"
SILENT = "the embedder did not answer, or could not be waited for"


@dataclass(frozen=True, kw_only=True)
class PopulatedTenant:
    """A tenant with all sources, and the ids that belong to its agent or to all of its agents."""

    tenant: Tenant
    agent: Agent
    own: frozenset[str]


def vector(tenant: Tenant, text: str) -> Any:
    return embed_texts(tenant_id=tenant.id, texts=[text])[0]


def populate(tenant: Tenant, *, mark: str = "") -> PopulatedTenant:
    """Store the same texts in all sources of a tenant, each with a mark."""
    with tenant_transaction(tenant.id):
        agent, other = (
            create_agents(new_agents=[NewAgent(name=name, template_name="Researcher")], actor=ACTOR)[0]
            for name in ("Ada", "Bela")
        )
        memories = [
            MemoryFactory.create(
                agent=owner,
                content=MEMORY + mark,
                embedding=HalfVector(vector(tenant, MEMORY + mark)),
            )
            for owner in (agent, other)
        ]
        version = DocumentVersionFactory.create(document=DocumentFactory.create())
        passage = PassageFactory.create(
            version=version,
            text=PASSAGE + mark,
            embedding=HalfVector(vector(tenant, PASSAGE + mark)),
            embedding_model="wordllama 256",
            searchable=False,
        )
        set_searchable(version.document, searchable=True)
        step = WorkflowStepFactory.create(
            name="estimate", status="succeeded", output=STEP + mark, completed_at=version.indexed_at
        )
        record(action=AuditAction.OPERATOR_ACT, actor=ACTOR, message=ACT + mark)
        act = AuditEvent.objects.get(message=ACT + mark)
        grant_capability(agent_id=agent.id, resource=AUDIT_RESOURCE, actor=ACTOR)
    own = frozenset(str(row.id) for row in (memories[0], passage, step, act))
    return PopulatedTenant(tenant=tenant, agent=agent, own=own)


@pytest.fixture(autouse=True)
def _templates(templates: None) -> None:
    """Store the built-in templates before the agents are created."""


@pytest.fixture
def acme(tenant: Tenant) -> PopulatedTenant:
    """Return the tenant with rows in all sources."""
    return populate(tenant)


@pytest.fixture
def rival(other_tenant: Tenant, acme: PopulatedTenant) -> PopulatedTenant:
    """Return another tenant with almost the same rows."""
    return populate(other_tenant, mark=" Of the rival.")


def search(populated: PopulatedTenant, text: str = QUERY, **parts: Any) -> MemorySearch:
    return search_my_memories(tenant_id=populated.tenant.id, agent_id=populated.agent.id, text=text, **parts)


@pytest.mark.usefixtures("rival")
def test_results_are_ranked_by_the_formula(acme: PopulatedTenant) -> None:
    found = search(acme, limit=25)
    assert not found.faults
    assert not found.forbidden
    query = vector(acme.tenant, QUERY)

    def cosine(text: str) -> float:
        return float(np.dot(query, vector(acme.tenant, text)))

    similarity = {MEMORY: cosine(MEMORY), PASSAGE: cosine(PASSAGE), STEP: word_share(QUERY, STEP), ACT: 1.0}
    importance = {MEMORY: 0.6, PASSAGE: 0.5, STEP: 0.5, ACT: 0.5}
    priority = {MEMORY: 1.0, ACT: 0.8, STEP: 0.6, PASSAGE: 0.5}
    assert {str(result.id) for result in found.results if result.content in similarity} == acme.own
    for result in found.results:
        if result.content not in similarity:
            assert result.source is SearchSource.AUDIT
            continue
        recency = recency_of(result.at, now=result.at + timedelta(minutes=1))
        expected = (
            0.5 * similarity[result.content]
            + 0.2 * recency
            + 0.2 * importance[result.content]
            + 0.1 * priority[result.content]
        )
        assert result.score == pytest.approx(expected, abs=2e-3)
    assert [result.score for result in found.results] == sorted(
        (result.score for result in found.results), reverse=True
    )
    citations = {result.content: result.citation for result in found.results}
    assert citations[PASSAGE].startswith("The handbook, version 1, ")
    assert "step estimate" in citations[STEP]


def test_an_agent_of_another_tenant_is_unknown(acme: PopulatedTenant, rival: PopulatedTenant) -> None:
    with pytest.raises(NotFound):
        search_my_memories(tenant_id=acme.tenant.id, agent_id=rival.agent.id, text=QUERY)


def test_the_audit_log_is_searched_only_with_the_capability(acme: PopulatedTenant) -> None:
    with tenant_transaction(acme.tenant.id):
        (other,) = create_agents(new_agents=[NewAgent(name="Caro", template_name="Researcher")], actor=ACTOR)
    found = search_my_memories(tenant_id=acme.tenant.id, agent_id=other.id, text=QUERY)
    assert found.forbidden == [SearchSource.AUDIT]
    assert {result.source for result in found.results} == {SearchSource.WORKFLOW, SearchSource.KNOWLEDGE}


def test_a_slow_and_a_failed_source_are_named(
    acme: PopulatedTenant, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    # Enough for the other sources on a slow machine.
    settings.ARBOR_SEARCH_SOURCE_MS = 1000
    spoiled = {SearchSource.WORKFLOW: "SELECT pg_sleep(5)", SearchSource.AUDIT: "SELECT 1 / 0"}

    def spoil(source: SearchSource, query: Any) -> Any:
        source_read = read_of(source, query)
        if source not in spoiled:
            return source_read
        return replace(source_read, read=replace(source_read.read, statement=spoiled[source], values=[]))

    monkeypatch.setattr(searches, "read_of", spoil)
    found = search(acme)
    assert found.notes == [
        "the audit log was not searched: it failed",
        "workflow steps were not searched: it took longer than 1000 ms",
    ]
    assert {result.source for result in found.results} == {SearchSource.MEMORY, SearchSource.KNOWLEDGE}


def test_sources_searched_without_an_embedder_are_named(
    acme: PopulatedTenant, remote: RemoteEmbedder
) -> None:
    remote.away = True
    found = search(acme)
    assert found.notes == [
        f"memories were not searched: {SILENT}",
        f"documents were searched by words alone: {SILENT}",
    ]
    assert PASSAGE in {result.content for result in found.results}


def test_a_failed_exact_scan_leaves_the_results_of_the_index(
    acme: PopulatedTenant, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    # Enough for the scan of the index on a slow machine.
    settings.ARBOR_SEARCH_SOURCE_MS = 1000
    settings.ARBOR_SEARCH_EXACT_PASSAGES = 0

    def delay(source: SearchSource, query: Any) -> Any:
        source_read = read_of(source, query)
        return replace(
            source_read,
            exact_read=lambda _: replace(source_read.read, statement="SELECT pg_sleep(5)", values=[]),
        )

    monkeypatch.setattr(searches, "read_of", delay)
    found = search(acme, only=[SearchSource.KNOWLEDGE])
    assert found.notes == ["documents were searched approximately: it took longer than 1000 ms"]
    assert [result.content for result in found.results] == [PASSAGE]


def test_a_slow_search_of_documents_does_not_delay_a_heartbeat(
    acme: PopulatedTenant, superuser: psycopg.Connection[Any], settings: Any
) -> None:
    need = SourceSearch(
        agent_id=acme.agent.id,
        text=QUERY,
        limit=5,
        now=datetime.now(UTC),
        vector=vector(acme.tenant, QUERY).tolist(),
        model=None,
        documents_only=True,
    )
    with tenant_transaction(acme.tenant.id):
        assert [result.content for result in answer_search(need).results] == [PASSAGE]
    settings.ARBOR_SEARCH_SOURCE_MS = 50
    with superuser.transaction():
        superuser.execute("LOCK TABLE knowledge_passage IN ACCESS EXCLUSIVE MODE")
        with tenant_transaction(acme.tenant.id):
            found = answer_search(need)
    assert (found.notes, list(found.results)) == (
        ["documents were not searched: it took longer than 50 ms"],
        [],
    )


def test_sources_are_read_in_one_round_trip(
    acme: PopulatedTenant, monkeypatch: pytest.MonkeyPatch, statements: list[str]
) -> None:
    calls: list[int] = []
    read = round_trip._read

    def count(reads: Any, setup: str) -> Any:
        calls.append(len(reads))
        return read(reads, setup)

    monkeypatch.setattr(round_trip, "_read", count)
    statements.clear()
    search(acme)
    assert calls == [4]
    # The agent, its embedder, identity, grants and trust; then the setup, and the limit and the statement of each source.
    executed = [sql for sql in statements if not sql.startswith(("SAVEPOINT", "RELEASE", "ROLLBACK"))]
    assert len(executed) <= 18, executed


def test_results_below_the_minimum_similarity_are_hidden(acme: PopulatedTenant, settings: Any) -> None:
    settings.ARBOR_SEARCH_MIN_SIMILARITY = 0.99
    # The passage is still found by words of the query.
    assert {result.source for result in search(acme).results} == set(SearchSource) - {SearchSource.MEMORY}


@pytest.mark.parametrize("invalid", [{"limit": 0}, {"limit": 26}, {"text": " "}, {"text": "x" * 4_001}])
def test_invalid_searches_are_refused_without_an_embedding(
    acme: PopulatedTenant, remote: RemoteEmbedder, invalid: dict[str, Any]
) -> None:
    with pytest.raises(Invalid, match=r"1 to|characters"):
        search(acme, **{"text": QUERY, **invalid})
    assert remote.asked == []
