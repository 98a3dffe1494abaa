"""Searches of all sources: ranked by the formula, isolated by tenant and agent, degraded where a source fails."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.db import connections
from pgvector import HalfVector

from apps.agents.models import Agent
from apps.agents.services.templates import seed_builtin_templates
from apps.audit.models import AuditAction, AuditEvent
from apps.audit.services import record
from apps.authority.services.grants import grant_capability
from apps.fleet.creation import NewAgent, create_agents
from apps.knowledge.services import search as searches
from apps.knowledge.services.passage_search import PassageQuery, search_passages
from apps.knowledge.services.passages import set_searchable
from apps.knowledge.services.search import search_my_memories
from apps.knowledge.services.search_sources import read_of
from apps.memories.services.embedding.embedding import embed_texts
from apps.tenants import round_trip
from apps.tenants.models import Tenant
from apps.tenants.scope import APP, tenant_transaction
from arbor.authority.grants import AUDIT_RESOURCE
from arbor.errors import Invalid, NotFound
from arbor.knowledge.merging import MemorySearch, SearchSource, recency_of, word_share
from tests.factories.knowledge import DocumentFactory, DocumentVersionFactory, PassageFactory
from tests.factories.memories import MemoryFactory
from tests.factories.workflows import WorkflowStepFactory
from tests.integration.knowledge.conftest import ACTOR

MEMORY = "Nora told me that the quay is closed for repairs until May."
PASSAGE = "Quay repairs: the quay is closed to ships while the harbour office repairs it."
STEP = "The quay repairs cost 40,000."
ACT = "approved the quay repairs"
QUERY = "quay repairs"


@dataclass(frozen=True, kw_only=True)
class Populated:
    """A tenant with all sources, and the ids that belong to its agent or to all of its agents."""

    tenant: Tenant
    agent: Agent
    own: frozenset[str]
    #: Of another agent of the tenant.
    memory_of_other: str


def vector(tenant: Tenant, text: str) -> Any:
    return embed_texts(tenant_id=tenant.id, texts=[text])[0]


def populate(tenant: Tenant, *, mark: str = "") -> Populated:
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
    return Populated(tenant=tenant, agent=agent, own=own, memory_of_other=str(memories[1].id))


@pytest.fixture(autouse=True)
def _templates(database: None) -> None:
    seed_builtin_templates()


@pytest.fixture
def acme(tenant: Tenant) -> Populated:
    return populate(tenant)


@pytest.fixture
def rival(other_tenant: Tenant, acme: Populated) -> Populated:
    return populate(other_tenant, mark=" Of the rival.")


def search(place: Populated, text: str = QUERY, **parts: Any) -> MemorySearch:
    return search_my_memories(tenant_id=place.tenant.id, agent_id=place.agent.id, text=text, **parts)


@pytest.mark.usefixtures("rival")
def test_the_ranking_is_the_formula_by_hand(acme: Populated) -> None:
    found = search(acme, limit=25)
    assert not found.missing
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
        by_hand = (
            0.5 * similarity[result.content]
            + 0.2 * recency
            + 0.2 * importance[result.content]
            + 0.1 * priority[result.content]
        )
        assert result.score == pytest.approx(by_hand, abs=2e-3)
    assert [result.score for result in found.results] == sorted(
        (result.score for result in found.results), reverse=True
    )
    citations = {result.content: result.citation for result in found.results}
    assert citations[PASSAGE].startswith("The handbook, version 1, ")
    assert "step estimate" in citations[STEP]


def test_no_query_path_finds_a_foreign_row(acme: Populated, rival: Populated, settings: Any) -> None:
    settings.ARBOR_SEARCH_MIN_SIMILARITY = -1.0
    words = [
        *(MEMORY + PASSAGE + STEP + ACT).split(),
        "rival",
        "Of",
        "100%",
        "_",
        "'; --",
        "",
        "The handbook",
    ]
    chance = random.Random(14)
    for number in range(25):
        text = " ".join(chance.sample(words, chance.randint(1, 6))).strip() or "quay"
        term = chance.choice(["", "e", "quay", "%", "_", "rival"])
        settings.ARBOR_SEARCH_EXACT_PASSAGES = number % 2 * 8_000
        for place, other in ((acme, rival), (rival, acme)):
            ids = {result.id for result in search(place, text, term=term, limit=25).results}
            ids |= {
                str(passage.id)
                for agent_id in (None, place.agent.id)
                for passage in search_passages(
                    tenant_id=place.tenant.id, query=PassageQuery(text=text, agent_id=agent_id, limit=50)
                ).passages
            }
            assert ids.isdisjoint({*other.own, other.memory_of_other, place.memory_of_other})
            assert ids


def test_an_agent_of_another_tenant_is_unknown(acme: Populated, rival: Populated) -> None:
    with pytest.raises(NotFound):
        search_my_memories(tenant_id=acme.tenant.id, agent_id=rival.agent.id, text=QUERY)


def test_the_audit_log_is_searched_only_with_the_capability(acme: Populated) -> None:
    with tenant_transaction(acme.tenant.id):
        (other,) = create_agents(new_agents=[NewAgent(name="Caro", template_name="Researcher")], actor=ACTOR)
    found = search_my_memories(tenant_id=acme.tenant.id, agent_id=other.id, text=QUERY)
    assert found.forbidden == [SearchSource.AUDIT]
    assert {result.source for result in found.results} == {SearchSource.WORKFLOW, SearchSource.KNOWLEDGE}


def test_a_slow_and_a_failed_source_are_named(
    acme: Populated, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.ARBOR_SEARCH_SOURCE_MS = 100
    spoiled = {SearchSource.WORKFLOW: "SELECT pg_sleep(5)", SearchSource.AUDIT: "SELECT 1 / 0"}

    def spoil(source: SearchSource, query: Any) -> Any:
        one = read_of(source, query)
        if source not in spoiled:
            return one
        return replace(one, read=replace(one.read, statement=spoiled[source], values=[]))

    monkeypatch.setattr(searches, "read_of", spoil)
    found = search(acme)
    assert found.notes == [
        "audit_log was not searched: it failed",
        "workflow_steps was not searched: it took longer than 100 ms",
    ]
    assert {result.source for result in found.results} == {SearchSource.MEMORY, SearchSource.KNOWLEDGE}


def test_without_an_embedder_words_find_and_memories_are_named(
    acme: Populated, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searches, "query_vector_of", lambda **_: None)
    found = search(acme)
    assert found.notes == [
        "agent_memory was not searched: its embedder did not answer, or is not waited for on a page"
    ]
    assert PASSAGE in {result.content for result in found.results}


def test_sources_are_read_in_one_round_trip(acme: Populated, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    read = round_trip._read

    def count(reads: Any, setup: str) -> Any:
        calls.append(len(reads))
        return read(reads, setup)

    monkeypatch.setattr(round_trip, "_read", count)
    sent: list[str] = []

    def watch(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        sent.append(sql)
        return execute(sql, params, many, context)

    with connections[APP].execute_wrapper(watch):
        search(acme)
    assert calls == [4]
    # Setup, and limit and statement of each source; before them the agent, its embedder, identity, grants and trust.
    assert len([sql for sql in sent if not sql.startswith(("SAVEPOINT", "RELEASE", "ROLLBACK"))]) <= 18, sent


def test_the_least_similarity_hides_what_is_far(acme: Populated, settings: Any) -> None:
    settings.ARBOR_SEARCH_MIN_SIMILARITY = 0.99
    # Words of the query still find the passage.
    assert {result.source for result in search(acme).results} == set(SearchSource) - {SearchSource.MEMORY}


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"limit": 26}, {"text": " "}])
def test_impossible_searches_are_refused(acme: Populated, wrong: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match=r"1 to|characters"):
        search(acme, **{"text": QUERY, **wrong})
