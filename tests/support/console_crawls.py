"""Crawls of all console pages, rendered once for each user and state of the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import kombu
import pytest
from django.db import connections

from apps.heartbeats.models import HeartbeatStatus
from apps.memories.models import MemoryAccess
from apps.tenants.models import Role
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import add_member, create_tenant
from tests.factories.agents import AgentFactory, AgentStateFactory
from tests.factories.goals import GoalFactory
from tests.factories.heartbeats import (
    ExternalCallFactory,
    HeartbeatFactory,
    LedgerEntryFactory,
    ProcessFactory,
    ScheduleFactory,
)
from tests.factories.memories import MemoryFactory
from tests.factories.users import UserFactory
from tests.support.console import Page, World, crawl, page_of, sign_in
from tests.support.console_rows import make_world

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>{{ 7|add:7 }}' onmouseover='alert(3)"
#: The text in every field of the tenant that the viewer is no member of.
SECRET = "globex secret"

type Snapshot = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class ViewerCrawl:
    """Pages of a tenant with hostile texts, rendered for its viewer, beside another tenant."""

    pages: tuple[Page, ...]
    #: The addresses of the pages of the agent and of a heartbeat, both with the hostile text.
    of_agent: tuple[str, str]
    other_agent: UUID


@dataclass(frozen=True, kw_only=True)
class OwnerCrawl:
    """Pages of a tenant rendered for its owner: with one row of each model, and with many agents and rows of theirs."""

    few: tuple[Page, ...]
    many: tuple[Page, ...]
    #: The digests of all tables before and after the first crawl.
    before: Snapshot
    after: Snapshot
    #: The recorded number of recalls of the tenant's memory after the crawl.
    recalled: int
    #: The number of connections to the broker that pages tried to open.
    broker_connections: int


def crawl_as_viewer() -> ViewerCrawl:
    """Crawl as the viewer of one of two tenants."""
    ProcessFactory()
    tenant, other = create_tenant(slug="acme", name="Acme"), create_tenant(slug="globex", name="Globex")
    world, other_world = make_world(tenant, text=HOSTILE), make_world(other, text=SECRET)
    user = UserFactory(username="viewer-person")
    add_member(tenant=tenant, user=user, role=Role.VIEWER)
    return ViewerCrawl(
        pages=crawl(sign_in(user), world.pages),
        of_agent=(world.agent_page, page_of(world.heartbeat)),
        other_agent=other_world.agent.id,
    )


def crawl_as_owner() -> OwnerCrawl:
    """Crawl as the owner of a tenant, without a broker."""
    ProcessFactory()
    tenant = create_tenant(slug="acme", name="Acme")
    world = make_world(tenant)
    user = UserFactory(username="owner-person")
    add_member(tenant=tenant, user=user, role=Role.OWNER)
    client = sign_in(user)
    with pytest.MonkeyPatch.context() as patch:
        attempts = refuse_broker(patch)
        before = snapshot()
        few = crawl(client, world.pages)
        after = snapshot()
    with tenant_transaction(tenant.id):
        recalled = MemoryAccess.objects.get().count
    create_many_rows(world)
    return OwnerCrawl(
        few=few,
        many=crawl(client, world.pages),
        before=before,
        after=after,
        recalled=recalled,
        broker_connections=len(attempts),
    )


def refuse_broker(patch: pytest.MonkeyPatch) -> list[str]:
    """Refuse connections to the broker; return the list to which each attempt is added."""
    attempts: list[str] = []

    def refusing(name: str) -> Callable[..., None]:
        def refuse(*_arguments: Any, **_options: Any) -> None:
            attempts.append(name)
            raise AssertionError("a page opened a connection to the broker")

        return refuse

    for name in ("_ensure_connection", "connect"):
        patch.setattr(kombu.Connection, name, refusing(name))
    return attempts


def snapshot() -> Snapshot:
    """Return a digest of the rows of each table."""
    with connections["owner"].cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        )
        names = [name for (name,) in cursor.fetchall()]
        digests = {}
        for name in names:
            cursor.execute(
                f"SELECT md5(coalesce(string_agg(t::text, '|' ORDER BY t::text), '')) FROM {name} t"
            )
            digests[name] = cursor.fetchone()[0]
        return digests


def create_many_rows(world: World) -> None:
    """Create many more agents, heartbeats, ledger entries, memories and goals."""
    with tenant_transaction(world.tenant.id):
        for _ in range(12):
            agent = AgentFactory()
            AgentStateFactory(agent=agent)
            ScheduleFactory(agent=agent)
            for _ in range(3):
                LedgerEntryFactory(call__heartbeat__agent=agent)
        for _ in range(30):
            MemoryFactory(agent=world.agent)
            GoalFactory(agent=world.agent)
            HeartbeatFactory(agent=world.agent, status=HeartbeatStatus.DONE)
        for _ in range(3):
            LedgerEntryFactory(call=ExternalCallFactory(heartbeat=world.heartbeat))
