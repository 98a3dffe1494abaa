"""An agent with rows in every section of a seed."""

from __future__ import annotations

import io
from collections.abc import Callable
from uuid import UUID

import pytest

from apps.fleet.seeds.capture import CaptureOptions
from apps.fleet.seeds.exporting import export_seed
from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from tests.support.console import World
from tests.support.console_rows import make_world

type Export = Callable[[UUID], io.BytesIO]


@pytest.fixture
def world(tenant: Tenant) -> World:
    """Return a tenant with an agent that has rows of every kind, and no heartbeat under way."""
    world = make_world(tenant)
    with tenant_transaction(tenant.id):
        Heartbeat.objects.filter(status=HeartbeatStatus.WAITING).update(status=HeartbeatStatus.FAILED)
    return world


@pytest.fixture
def export(tenant: Tenant) -> Export:
    """Return a function that exports an agent of the tenant."""

    def export_agent(agent_id: UUID) -> io.BytesIO:
        file = io.BytesIO()
        options = CaptureOptions(reason="test")
        export_seed(tenant_id=tenant.id, agent_id=agent_id, output=file, options=options, actor="cli:ann")
        return file

    return export_agent
