"""Exports of all lists as CSV and JSON: filtered like the list, in chunks, without secrets."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from apps.console import export
from apps.console.export import MASK
from apps.console.listing import ConsoleAdmin
from apps.contacts.models import Channel
from apps.signals.services.emission import emit
from apps.tenants.scope import tenant_transaction
from arbor.signals import SignalName, signal
from tests.factories.memories import MemoryFactory
from tests.support.console import PLATFORM, World
from tests.support.console_crawls import snapshot


def read_export(client: Client, model: str, kind: str = "json", **filters: str) -> Any:
    response = client.get(reverse(f"admin:{model}_export", args=[kind]), filters)
    assert response.status_code == 200, model
    text = b"".join(response.streaming_content).decode()  # type: ignore[attr-defined]
    return json.loads(text) if kind == "json" else list(csv.reader(io.StringIO(text)))


@pytest.mark.timeout(300)
def test_every_list_is_exported_without_a_secret(chief: Client) -> None:
    before = snapshot()
    filled = 0
    for model, page in admin.site._registry.items():
        if not isinstance(page, ConsoleAdmin):
            continue
        name = f"{model._meta.app_label}_{model._meta.model_name}"
        rows, lines = read_export(chief, name), read_export(chief, name, "csv")
        if model._meta.label != "audit.PlatformEvent" and model._meta.label != "tenants.Tenant":
            assert len(lines) == len(rows) + 1, name
        if rows:
            filled += 1
            assert list(rows[0]) == lines[0], name
            forbidden = {"sealed_private_key", "embedding", "lexical", "tenant_id"}
            assert not forbidden & set(rows[0]), name
            for column in ("password", "sealed_secret"):
                assert all(row.get(column, "") in ("", MASK) for row in rows), name
        assert "Y2lwaGVydGV4dA" not in json.dumps(rows), name
    assert filled > 35
    after = snapshot()
    # Exports are audited.
    for rows_of_tables in (before, after):
        rows_of_tables.pop("audit_platformevent")
    assert after == before


def test_an_export_has_the_filter_and_the_order_of_the_list(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        memory = MemoryFactory(agent=world.agent, type="strategic", content="=1+1")
    rows = read_export(viewer, "memories_memory", type__exact="strategic")
    assert [row["id"] for row in rows] == [str(memory.id)]
    assert rows[0]["content"] == "=1+1"
    assert rows[0]["agent"] == world.agent.name
    names, line = read_export(viewer, "memories_memory", "csv", type__exact="strategic")
    assert line[names.index("content")] == "'=1+1"


def test_an_export_reads_chunks_up_to_a_bound(
    viewer: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tenant_transaction(world.tenant.id):
        for _ in range(7):
            MemoryFactory(agent=world.agent)
    everything = read_export(viewer, "memories_memory")
    monkeypatch.setattr(export, "_CHUNK", 2)
    assert read_export(viewer, "memories_memory") == everything
    monkeypatch.setattr(export, "ROWS_EXPORTED", 4)
    assert read_export(viewer, "memories_memory") == everything[:4]


def test_a_row_added_meanwhile_doubles_no_other(
    viewer: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "_CHUNK", 2)
    with tenant_transaction(world.tenant.id):
        for _ in range(5):
            MemoryFactory(agent=world.agent)
    response = viewer.get(reverse("admin:memories_memory_export", args=["json"]))
    parts = iter(response.streaming_content)  # type: ignore[attr-defined]
    beginning = next(parts)
    with tenant_transaction(world.tenant.id):
        MemoryFactory(agent=world.agent)
    rows = json.loads(b"".join([beginning, *parts]))
    assert len({row["id"] for row in rows}) == len(rows) >= 5


def test_an_export_has_the_permissions_of_the_list(
    viewer: Client, root: Client, world: World, other_world: World
) -> None:
    for label in PLATFORM:
        name = label.lower().replace(".", "_")
        assert viewer.get(reverse(f"admin:{name}_export", args=["csv"])).status_code == 403, label
    assert root.get(reverse("admin:memories_memory_export", args=["csv"])).status_code == 403
    assert str(other_world.agent.id) not in json.dumps(read_export(viewer, "agents_agent"))


def test_the_secret_part_of_an_address_is_not_exported(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        Channel.objects.all().update(
            kind="webhook", target="https://user:hunter2@example.org/in/s3cr3t?key=k"
        )
    text = json.dumps(read_export(viewer, "contacts_channel"))
    assert "example.org" in text
    for secret in ("hunter2", "s3cr3t", "key=k"):
        assert secret not in text


def test_a_row_of_all_agents_is_exported(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        Channel.objects.all().update(agent=None)
    (row,) = read_export(viewer, "contacts_channel")
    assert (row["agent_id"], row["agent"]) == (None, None)


def test_an_invalid_export_is_refused(viewer: Client, world: World) -> None:
    assert viewer.get(reverse("admin:memories_memory_export", args=["xml"])).status_code == 404
    address = reverse("admin:memories_memory_export", args=["csv"])
    assert viewer.get(address, {"content__regex": "a"}).status_code == 400
    assert viewer.get(address, {"type__exact": "\0"}).status_code == 400


def test_a_list_links_its_exports_with_its_filters(viewer: Client, world: World) -> None:
    address = reverse("admin:agents_agent_changelist")
    text = viewer.get(address, {"status__exact": "active"}).content.decode()
    csv_address = reverse("admin:agents_agent_export", args=["csv"])
    assert f'href="{csv_address}?status__exact=active"' in text
    empty = viewer.get(address, {"status__exact": "dormant"}).content.decode()
    assert csv_address not in empty


def test_pages_that_list_other_rows_are_exported_too(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        emit(signal(SignalName.LESSON_EXTRACTED, world.agent.id, action="rest", outcome="success"))
    by_model = {"by": "model", "days": "30", "agent": str(world.agent.id)}
    for page, choice, column, code in (
        ("admin:signals", {"name": SignalName.LESSON_EXTRACTED.value}, "name", 409),
        ("admin:model-usage", by_model, "model", 404),
    ):
        shown = viewer.get(reverse(page), choice).content.decode()
        assert "export=csv" in shown
        assert "export=json" in shown
        texts = {}
        for kind in ("csv", "json"):
            response = viewer.get(reverse(page), {**choice, "export": kind})
            assert f".{kind}" in response["Content-Disposition"]
            texts[kind] = b"".join(response.streaming_content).decode()  # type: ignore[attr-defined]
        rows = json.loads(texts["json"])
        lines = list(csv.DictReader(io.StringIO(texts["csv"])))
        assert [row[column] for row in rows] == [line[column] for line in lines] != []
        assert viewer.get(reverse(page), {"export": "xml"}).status_code == 404
        refused = viewer.get(reverse(page), {"export": "csv", "agent": "Nobody"})
        assert refused.status_code == code
        assert "There is no " in refused.content.decode()
