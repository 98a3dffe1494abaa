"""Documents of a tenant, and the functions that add and index them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from apps.agents.models import Agent
from apps.knowledge.models import Document
from apps.knowledge.services.documents import AddedDocument, NewDocument, add_document
from apps.knowledge.services.indexing import IndexedDocument, index_document
from apps.queues import TaskMessage, captured
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from tests.factories.agents import AgentStateFactory

ACTOR = "user:nora"
HANDBOOK = b"""# Handbook

Everybody has thirty days of leave a year.

## Travel

Trains are booked by the office. Flights need the approval of a manager.
"""

type Add = Callable[..., AddedDocument]
type Index = Callable[[Document], IndexedDocument | None]


@pytest.fixture(autouse=True)
def messages(database: None) -> Iterator[list[TaskMessage]]:
    """Return the list of messages to workers; no worker runs."""
    with captured() as published:
        yield published


@pytest.fixture
def agent(tenant: Tenant) -> Agent:
    """Return an agent of the tenant."""
    with tenant_transaction(tenant.id):
        created: Agent = AgentStateFactory.create().agent
    return created


@pytest.fixture
def add(tenant: Tenant) -> Add:
    """Return a function that adds a file to the tenant's documents."""

    def run(
        name: str = "handbook.md",
        content: bytes = HANDBOOK,
        *,
        publish: bool = True,
        category: str | None = None,
    ) -> AddedDocument:
        with tenant_transaction(tenant.id):
            return add_document(
                new=NewDocument(name=name, content=content, publish=publish, category=category),
                actor=ACTOR,
            )

    return run


@pytest.fixture
def index(tenant: Tenant) -> Index:
    """Return a function that indexes a document of the tenant."""
    return lambda document: index_document(document_id=document.id, tenant_id=tenant.id)
