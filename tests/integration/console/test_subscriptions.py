"""The page of an agent's subscriptions to signals."""

from __future__ import annotations

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.agents.models import Agent
from apps.knowledge.models import SignalSubscription
from apps.knowledge.services.subscriptions import subscriptions_of
from apps.tenants.scope import tenant_transaction
from tests.factories.agents import AgentFactory
from tests.factories.skills import SignalSubscriptionFactory
from tests.support.console import World, list_of


def test_a_list_reads_all_sources_at_once(viewer: Client, world: World) -> None:
    list_address = list_of(SignalSubscription)
    counts = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as captured:
            assert viewer.get(list_address).status_code == 200
        counts.append(len(captured))
        with tenant_transaction(world.tenant.id):
            for _ in range(3):
                SignalSubscriptionFactory(agent=AgentFactory(), source=AgentFactory())
    assert counts[0] >= counts[1]


def test_an_operator_subscribes_and_unsubscribes_an_agent(
    operator: Client, viewer: Client, world: World
) -> None:
    with tenant_transaction(world.tenant.id):
        lyra: Agent = AgentFactory(name="Lyra")
        SignalSubscription.objects.all().delete()
    address = reverse("admin:agent-subscriptions", args=[world.agent.id])
    empty = viewer.get(address).content.decode()
    assert "No subscription" in empty
    assert 'id="subscribe"' not in empty
    payload = {"act": "add", "names": "memory.goal_*, memory.recalled", "about": "peer", "peer": lyra.name}
    assert viewer.post(address, payload).status_code == 403
    page = operator.post(address, payload, follow=True).content.decode()
    assert "is subscribed to memory.goal_*, memory.recalled." in page
    assert "about Lyra" in page
    for invalid in (
        {"act": "add", "names": "", "about": "self"},
        {"act": "add", "names": "memory.goal_*", "about": "peer", "peer": "Nobody"},
        {"act": "add", "names": "memory.goal_*", "about": "self", "peer": lyra.name},
        {"act": "end", "subscription": "x"},
    ):
        assert "Nothing was changed" in operator.post(address, invalid, follow=True).content.decode()
    with tenant_transaction(world.tenant.id):
        (row,) = subscriptions_of(world.agent.id)
    ended = operator.post(address, {"act": "end", "subscription": str(row.id)}, follow=True)
    assert "is no longer subscribed" in ended.content.decode()
