"""Memories over HTTP."""

from __future__ import annotations

from typing import Any

from apps.agents.models import Agent
from apps.memories.models import Memory
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.memory.values import Retention
from tests.factories.memories import BufferItemFactory
from tests.factories.rows import minutes_ago
from tests.support.api import Caller


def test_a_program_of_an_owner_purges(owner: Caller, operator: Caller, vega: dict[str, Any]) -> None:
    memories = f"/agents/{vega['id']}/memories"
    added = owner.post(memories, {"text": "The harbour opens at six."}).json()
    change = {"ids": [added["id"]], "reason": "asked"}
    assert operator.post(f"{memories}/archive", change).json() == {"changed": 1}

    assert operator.post(f"{memories}/purge", change).status_code == 403
    purged = owner.post(f"{memories}/purge", change)

    assert (purged.status_code, purged.json()) == (200, {"changed": 1, "saved_seeds": []})
    assert owner.get(f"{memories}/{added['id']}").status_code == 404


def test_expired_buffer_items_are_not_listed(owner: Caller, tenant: Tenant, vega: dict[str, Any]) -> None:
    with tenant_transaction(tenant.id):
        agent = Agent.objects.get(id=vega["id"])
        item = BufferItemFactory(agent=agent)
        BufferItemFactory(agent=agent, expires_at=minutes_ago(1))
    listed = owner.get(f"/agents/{vega['id']}/buffer").json()["items"]
    assert [row["id"] for row in listed] == [str(item.id)]


def test_a_program_restores_memories_for_good(operator: Caller, tenant: Tenant, vega: dict[str, Any]) -> None:
    memories = f"/agents/{vega['id']}/memories"
    added = operator.post(memories, {"text": "The harbour opens at six."}).json()
    change = {"ids": [added["id"]], "reason": "asked"}
    for options in ({}, {"for_good": True}):
        operator.post(f"{memories}/archive", change)
        assert operator.post(f"{memories}/restore", change | options).json() == {"changed": 1}
        with tenant_transaction(tenant.id):
            is_permanent = Memory.objects.filter(id=added["id"], retention=Retention.PERMANENT).exists()
        assert is_permanent == bool(options)
