"""The figures of the installation while a tenant is suspended."""

from __future__ import annotations

from apps.fleet.administration import resume_tenant, suspend_tenant
from apps.heartbeats.services.reports.status import FleetStatus, fleet_status
from apps.memories.models import Upkeep
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.ids import uuid7
from arbor.memory.maintenance.health import Metric
from tests.factories.agents import AgentFactory
from tests.factories.contacts import OutboxMessageFactory
from tests.factories.heartbeats import ExternalCallFactory, ScheduleFactory
from tests.factories.memories import EpisodeFactory, MemoryFactory
from tests.factories.rows import minutes_ago


def waiting(status: FleetStatus) -> list[object]:
    """Return the figures that raise an alarm where work waits."""
    heartbeats = status.heartbeats
    figures = status.maintenance["figures"]
    unembedded = figures[Metric.UNEMBEDDED]
    return [
        heartbeats.due,
        heartbeats.oldest_due_s > 0,
        heartbeats.lost_leases,
        status.backlogs["pending_calls"],
        status.outbox["waiting"],
        status.outbox["failed"],
        status.outbox["oldest_due_s"] > 0,
        unembedded["count"],
        unembedded["judged"] > 0,
        figures[Metric.UNSUMMARIZED_EPISODES]["count"],
        figures[Metric.UNEXTRACTED]["count"],
        figures[Metric.UNWEIGHED]["count"],
    ]


def test_suspended_work_raises_no_alarm(tenant: Tenant) -> None:
    with tenant_transaction(tenant.id):
        due, lost = AgentFactory(), AgentFactory()
        ScheduleFactory(agent=due, next_due_at=minutes_ago(10))
        ScheduleFactory(agent=lost, state="running", lease_until=minutes_ago(10))
        ExternalCallFactory(agent=due, heartbeat_id=uuid7(), status="pending")
        for status in ("pending", "failed"):
            OutboxMessageFactory(agent=due, status=status, sent_at=None)
        memory = MemoryFactory(agent=due, embedding=None, embedding_model="", created_at=minutes_ago(10))
        EpisodeFactory(agent=due, ended_at=minutes_ago(10), summarized_at=None)
        Upkeep.objects.update_or_create(
            memory=memory,
            defaults={"agent": due, "tenant_id": tenant.id, "unextracted": True, "unweighed": True},
        )
    expected = [1, True, 1, 1, 1, 1, True, 1, True, 1, 1, 1]
    assert waiting(fleet_status()) == expected
    suspend_tenant(slug=tenant.slug, actor="test")
    assert waiting(fleet_status()) == [0, False, 0, 0, 0, 0, False, 0, False, 0, 0, 0]
    resume_tenant(slug=tenant.slug, actor="test")
    assert waiting(fleet_status()) == expected
