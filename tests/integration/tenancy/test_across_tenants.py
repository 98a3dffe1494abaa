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
from tests.integration.tenancy.conftest import Home

REASON = "looking for a stuck agent"


def view() -> list[str]:
    with across_tenants(actor="user:root", reason=REASON):
        return [memory.content for memory in Memory.objects.order_by("content")]


def test_a_view_of_all_tenants_sees_all_tenants(ours: Home, theirs: Home) -> None:
    assert view() == ["the secret of acme", "the secret of globex"]


def test_a_view_of_all_tenants_is_recorded(ours: Home) -> None:
    view()
    event = PlatformEvent.objects.using(OPS).get()
    assert (event.action, event.actor, event.message) == (
        AuditAction.CROSS_TENANT_VIEW,
        "user:root",
        REASON,
    )


def test_the_record_of_a_view_stays_when_the_view_fails(ours: Home) -> None:
    with pytest.raises(ZeroDivisionError), across_tenants(actor="user:root", reason=REASON):
        _ = 1 / 0
    assert PlatformEvent.objects.using(OPS).count() == 1
    with pytest.raises(TenantRequired):
        Memory.objects.count()


def test_a_view_of_all_tenants_is_no_part_of_a_tenants_work(ours: Home) -> None:
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
def test_the_operations_role_cannot_write_what_belongs_to_tenants(ours: Home, model: type[Memory]) -> None:
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


def test_the_operations_role_cannot_read_keys(ours: Home) -> None:
    with (
        pytest.raises(ProgrammingError, match="permission denied"),
        connections[OPS].cursor() as cursor,
    ):
        cursor.execute("SELECT * FROM agents_agentkey")


@pytest.mark.parametrize("alias", [APP, OPS])
@pytest.mark.parametrize("verb", ["UPDATE audit_auditevent SET message = ''", "DELETE FROM audit_auditevent"])
def test_the_record_of_acts_is_never_changed(ours: Home, alias: str, verb: str) -> None:
    with tenant_transaction(ours.id):
        record(action=AuditAction.OPERATOR_ACT, actor="user:root", message="looked")
    with (
        pytest.raises(ProgrammingError, match="permission denied"),
        tenant_transaction(ours.id),
        connections[alias].cursor() as cursor,
    ):
        cursor.execute(verb)
    with tenant_transaction(ours.id):
        assert AuditEvent.objects.get().message == "looked"


@pytest.mark.parametrize(
    "verb", ["UPDATE audit_platformevent SET message = ''", "DELETE FROM audit_platformevent"]
)
def test_the_record_of_views_is_never_changed(ours: Home, verb: str) -> None:
    view()
    with pytest.raises(ProgrammingError, match="permission denied"), connections[OPS].cursor() as cursor:
        cursor.execute(verb)


def test_acts_through_the_orm_are_not_changed_either(ours: Home) -> None:
    with tenant_transaction(ours.id):
        record(action=AuditAction.OPERATOR_ACT, actor="user:root", message="looked")
    for attempt in (
        lambda: AuditEvent.objects.update(message=""),
        lambda: AuditEvent.objects.all().delete(),
    ):
        with pytest.raises(ProgrammingError, match="permission denied"), tenant_transaction(ours.id):
            attempt()


def test_a_ledger_entry_is_never_changed(ours: Home) -> None:
    with tenant_transaction(ours.id):
        LedgerEntryFactory(call__heartbeat__agent=ours.agent)
    with pytest.raises(ProgrammingError, match="permission denied"), tenant_transaction(ours.id):
        LedgerEntry.objects.update(cost_usd=0)


def test_acts_of_one_tenant_are_not_seen_by_another(ours: Home, theirs: Home) -> None:
    with tenant_transaction(ours.id):
        record(action=AuditAction.OPERATOR_ACT, actor="user:root", message="looked")
    with tenant_transaction(theirs.id):
        assert not AuditEvent.objects.exists()
