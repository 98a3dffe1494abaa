"""The pages of pinned memories, quotas and promotion candidates."""

from __future__ import annotations

from typing import Any

from django.test import Client
from django.urls import reverse

from apps.memories.models import Pin
from apps.tenants.scope import tenant_transaction
from tests.factories.agents import AgentFactory
from tests.factories.memories import MemoryAccessFactory, MemoryFactory
from tests.support.console import World, page_of, page_text


def test_an_operator_pins_and_unpins_a_memory(operator: Client, viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        memory = MemoryFactory.create(
            tenant_id=world.tenant.id, agent=world.agent, content="The lamp is green."
        )
    act = reverse("admin:memory-act", args=[memory.id])
    assert "pin-memory" not in page_text(viewer, page_of(memory))
    assert viewer.post(act, {"act": "pin"}).status_code == 403
    assert ">Pin</button>" in page_text(operator, page_of(memory))
    page = operator.post(act, {"act": "pin"}, follow=True).content.decode()
    assert "The memory is pinned." in page
    assert ">Unpin</button>" in page
    assert 'id="pinned"' in page
    assert "was pinned already" in operator.post(act, {"act": "pin"}, follow=True).content.decode()
    assert "The lamp is green." in page_text(viewer, reverse("admin:memories_pin_changelist"))
    assert operator.post(act, {"act": "burn"}).status_code == 404
    assert "is unpinned" in operator.post(act, {"act": "unpin"}, follow=True).content.decode()
    with tenant_transaction(world.tenant.id):
        assert not Pin.objects.filter(memory_id=memory.id).exists()
        memory.status = "archived"
        memory.save(update_fields=["status"])
    refusal = operator.post(act, {"act": "pin"}, follow=True).content.decode()
    assert "restore memories before you pin them" in refusal
    assert "pin-memory" not in refusal


def test_a_quota_that_is_exceeded_is_above_one_hundred_percent(
    viewer: Client, world: World, settings: Any
) -> None:
    settings.ARBOR_MEMORY_QUOTA = 2
    with tenant_transaction(world.tenant.id):
        agent = AgentFactory()
        MemoryFactory.create_batch(3, agent=agent)
    assert "150 %" in page_text(viewer, f"{reverse('admin:memory-quotas')}?agent={agent.id}")


def test_the_quotas_page_shows_types_and_candidates(viewer: Client, world: World) -> None:
    address = reverse("admin:memory-quotas")
    assert "choose an agent" in page_text(viewer, address)
    with tenant_transaction(world.tenant.id):
        fact = MemoryFactory.create(
            tenant_id=world.tenant.id,
            agent=world.agent,
            type="semantic",
            content="The <b>ferry</b> leaves at noon.",
            trust=0.4,
        )
        MemoryAccessFactory.create(tenant_id=world.tenant.id, memory=fact, count=2)
    page = page_text(viewer, f"{address}?agent={world.agent.id}")
    assert 'data-type="strategic"' in page
    assert "The &lt;b&gt;ferry&lt;/b&gt; leaves at noon." in page
    assert "trust 0.40 of 0.75; recalled 2 of 3 times" in page
    assert "choose an agent" in page_text(viewer, f"{address}?agent=nonsense")
