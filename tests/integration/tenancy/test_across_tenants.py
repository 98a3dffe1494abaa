"""Views of all tenants: a role that hardly writes, and an audit record of each view."""

from __future__ import annotations

import pytest
from django.db import ProgrammingError, connections

from apps.agents.models import Agent
from apps.audit.models import AuditAction, AuditEvent, PlatformEvent
from apps.audit.services import across_tenants, record
from apps.calls.models import LedgerEntry
from apps.memories.models import Memory
from apps.tenants.scope import APP, OPS, tenant_transaction
from arbor.errors import TenantMismatch, TenantRequired
from tests.factories.heartbeats import LedgerEntryFactory
from tests.integration.tenancy.conftest import TenantRows

REASON = "looking for a stuck agent"


def read_all_memories() -> list[str]:
    with across_tenants(actor="user:root", reason=REASON):
        return [memory.content for memory in Memory.objects.order_by("content")]


def record_act() -> None:
    record(action=AuditAction.OPERATOR_ACT, actor="user:root", message="looked")


def test_a_view_of_all_tenants_reads_all_tenants(ours: TenantRows, theirs: TenantRows) -> None:
    assert read_all_memories() == ["the secret of acme", "the secret of globex"]


def test_a_view_of_all_tenants_is_recorded(ours: TenantRows) -> None:
    read_all_memories()
    event = PlatformEvent.objects.using(OPS).get()
    assert (event.action, event.actor, event.message) == (
        AuditAction.CROSS_TENANT_VIEW,
        "user:root",
        REASON,
    )


def test_the_record_of_a_view_stays_when_the_view_fails(ours: TenantRows) -> None:
    with pytest.raises(ZeroDivisionError), across_tenants(actor="user:root", reason=REASON):
        _ = 1 / 0
    assert PlatformEvent.objects.using(OPS).count() == 1
    with pytest.raises(TenantRequired):
        Memory.objects.count()


def test_a_view_of_all_tenants_is_refused_inside_a_tenant(ours: TenantRows) -> None:
    with (
        tenant_transaction(ours.id),
        pytest.raises(TenantMismatch),
        across_tenants(actor="user:root", reason=REASON),
    ):
        pass
    with (
        across_tenants(actor="user:root", reason=REASON),
        pytest.raises(TenantMismatch),
        tenant_transaction(ours.id),
    ):
        pass


@pytest.mark.parametrize("model", [Memory, Agent], ids=lambda model: model.__name__)
def test_the_operations_role_cannot_write_rows_of_tenants(ours: TenantRows, model: type[Memory]) -> None:
    for attempt in (
        lambda: model.objects.update(tenant_id=ours.id),
        lambda: model.objects.filter(id=ours.memory.id)._raw_delete(OPS),
        lambda: model.objects.bulk_create([model(tenant_id=ours.id)]),
    ):
        with (
            pytest.raises(ProgrammingError, match="permission denied"),
            across_tenants(actor="user:root", reason=REASON),
        ):
            attempt()


def test_the_operations_role_cannot_read_keys(ours: TenantRows) -> None:
    with (
        pytest.raises(ProgrammingError, match="permission denied"),
        connections[OPS].cursor() as cursor,
    ):
        cursor.execute("SELECT * FROM agents_agentkey")


def execute(alias: str, statement: str) -> None:
    with connections[alias].cursor() as cursor:
        cursor.execute(statement)


@pytest.mark.parametrize(
    ("alias", "statement"),
    [
        (APP, "UPDATE audit_auditevent SET message = ''"),
        (APP, "DELETE FROM audit_auditevent"),
        (OPS, "UPDATE audit_auditevent SET message = ''"),
    ],
)
def test_an_audit_event_is_never_changed(ours: TenantRows, alias: str, statement: str) -> None:
    with tenant_transaction(ours.id):
        record_act()
    with pytest.raises(ProgrammingError, match="permission denied"), tenant_transaction(ours.id):
        execute(alias, statement)
    with tenant_transaction(ours.id):
        assert AuditEvent.objects.get().message == "looked"


def test_a_platform_event_is_never_changed(ours: TenantRows) -> None:
    read_all_memories()
    with pytest.raises(ProgrammingError, match="permission denied"):
        execute(OPS, "UPDATE audit_platformevent SET message = ''")


def test_no_role_deletes_recent_records(ours: TenantRows) -> None:
    read_all_memories()
    with tenant_transaction(ours.id):
        record_act()
        LedgerEntryFactory(call__heartbeat__agent=ours.agent)
    for table in ("audit_auditevent", "audit_platformevent", "calls_ledgerentry"):
        execute(OPS, f"DELETE FROM {table}")
    assert PlatformEvent.objects.using(OPS).exists()
    with tenant_transaction(ours.id):
        assert AuditEvent.objects.exists()
        assert LedgerEntry.objects.exists()


def test_an_audit_event_is_not_changed_through_the_orm(ours: TenantRows) -> None:
    with tenant_transaction(ours.id):
        record_act()
    for attempt in (
        lambda: AuditEvent.objects.update(message=""),
        lambda: AuditEvent.objects.all().delete(),
    ):
        with pytest.raises(ProgrammingError, match="permission denied"), tenant_transaction(ours.id):
            attempt()


def test_a_ledger_entry_is_never_changed(ours: TenantRows) -> None:
    with tenant_transaction(ours.id):
        LedgerEntryFactory(call__heartbeat__agent=ours.agent)
    with pytest.raises(ProgrammingError, match="permission denied"), tenant_transaction(ours.id):
        LedgerEntry.objects.update(cost_usd=0)


def test_audit_events_of_one_tenant_are_not_read_by_another(ours: TenantRows, theirs: TenantRows) -> None:
    with tenant_transaction(ours.id):
        record_act()
    with tenant_transaction(theirs.id):
        assert not AuditEvent.objects.exists()
