"""Pages that update by themselves: only their changing parts, in few statements, without use of the session."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from apps.console.live import BUSY_REFRESH_S, ENDED, REFRESH_S
from apps.heartbeats.models import Heartbeat
from apps.tenants.models import ConsoleSession
from apps.tenants.scope import tenant_transaction
from tests.factories.heartbeats import HeartbeatFactory, ProcessFactory
from tests.support.console import World, page_of

LIVE = {"X-Live": "1"}


@pytest.fixture
def open_heartbeat(world: World) -> Heartbeat:
    with tenant_transaction(world.tenant.id):
        return Heartbeat.objects.get(agent=world.agent, status="waiting")


def test_an_update_has_only_the_changing_parts(
    viewer: Client, world: World, open_heartbeat: Heartbeat
) -> None:
    for address, part, words in (
        (reverse("admin:index"), "fleet", "Heartbeats by hour"),
        (world.agent_page, "overview", "Next heartbeat"),
        (world.agent_page, "heartbeats", "What it did"),
        (reverse("admin:operations"), "operations", "Queues"),
        (reverse("admin:heartbeats_heartbeat_changelist"), "rows", "result_list"),
        (page_of(open_heartbeat), "heartbeat", "heartbeat-facts"),
        (reverse("admin:signals"), "signals", "signal-rows"),
    ):
        whole = viewer.get(address).content.decode()
        assert f'data-part="{part}"' in whole, address
        assert 'data-live="' in whole, address
        response = viewer.get(address, headers=LIVE)
        text = response.content.decode()
        assert f'data-part="{part}"' in text, address
        assert words in text, address
        assert "<html" not in text, address
        assert ENDED not in response, address


# The statements of the session, of the user and of the tenant's transaction are counted, too.
@pytest.mark.parametrize(
    ("page", "statements"),
    [
        ("admin:index", 22),
        ("agent", 14),
        ("admin:operations", 14),
        ("heartbeat", 17),
        ("admin:heartbeats_heartbeat_changelist", 9),
        ("admin:signals", 10),
    ],
)
def test_an_update_takes_few_statements(
    viewer: Client, world: World, open_heartbeat: Heartbeat, page: str, statements: int
) -> None:
    own = {"agent": world.agent_page, "heartbeat": page_of(open_heartbeat)}
    address = own.get(page) or reverse(page)
    with CaptureQueriesContext(connection) as few:
        viewer.get(address, headers=LIVE)
    with CaptureQueriesContext(connection) as whole:
        viewer.get(address)
    with tenant_transaction(world.tenant.id):
        for _ in range(5):
            HeartbeatFactory(agent=world.agent)
            ProcessFactory()
    with CaptureQueriesContext(connection) as many:
        viewer.get(address, headers=LIVE)
    assert len(many) == len(few) <= statements
    assert len(few) <= len(whole)


def test_the_page_of_an_ended_heartbeat_stops_its_updates(
    viewer: Client, world: World, open_heartbeat: Heartbeat
) -> None:
    assert f'data-live="{BUSY_REFRESH_S}"' in viewer.get(page_of(open_heartbeat)).content.decode()
    with tenant_transaction(world.tenant.id):
        Heartbeat.objects.filter(id=open_heartbeat.id).update(status="done", ended_at=timezone.now())
    assert ENDED in viewer.get(page_of(open_heartbeat), headers=LIVE)
    assert "data-live=" not in viewer.get(page_of(open_heartbeat)).content.decode()


def test_other_lists_do_not_update(viewer: Client, world: World) -> None:
    address = reverse("admin:memories_memory_changelist")
    assert "data-live=" not in viewer.get(address).content.decode()
    assert "<html" in viewer.get(address, headers=LIVE).content.decode()


def test_the_bar_of_updates_is_hidden_until_a_script_runs(viewer: Client, world: World) -> None:
    text = viewer.get(reverse("admin:index")).content.decode()
    bar = text.partition('id="live"')[2].partition(">")[0]
    assert f'data-live="{REFRESH_S}"' in bar
    assert "hidden" in bar


def test_an_open_page_does_not_prolong_the_session(viewer: Client, world: World, settings: Any) -> None:
    before = timezone.now() - timedelta(minutes=30)
    ConsoleSession.objects.update(seen_at=before)
    assert viewer.get(reverse("admin:index"), headers=LIVE).status_code == 200
    assert ConsoleSession.objects.get().seen_at == before
    assert viewer.get(reverse("admin:index")).status_code == 200
    assert ConsoleSession.objects.get().seen_at > before


def test_an_update_needs_the_rights_of_its_page(
    client: Client, root: Client, world: World, open_heartbeat: Heartbeat
) -> None:
    for address in (reverse("admin:index"), world.agent_page, page_of(open_heartbeat)):
        assert client.get(address, headers=LIVE).status_code == 302
        assert "data-part" not in root.get(address, headers=LIVE).content.decode()
