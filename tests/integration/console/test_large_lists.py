"""Lists of large tenants: rows are read by an index, filters read the latest rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from django.db import connections
from django.db.models import QuerySet
from django.template.loader import render_to_string
from django.test import Client, override_settings
from django.urls import reverse

from apps.access.services import create_token
from apps.agents.models import Percept
from apps.api.paging import after_cursor, cursor_of
from apps.authority.services.modes import set_preset
from apps.calls.models import CallStatus, ExternalCall, LedgerEntry
from apps.console import paging, windows
from apps.console.pages import fleet, ledger
from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.tenants.models import Role
from apps.tenants.scope import APP, tenant_transaction
from arbor.authority.modes import TrustPreset
from bench.support.copies import Copier, Copy
from config.servers.postgres import EmbeddedPostgres
from tests.factories.agents import AgentFactory
from tests.support.api import API_SETTINGS
from tests.support.console import World

#: The tables of these lists.
LARGE = ("calls_externalcall", "calls_ledgerentry", "heartbeats_heartbeat", "heartbeats_percept")
#: The rows that pages filter, count and sample at most, and the number of copies of the world's rows.
LIMIT, COPIES = 20, 120


@pytest.fixture
def large_world(world: World, postgres: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Return a tenant with many copies of its rows, and pages with low limits."""
    for module, name in (
        (windows, "ROWS_FILTERED"),
        (paging, "ROWS_COUNTED"),
        (fleet, "SAMPLE"),
        (ledger, "SAMPLE"),
    ):
        monkeypatch.setattr(module, name, LIMIT)
    with psycopg.connect(postgres.superuser_url, autocommit=True) as session:
        copier = Copier(session, tenant_id=world.tenant.id, bounds=[datetime(2020, 1, 1, tzinfo=UTC)])
        copies = [Copy(number=number, tenant_id=world.tenant.id, remembers=True) for number in range(COPIES)]
        copier.copy(copies)
        copier.lengthen(world.agent.id, copies[0], COPIES)
        world.agent.id = copier.copied_id(world.agent.id, copies[0])
        session.execute(f"ANALYZE {', '.join(LARGE)}")
        yield world


def test_a_filtered_list_by_name_begins_with_the_first(
    viewer: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "ROWS_FILTERED", 1)
    with tenant_transaction(world.tenant.id):
        for name in ("AAA", "Zoe"):
            set_preset(agent_id=AgentFactory(name=name).id, preset=TrustPreset.FULL_TRUST, actor="cli:ann")
    lists = viewer.get(
        reverse("admin:authority_agenttrust_changelist"), {"preset__exact": TrustPreset.FULL_TRUST}
    )
    assert [row.agent.name for row in lists.context["cl"].result_list] == ["AAA"]


def test_long_lists_are_read_by_their_indexes(large_world: World) -> None:
    with tenant_transaction(large_world.tenant.id):
        calls = ExternalCall.objects.order_by("-id")
        agent_id = large_world.agent.id
        of_agent = Heartbeat.objects.filter(agent_id=agent_id).order_by("-started_at", "-id")
        last = of_agent[20]
        lists: dict[str, QuerySet[Any]] = {
            "calls_by_agent": calls.filter(agent_id=agent_id),
            "calls_failed": calls.filter(status=CallStatus.FAILED).exclude(error_kind=""),
            "calls_ledger_by_agent": LedgerEntry.objects.filter(agent_id=agent_id).order_by("-at", "-id"),
            "heartbeats_not_done": Heartbeat.objects.filter(status=HeartbeatStatus.FAILED).order_by(
                "-started_at"
            ),
            "heartbeats_percept_of_agent": Percept.objects.filter(agent_id=agent_id).order_by("-at"),
            "heartbeats_by_agent": of_agent.filter(
                after_cursor("started_at", cursor_of(last, "started_at"), descending=True)
            ),
        }
        plans = {name: _plan(rows[:50]) for name, rows in lists.items()}
    assert {name: name in plan for name, plan in plans.items()} == dict.fromkeys(lists, True), plans
    # A page after a cursor begins in the index where the one before ended.
    assert re.search(r"Index Cond: .*started_at <= ", plans["heartbeats_by_agent"])


def test_the_next_page_begins_at_the_cursor(large_world: World) -> None:
    with tenant_transaction(large_world.tenant.id):
        token = create_token(name="program", role=Role.OWNER, actor="test").text
    program = Client(headers={"Authorization": f"Bearer {token}"})
    path, ids = f"/api/v1/agents/{large_world.agent.id}/heartbeats?limit=15", list[str]()
    cursor: str | None = ""
    with override_settings(**API_SETTINGS):
        while cursor is not None:
            page = program.get(f"{path}&cursor={cursor}").json()
            ids += [item["id"] for item in page["items"]]
            cursor = page["next_cursor"]
    assert len(ids) == len(set(ids)) > 2 * COPIES


def test_filters_read_the_latest_rows(
    large_world: World, operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = reverse("admin:heartbeats_heartbeat_changelist")
    everything = operator.get(path)
    assert everything.context["cl"].rows_filtered == 0
    by_trigger = operator.get(path, {"trigger__exact": large_world.heartbeat.trigger})
    assert by_trigger.context["cl"].result_count <= LIMIT
    assert f"of the latest {LIMIT}; filter by agent" in by_trigger.content.decode()
    # Audit events cannot be filtered by agent.
    monkeypatch.setattr(windows, "ROWS_FILTERED", 1)
    by_level = operator.get(reverse("admin:audit_auditevent_changelist"), {"level__exact": "info"})
    assert "of the latest 1</span>" in by_level.content.decode()
    of_agent = operator.get(
        path, {"trigger__exact": large_world.heartbeat.trigger, "agent__id__exact": str(large_world.agent.id)}
    )
    assert of_agent.context["cl"].rows_filtered == 0
    assert of_agent.context["cl"].paginator.has_more


def test_figures_and_exports_say_that_there_is_more(large_world: World, operator: Client) -> None:
    with tenant_transaction(large_world.tenant.id):
        page = replace(
            fleet.read_fleet(), calls=LIMIT, cost=Decimal(2), sampled=True, due=LIMIT, under_way=LIMIT
        )
    cards = render_to_string("console/parts/fleet_cards.html", {"fleet": page})
    for text in (f"the newest {LIMIT} calls", "$2.00+", "0+ <small>done", f"{LIMIT}+ <small>{LIMIT}+ under"):
        assert text in cards
    memories = operator.get(reverse("admin:memories_memory_changelist")).content.decode()
    assert "Export of at most 10,000<" in memories


def test_an_old_failure_is_found(large_world: World, operator: Client) -> None:
    with tenant_transaction(large_world.tenant.id):
        heartbeat = Heartbeat.objects.order_by("started_at").first()
        call = ExternalCall.objects.order_by("id").first()
        assert heartbeat is not None
        assert call is not None
        Heartbeat.objects.filter(id=heartbeat.id).update(status=HeartbeatStatus.FAILED, reason="by the test")
        ExternalCall.objects.filter(id=call.id).update(
            status=CallStatus.FAILED, error_kind="ModelError", error="by the test"
        )
    for model, row_id in (("heartbeats_heartbeat", heartbeat.id), ("calls_externalcall", call.id)):
        found = operator.get(reverse(f"admin:{model}_changelist"), {"status__exact": "failed"})
        assert row_id in {row.pk for row in found.context["cl"].result_list}


def test_agents_are_sorted_by_name_only(large_world: World, operator: Client) -> None:
    # The column *heartbeats* has the name of a relation, by which Django would sort, with a row for each heartbeat.
    path = reverse("admin:agents_agent_changelist")
    by_name, by_heartbeats = (
        [agent.id for agent in operator.get(path, query).context["cl"].result_list]
        for query in ({}, {"o": "5"})
    )
    assert by_heartbeats == by_name
    assert len(set(by_name)) == len(by_name)


def _plan(rows: QuerySet[Any]) -> str:
    """Return the plan of a query that reads its rows in order."""
    with connections[APP].cursor() as cursor:
        for setting in ("enable_seqscan", "enable_sort", "enable_bitmapscan"):
            cursor.execute(f"SET LOCAL {setting} = off")
    return str(rows.explain())
