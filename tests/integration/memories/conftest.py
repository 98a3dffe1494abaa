"""Agents with empty minds, and embedders that a test can watch, delay and break."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.db import connections

from apps.agents.models import Agent
from apps.memories.models import Memory, MemoryAccess, Term
from apps.memories.services.recall.mind_cache import MindCache
from apps.memories.services.store.remember import store
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.embedding.models import EmbeddingModel
from arbor.memory.values import MemoryStatus, NewMemory
from tests.factories.agents import AgentFactory
from tests.support.database import recorded_statements
from tests.support.embedders import RemoteEmbedder, registered_embedder
from tests.support.races import race

_OTHER_SNAPSHOTS = (
    "SELECT count(*) FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid()"
)
NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def mind(tenant: Tenant) -> Agent:
    """Return an agent without memories."""
    with tenant_transaction(tenant.id):
        agent: Agent = AgentFactory.create(name="Vega")
        return agent


@pytest.fixture
def other_mind(tenant: Tenant) -> Agent:
    """Return another agent of the same tenant."""
    with tenant_transaction(tenant.id):
        agent: Agent = AgentFactory.create(name="Altair")
        return agent


@pytest.fixture
def foreign_mind(other_tenant: Tenant) -> Agent:
    """Return an agent of another tenant."""
    with tenant_transaction(other_tenant.id):
        agent: Agent = AgentFactory.create(name="Vega")
        return agent


@pytest.fixture
def vacuum(database: None, superuser: psycopg.Connection[Any]) -> Callable[[], None]:
    """Return a function that vacuums the memories, as autovacuum does in time."""

    def run() -> None:
        # Beside an older snapshot, such as that of an autovacuum worker that analyzes, no page becomes visible to all.
        deadline = time.monotonic() + 60
        while superuser.execute(_OTHER_SNAPSHOTS).fetchone() != (0,):
            assert time.monotonic() < deadline, "another session keeps its snapshot"
            time.sleep(0.05)
        with connections["owner"].cursor() as cursor:
            # The throw-away server commits without waiting for its disk, and no page counts as visible to all until
            # the disk has the commits. A commit that waits writes them all.
            cursor.execute("SET synchronous_commit = on")
            cursor.execute("CREATE TABLE caught_up (); DROP TABLE caught_up")
            cursor.execute("VACUUM (ANALYZE) memories_memory")

    return run


@pytest.fixture
def statements(database: None) -> Iterator[list[str]]:
    """Return the list of statements that the application's connection has run, without BEGIN and COMMIT."""
    with recorded_statements(control=True) as sent:
        yield sent


def a_memory(content: str, **parts: Any) -> NewMemory:
    """Return a memory to store, which happened at noon."""
    values: dict[str, Any] = {"content": content, "occurred_at": NOON, **parts}
    return NewMemory(**values)


def turns(*texts: str, session: str = "talk", role: str = "Ada") -> list[NewMemory]:
    """Return the turns of a talk, a minute apart."""
    return [
        a_memory(
            text, session=session, position=place, role=role, occurred_at=NOON + timedelta(minutes=place)
        )
        for place, text in enumerate(texts)
    ]


def memories_of(agent: Agent) -> list[Memory]:
    """Return the agent's memories, archived ones too, in the order of storing."""
    with tenant_transaction(agent.tenant_id):
        return list(Memory.objects.filter(agent_id=agent.id).order_by("id"))


def unembedded_contents(agent: Agent) -> list[str]:
    return [memory.content for memory in memories_of(agent) if memory.embedding is None]


def term_counts(agent: Agent) -> dict[int, int]:
    """Return the agent's document frequencies, without those that are 0."""
    with tenant_transaction(agent.tenant_id):
        counts = Counter(
            dict(Term.objects.filter(agent_id=agent.id, term__gte=0).values_list("term", "memories"))
        )
        for recent in Term.objects.filter(agent_id=agent.id, term=-1).values_list("recent", flat=True):
            counts.update(recent)
    return {term: count for term, count in counts.items() if count}


def true_counts(agent: Agent) -> dict[int, int]:
    """Count the document frequencies of the active memories; under the key 0, their number."""
    counts: dict[int, int] = {}
    for memory in memories_of(agent):
        if memory.status == MemoryStatus.ACTIVE:
            for term in [0, *(place + 1 for place in memory.lexical.indices())]:
                counts[term] = counts.get(term, 0) + 1
    return counts


def at_once[T](work: Callable[[int], T], *, writers: int) -> list[T]:
    """Do the work in several threads at once, each on a connection of its own, and return the results."""
    return race(*(partial(work, writer) for writer in range(writers)))


def access_counts(agent: Agent) -> dict[UUID, int]:
    """Return how often each of the agent's memories counts as recalled."""
    with tenant_transaction(agent.tenant_id):
        rows = MemoryAccess.objects.filter(memory__agent_id=agent.id)
        return dict(rows.values_list("memory_id", "count"))


def store_without_vectors(agent: Agent, *memories: NewMemory) -> None:
    with tenant_transaction(agent.tenant_id):
        store(agent_id=agent.id, memories=memories, vectors=None)


#: The model of the embedder that `server` registers.
REMOTE = EmbeddingModel(name="tei/remote", dimension=512)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteEmbedder]:
    """Register the embedder of REMOTE beside the one in this process, and return it."""
    embedder = RemoteEmbedder(REMOTE.dimension)
    with registered_embedder(monkeypatch, embedder, name=REMOTE.name):
        yield embedder


@pytest.fixture
def cache() -> MindCache:
    """Return the mind cache of one process."""
    return MindCache()
