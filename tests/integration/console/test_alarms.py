"""The alarms about a fleet."""

from __future__ import annotations

import pytest
from django.utils import timezone

from apps.console.alarms import alarms_of
from apps.console.pages.fleet import SAMPLE, FleetPage, read_fleet
from apps.contacts.services.outbox import MAX_COUNTED
from apps.heartbeats.models import Process
from apps.tenants.scope import tenant_transaction
from arbor.values import replace
from tests.factories.heartbeats import ProcessFactory
from tests.support.console import World


@pytest.fixture
def fleet(world: World) -> FleetPage:
    with tenant_transaction(world.tenant.id):
        return read_fleet()


def alarm_texts(fleet: FleetPage) -> list[str]:
    return [f"{alarm.title}. {alarm.text}" for alarm in alarms_of(fleet, now=timezone.now())]


def test_a_worker_after_many_processes_is_seen(world: World) -> None:
    Process.objects.all().delete()
    Process.objects.bulk_create(ProcessFactory.build(kind="api", queues="") for _ in range(201))
    ProcessFactory(kind="worker", name="host:1")
    with tenant_transaction(world.tenant.id):
        fleet = read_fleet()
    assert len(fleet.processes) == 202
    assert not any("No worker" in text for text in alarm_texts(fleet))


@pytest.mark.parametrize(
    ("sampled", "when"),
    [(False, "In the last 24 hours."), (True, "Of the newest 20,000 in the last 24 hours.")],
)
def test_an_alarm_of_failures_says_whether_they_are_a_sample(
    fleet: FleetPage, sampled: bool, when: str
) -> None:
    heartbeats = {"done": 18_000, "failed": 2_000}
    texts = alarm_texts(replace(fleet, heartbeats=heartbeats, sampled=sampled))

    assert any(text.startswith(f"2,000 of 20,000 heartbeats failed. {when}") for text in texts)


@pytest.mark.parametrize(("failed", "alarmed"), [(5, True), (4, False)])
def test_a_twentieth_of_failed_heartbeats_is_an_alarm(fleet: FleetPage, failed: int, alarmed: bool) -> None:
    heartbeats = {"done": 100 - failed, "failed": failed}
    texts = alarm_texts(replace(fleet, heartbeats=heartbeats, sampled=False))

    assert any("heartbeats failed" in text for text in texts) is alarmed


@pytest.mark.parametrize(("below", "more"), [(0, " or more"), (1, "")])
def test_counts_that_stopped_at_their_limit_say_so(fleet: FleetPage, below: int, more: str) -> None:
    count = SAMPLE - below
    outbox = replace(fleet.outbox, failed=MAX_COUNTED - below)
    texts = "\n".join(
        alarm_texts(
            replace(fleet, suspended_tools=count, undecided=count, low_budget=count, halted=7, outbox=outbox)
        )
    )

    assert f"{MAX_COUNTED - below:,}{more} messages of agents" in texts
    assert f"{count:,}{more} tools are suspended" in texts
    assert f"{count:,}{more} requests for approval" in texts
    assert f"budget of {count:,}{more} agents runs low" in texts
    assert f"and 7{more} of them nothing until tomorrow" in texts
