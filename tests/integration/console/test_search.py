"""The page that searches all sources of an agent."""

from __future__ import annotations

from django.test import Client
from django.urls import reverse

from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from tests.factories.agents import AgentStateFactory
from tests.factories.knowledge import published_passage
from tests.support.embedders import RemoteEmbedder

PASSAGE = "Flights need the approval of a manager."


def test_results_are_shown_with_source_score_and_citation(tenant: Tenant, operator: Client) -> None:
    page = reverse("admin:search-sources")
    assert "There are no agents yet" in operator.get(page).content.decode()
    with tenant_transaction(tenant.id):
        agent = AgentStateFactory.create().agent
    assert "Choose an agent first." in operator.get(page, {"q": "flights"}).content.decode()
    query = {"agent": str(agent.id), "q": "flights"}
    assert "finds nothing about that" in operator.get(page, query).content.decode()
    published_passage(tenant.id, PASSAGE)
    shown = operator.get(page, query).content.decode()
    assert PASSAGE in shown
    assert "Travel, version 1" in shown
    assert "arbor://knowledge/audit/read" in shown
    assert "Nothing was searched" in operator.get(page, {**query, "q": "x" * 4_001}).content.decode()


def test_a_search_by_words_alone_says_so(tenant: Tenant, operator: Client, remote: RemoteEmbedder) -> None:
    with tenant_transaction(tenant.id):
        agent = AgentStateFactory.create().agent
    published_passage(tenant.id, PASSAGE)
    query = {"agent": str(agent.id), "q": "flights"}
    shown = operator.get(reverse("admin:search-sources"), query).content.decode()
    assert (
        "documents were searched by words alone: the embedder did not answer, or could not be waited for"
        in shown
    )
    assert PASSAGE in shown
    # A page does not wait for an embedder over the network.
    assert "flights" not in remote.asked
