"""Searches, which find no row of another tenant and none that the agent may not read."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pgvector import HalfVector

from apps.agents.models import Agent
from apps.audit.models import AuditAction, AuditEvent
from apps.audit.services import record
from apps.authority.services.grants import grant_capability
from apps.fleet.creation import NewAgent, create_agents
from apps.knowledge.models import Passage
from apps.knowledge.services.passage_search import PassageQuery, search_passages
from apps.knowledge.services.passages import set_searchable
from apps.knowledge.services.search import search_my_memories
from apps.memories.models import Memory
from apps.memories.services.embedding.embedding import embed_texts
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.authority.grants import AUDIT_RESOURCE
from arbor.knowledge.merging import SearchSource
from tests.factories.knowledge import (
    AgentKnowledgeFactory,
    DocumentFactory,
    DocumentVersionFactory,
    PassageFactory,
)
from tests.factories.memories import MemoryFactory
from tests.factories.rows import minutes_ago
from tests.factories.workflows import WorkflowRunFactory, WorkflowStepFactory
from tests.integration.knowledge.conftest import ACTOR

WORDS = (
    "quay",
    "repairs",
    "invoice",
    "harbour",
    "manager",
    "flights",
    "approved",
    "closed",
    "May",
    "4711",
    "leave",
)
#: Rows of each source and owner.
ROWS = 6


@dataclass(frozen=True, kw_only=True)
class Searcher:
    """An agent, and the ids that it may find, by source."""

    tenant: Tenant
    agent: Agent
    visible: dict[SearchSource, frozenset[str]]


def random_texts(rng: random.Random) -> list[str]:
    """Return texts of a few words, so that texts of different owners are alike or equal."""
    return [" ".join(rng.sample(WORDS, rng.randint(2, 5))) for _ in range(ROWS)]


def ids_of(rows: Sequence[Any]) -> frozenset[str]:
    return frozenset(str(row.id) for row in rows)


def populate(tenant: Tenant, rng: random.Random) -> list[Searcher]:
    """Store random rows of a tenant with two agents; the second reads neither the audit log nor policies."""
    with tenant_transaction(tenant.id):
        reader, other = (
            create_agents(new_agents=[NewAgent(name=name, template_name="Researcher")], actor=ACTOR)[0]
            for name in ("Ada", "Bela")
        )
        grant_capability(agent_id=reader.id, resource=AUDIT_RESOURCE, actor=ACTOR)
        AgentKnowledgeFactory.create(agent=other, categories=["travel"])
        memories = {agent.id: _store_memories(agent, rng) for agent in (reader, other)}
        passages = {category: _store_passages(tenant, category, rng) for category in ("policies", "travel")}
        run = WorkflowRunFactory.create()
        texts = enumerate(random_texts(rng), start=1)
        steps = [
            WorkflowStepFactory.create(
                run=run,
                agent=reader,
                number=number,
                status="succeeded",
                output=text,
                completed_at=minutes_ago(1),
            )
            for number, text in texts
        ]
        for text in random_texts(rng):
            record(action=AuditAction.OPERATOR_ACT, actor=ACTOR, message=text)
        acts = list(AuditEvent.objects.all())
    return [
        Searcher(
            tenant=tenant,
            agent=agent,
            visible={
                SearchSource.MEMORY: ids_of(memories[agent.id]),
                SearchSource.AUDIT: ids_of(acts if agent == reader else []),
                SearchSource.WORKFLOW: ids_of(steps),
                SearchSource.KNOWLEDGE: ids_of(
                    [*passages["travel"], *(passages["policies"] if agent == reader else [])]
                ),
            },
        )
        for agent in (reader, other)
    ]


def _store_memories(agent: Agent, rng: random.Random) -> list[Any]:
    """Store memories of an agent; return its memories that are neither expired nor archived."""
    first = list(Memory.objects.filter(agent=agent))
    texts = random_texts(rng)
    vectors = embed_texts(tenant_id=agent.tenant_id, texts=texts)
    expired, archived, *visible = (
        MemoryFactory.create(agent=agent, content=text, embedding=HalfVector(vector))
        for text, vector in zip(texts, vectors, strict=True)
    )
    Memory.objects.filter(id=expired.id).update(expires_at=minutes_ago(1))
    Memory.objects.filter(id=archived.id).update(status="archived")
    return [*first, *visible]


def _store_passages(tenant: Tenant, category: str, rng: random.Random) -> list[Any]:
    """Store passages of a category, with their words counted; return the searchable passages."""
    texts = random_texts(rng)
    vectors = embed_texts(tenant_id=tenant.id, texts=texts)
    version = DocumentVersionFactory.create(document=DocumentFactory.create(category=category))
    hidden, *visible = (
        PassageFactory.create(
            version=version,
            category=category,
            text=text,
            embedding=HalfVector(vector),
            embedding_model="wordllama 256",
            searchable=False,
        )
        for text, vector in zip(texts, vectors, strict=True)
    )
    set_searchable(version.document, searchable=True)
    Passage.objects.filter(id=hidden.id).update(searchable=False)
    return visible


@pytest.fixture
def searchers(tenant: Tenant, other_tenant: Tenant, templates: None) -> list[Searcher]:
    """Return two agents of each of two tenants, whose sources have random rows."""
    rng = random.Random(42)
    return [searcher for owner in (tenant, other_tenant) for searcher in populate(owner, rng)]


QUERIES = st.one_of(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=30).filter(str.strip),
)
TERMS = st.one_of(st.sampled_from(["", "e", "%", "_", "\\", "' OR true --"]), st.sampled_from(WORDS))


def test_no_query_finds_a_foreign_row(searchers: list[Searcher], settings: Any) -> None:
    settings.ARBOR_SEARCH_MIN_SIMILARITY = -1.0
    found: dict[SearchSource, set[str]] = {source: set() for source in SearchSource}
    first_of = {searcher.tenant.id: searcher for searcher in reversed(searchers)}

    @hypothesis_settings(max_examples=60)
    @given(searcher=st.sampled_from(searchers), text=QUERIES, term=TERMS, exact=st.sampled_from([0, 50_000]))
    def search(searcher: Searcher, text: str, term: str, exact: int) -> None:
        settings.ARBOR_SEARCH_EXACT_PASSAGES = exact
        tenant_id = searcher.tenant.id
        answer = search_my_memories(
            tenant_id=tenant_id, agent_id=searcher.agent.id, text=text, term=term, limit=25
        )
        for result in answer.results:
            assert result.id in searcher.visible[result.source]
            found[result.source].add(result.id)
        # The tenant's first agent finds documents of all categories, like its people.
        for agent_id, reader in ((searcher.agent.id, searcher), (None, first_of[tenant_id])):
            query = PassageQuery(text=text, agent_id=agent_id, limit=50)
            passages = search_passages(tenant_id=tenant_id, query=query).passages
            assert ids_of(passages) <= reader.visible[SearchSource.KNOWLEDGE]

    search()
    assert all(found.values())
