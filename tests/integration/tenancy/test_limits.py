"""Limits on a tenant's rows under concurrent additions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from apps.contacts.models import Hook
from apps.contacts.services import hooks
from apps.contacts.services.hooks import NewHook, create_hook
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from apps.tools.models import ToolServer
from apps.tools.services import servers
from apps.tools.services.servers import add_server
from arbor.errors import LimitReached
from tests.factories.agents import AgentFactory
from tests.support.threads import start_blocked


def add_at_once(tenant: Tenant, add: Callable[[str], object]) -> None:
    """Add a row, and another one in a second transaction before the first one ends; the second is refused."""

    def add_second() -> None:
        with pytest.raises(LimitReached), tenant_transaction(tenant.id):
            add("two")

    with tenant_transaction(tenant.id):
        add("one")
        start_blocked(add_second)


def test_two_tool_servers_at_once_keep_the_limit(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "MAX_SERVERS", 1)
    add_at_once(tenant, lambda name: add_server(name=name, url="https://example.org/mcp", actor="test"))
    with tenant_transaction(tenant.id):
        assert ToolServer.objects.count() == 1


def test_two_hooks_at_once_keep_the_limit(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "MAX_HOOKS", 1)
    with tenant_transaction(tenant.id):
        agent = AgentFactory()
    add_at_once(tenant, lambda name: create_hook(NewHook(name=name, agent_id=agent.id), actor="test"))
    with tenant_transaction(tenant.id):
        assert Hook.objects.count() == 1
