"""Console pages of a tenant, and crawls of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from django.contrib import admin
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.agents.models import Agent
from apps.heartbeats.models import Heartbeat
from apps.tenants.models import Tenant, User

#: Models whose rows are visible only to superusers.
PLATFORM = {
    "tenants.Tenant",
    "tenants.User",
    "audit.PlatformEvent",
    "memories.JobRun",
    "memories.EmbedderFault",
}


@dataclass(kw_only=True)
class World:
    """A tenant and one row of everything in it."""

    tenant: Tenant
    agent: Agent
    heartbeat: Heartbeat
    rows: list[Model] = field(default_factory=list)

    @property
    def pages(self) -> list[str]:
        """The address of every console page about the tenant."""
        urls = [reverse("admin:index")]
        for model in admin.site._registry:
            if model._meta.label not in PLATFORM:
                urls.append(list_of(model))
        return urls + self.operator_pages + [page_of(row) for row in self.rows] + [self.chat_page]

    @property
    def operator_pages(self) -> list[str]:
        """The addresses of pages that are no lists, each with something to show."""
        agent = self.agent.id
        memory = next(row for row in self.rows if row._meta.label == "memories.Memory")
        return [
            f"{reverse('admin:recall')}?agent={agent}&q=the+river&missing={memory.pk}",
            f"{reverse('admin:graph')}?agent={agent}&node={memory.pk}",
            f"{reverse('admin:graph')}?agent={agent}",
            f"{reverse('admin:model-usage')}?agent={agent}&by=agent",
            reverse("admin:agent-capabilities", args=[agent]),
            reverse("admin:agent-trust", args=[agent]),
            reverse("admin:agent-documents", args=[agent]),
            reverse("admin:models"),
            reverse("admin:operations"),
            reverse("admin:template-edit"),
        ]

    @property
    def agent_page(self) -> str:
        return page_of(self.agent)

    @property
    def chat_page(self) -> str:
        return reverse("admin:agent-chat", args=[self.agent.id])

    @property
    def act_address(self) -> str:
        """The address to which acts on the agent are posted."""
        return reverse("admin:agent-act", args=[self.agent.id])


def list_of(model: type[Model]) -> str:
    """Return the address of the list of a model's rows."""
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def page_of(row: Model) -> str:
    """Return the address of the page of a row."""
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])


def sign_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page as rendered for one user."""

    address: str
    status: int
    text: str
    templates: int
    queries: tuple[str, ...]


def crawl(client: Client, addresses: Sequence[str]) -> tuple[Page, ...]:
    """Open every page once."""
    pages = []
    for address in addresses:
        with CaptureQueriesContext(connection) as captured:
            response = client.get(address)
        pages.append(
            Page(
                address=address,
                status=response.status_code,
                text=response.content.decode(),
                templates=len(response.templates),
                queries=tuple(query["sql"] for query in captured.captured_queries),
            )
        )
    return tuple(pages)


def page_text(client: Client, address: str) -> str:
    """Return the text of a page; assert that it opens."""
    response = client.get(address)
    assert response.status_code == 200, address
    return response.content.decode()
