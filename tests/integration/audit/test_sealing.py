"""The sealing of committed records and ended heartbeats: once, in the order of their transactions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
from django.db import connections, transaction

from apps.agents.models import Agent
from apps.agents.services.authority import authority_public_keys
from apps.audit.models import AuditAction, AuditEvent, AuditSeal
from apps.audit.services.chains import AuditChain
from apps.audit.services.export import export_audit
from apps.audit.services.positions import continue_audit_positions, functions_from
from apps.audit.services.sealing import EndedHeartbeats, add_seal
from apps.audit.services.search import AuditFilter
from apps.audit.services.verification import verify_chain
from apps.fleet.audit_seals import seal_tenant, verify_audit
from apps.fleet.history import RETAINED_HEARTBEATS, sweep_history
from apps.fleet.lifecycle import destroy_agent
from apps.heartbeats.services.reports.digests import digest_heartbeats
from apps.tenants.models import Tenant
from apps.tenants.scope import APP, OPS, OWNER, tenant_transaction
from arbor.agents.keys import SigningKey
from arbor.audit.chain import NO_SEAL
from arbor.audit.faults import FaultKind, RowKind
from arbor.history import Record
from arbor.ids import uuid7
from tests.factories.heartbeats import HeartbeatFactory
from tests.integration.audit.conftest import (
    first_fault,
    record_acts,
    record_platform_act,
    seal,
    verify_tenant,
)
from tests.integration.heartbeats.conftest import REST, run_heartbeat

LONG_AGO = datetime.now(UTC) - timedelta(days=1200)


def test_rows_behind_an_open_transaction_wait_for_a_seal(
    tenant: Tenant, superuser: psycopg.Connection[Any]
) -> None:
    record_acts(tenant, "first")
    seal()
    with psycopg.connect(superuser.info.dsn, password=superuser.info.password) as slow:
        slow.execute("SELECT pg_current_xact_id()")
        record_acts(tenant, "second")
        assert seal() == 0
        assert verify_tenant(tenant).unsealed_events == 1
        slow.commit()
    assert seal() >= 1
    report = verify_tenant(tenant)
    assert (report.unsealed_events, report.fault_count) == (0, 0)


def test_an_export_leaves_no_gap_that_a_later_commit_fills(
    tenant: Tenant, superuser: psycopg.Connection[Any]
) -> None:
    def exported() -> list[str]:
        lines = "".join(export_audit(tenant.id, wanted=AuditFilter(), actor="user:nora")).splitlines()
        return [json.loads(line)["message"] for line in lines]

    record_acts(tenant, "first")
    with psycopg.connect(superuser.info.dsn, password=superuser.info.password) as slow:
        slow.execute(
            "INSERT INTO audit_auditevent (tenant_id, id, at, action, actor, message, detail)"
            " VALUES (%s, %s, now(), 'denied', 'user:slow', 'slow', '{}')",
            [tenant.id, uuid7()],
        )
        record_acts(tenant, "second")
        assert exported() == ["first"]
        slow.commit()
    assert exported() == ["first", "slow", "second", "exported the audit log", "exported the audit log"]


def test_a_row_is_sealed_once(tenant: Tenant) -> None:
    record_acts(tenant, "only")
    assert seal() >= 1
    assert seal() == 0
    with tenant_transaction(tenant.id):
        assert AuditSeal.objects.count() == 1
        assert bytes(AuditSeal.objects.get().previous) == NO_SEAL


def test_a_chain_that_another_process_seals_is_skipped(tenant: Tenant, system_key: SigningKey) -> None:
    record_acts(tenant, "only")
    with transaction.atomic(using=OWNER), connections[OWNER].cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtext('arbor.audit.seal'), hashtext(%s))", [str(tenant.id)]
        )
        assert seal_tenant(tenant.id, signer=system_key, now=datetime.now(UTC)) == 0
    assert seal_tenant(tenant.id, signer=system_key, now=datetime.now(UTC)) == 1


def test_each_ended_heartbeat_joins_the_chain(
    agent: Agent, tenant: Tenant, fleet: Any, scripted: Callable[..., Any], superuser: psycopg.Connection[Any]
) -> None:
    scripted(REST, repeat=True)
    heartbeat = run_heartbeat(fleet, agent)
    assert verify_tenant(tenant).unsealed_heartbeats == 1
    seal()
    report = verify_tenant(tenant)
    assert (report.heartbeats, report.unsealed_heartbeats, report.fault_count) == (1, 0, 0)
    head = AuditChain(tenant_id=tenant.id).head()
    assert head is not None
    assert head.header.cursor
    superuser.execute("UPDATE heartbeats_heartbeat SET narrative = 'all was well'")
    fault = first_fault(tenant)
    assert (fault.kind, fault.row, fault.id) == (FaultKind.ROW_CHANGED, RowKind.HEARTBEAT, heartbeat.id)
    superuser.execute("DELETE FROM heartbeats_heartbeat")
    assert first_fault(tenant).kind is FaultKind.ROW_MISSING


def test_a_forged_heartbeat_is_found(agent: Agent, tenant: Tenant) -> None:
    now = datetime.now(UTC)
    record_acts(tenant, "first")
    seal(now - timedelta(hours=2))
    with tenant_transaction(tenant.id):
        started = now - timedelta(hours=1)
        forged = HeartbeatFactory(agent=agent, slot_at=started, started_at=started, ended_at=started)
        HeartbeatFactory(agent=agent, slot_at=now, started_at=now, ended_at=now)
    record_acts(tenant, "second")
    seal(now)
    fault = first_fault(tenant)
    assert (fault.kind, fault.row, fault.id) == (FaultKind.ROW_ADDED, RowKind.HEARTBEAT, forged.id)
    assert verify_tenant(tenant).fault_count == 1


def test_the_heartbeats_of_a_destroyed_agent_are_explained(
    agent: Agent, tenant: Tenant, fleet: Any, scripted: Callable[..., Any]
) -> None:
    scripted(REST, repeat=True)
    run_heartbeat(fleet, agent)
    seal()
    with tenant_transaction(tenant.id):
        destroy_agent(agent_id=agent.id, confirm=agent.name, actor="cli:nora", saves_seed=False)
    seal()
    report = verify_tenant(tenant)
    assert (report.heartbeats, report.aged, report.fault_count) == (0, 1, 0)


def test_a_destruction_moved_below_an_older_seal_explains_nothing(
    agent: Agent, tenant: Tenant, fleet: Any, scripted: Callable[..., Any], superuser: psycopg.Connection[Any]
) -> None:
    scripted(REST, repeat=True)
    heartbeat = run_heartbeat(fleet, agent)
    seal()
    superuser.execute("DELETE FROM heartbeats_heartbeat")
    head = AuditChain(tenant_id=tenant.id).head()
    assert head is not None
    with tenant_transaction(tenant.id):
        AuditEvent.objects.create(
            tenant_id=tenant.id, action=AuditAction.AGENT_DESTROYED, actor="x", message="x", agent_id=agent.id
        )
    assert verify_tenant(tenant).aged_unsealed == 1
    # Moved below a seal that is older than the record, the record explains nothing.
    superuser.execute(
        "UPDATE audit_auditevent SET position = %s WHERE message = 'x'", [head.header.position - 1]
    )
    report = verify_tenant(tenant)
    assert (FaultKind.ROW_MISSING, heartbeat.id) in {(fault.kind, fault.id) for fault in report.faults}
    assert report.aged == 0


def test_a_deletion_during_a_verification_is_no_fault(
    agent: Agent, tenant: Tenant, fleet: Any, scripted: Callable[..., Any]
) -> None:
    scripted(REST, repeat=True)
    run_heartbeat(fleet, agent)
    seal()

    def destroy_before_reading(tenant_id: UUID, ids: Sequence[UUID]) -> Mapping[UUID, bytes]:
        with tenant_transaction(tenant_id):
            if Agent.objects.filter(id=agent.id).exists():
                destroy_agent(agent_id=agent.id, confirm=agent.name, actor="cli:nora", saves_seed=False)
        return {}

    report = verify_chain(
        AuditChain(tenant_id=tenant.id),
        keys=authority_public_keys(),
        heartbeat_digests=destroy_before_reading,
        now=datetime.now(UTC),
    )
    assert (report.fault_count, report.aged, report.aged_unsealed) == (0, 1, 1)


def test_recorded_deletions_explain_heartbeats_current_ages_do_not(
    agent: Agent, tenant: Tenant, settings: Any, system_key: SigningKey, superuser: psycopg.Connection[Any]
) -> None:
    ages = settings.ARBOR_HISTORY_AGES
    old, young = _store_old_heartbeats(agent, 20, 2), _store_old_heartbeats(agent, 5, RETAINED_HEARTBEATS)
    with tenant_transaction(tenant.id):
        ended = EndedHeartbeats(rows=list(digest_heartbeats([*old, *young]).values()))
    chain = AuditChain(tenant_id=tenant.id)
    add_seal(chain, after=chain.head(), heartbeats=ended, signer=system_key, now=datetime.now(UTC))
    settings.ARBOR_HISTORY_AGES = ages | {Record.HEARTBEATS: timedelta(days=10)}
    assert sweep_history().done == len(old)
    assert sweep_history().done == 0
    seal()
    with tenant_transaction(tenant.id):
        # All steps up to a day have one record.
        assert AuditEvent.objects.get(action=AuditAction.AUDIT_DELETED).detail["rows"] == "heartbeats"
    settings.ARBOR_HISTORY_AGES = ages | {Record.HEARTBEATS: None}
    report = verify_tenant(tenant)
    assert (report.aged, report.fault_count) == (len(old), 0)
    superuser.execute("DELETE FROM heartbeats_heartbeat WHERE id = %s", [young[0]])
    settings.ARBOR_HISTORY_AGES = ages | {Record.HEARTBEATS: timedelta(days=1)}
    fault = first_fault(tenant)
    assert (fault.kind, fault.id) == (FaultKind.ROW_MISSING, young[0])


def test_records_deleted_by_age_leave_a_chain_that_verifies(
    tenant: Tenant, superuser: psycopg.Connection[Any]
) -> None:
    old = _record_old_acts(tenant, 3, superuser)
    seal(LONG_AGO + timedelta(minutes=10))
    superuser.execute("UPDATE audit_sealedblock SET at = now()")  # the digests are as young as the test
    record_acts(tenant, "young")
    seal()
    assert verify_tenant(tenant).events == 4
    assert sweep_history().done >= 3
    seal()
    report = verify_tenant(tenant)
    assert (report.aged, report.fault_count) == (3, 0)
    # A young record is not explained by a deletion by age.
    superuser.execute("DELETE FROM audit_auditevent WHERE message = 'young'")
    fault = first_fault(tenant)
    assert fault.kind is FaultKind.ROW_MISSING
    assert fault.id not in old


def test_digests_deleted_by_age_leave_their_seals(tenant: Tenant, superuser: psycopg.Connection[Any]) -> None:
    _record_old_acts(tenant, 2, superuser)
    seal(LONG_AGO + timedelta(minutes=10))
    sweep_history()
    seal()
    report = verify_tenant(tenant)
    assert (report.seals, report.aged, report.fault_count) == (2, 2, 0)
    with transaction.atomic(using=OPS):
        assert AuditChain(tenant_id=tenant.id).blocks().count() == 1


def _id_of(at: datetime) -> UUID:
    """Return an id that was generated at a time."""
    return UUID(int=(int(at.timestamp() * 1000) << 80) | (uuid7().int & (2**80 - 1)))


def _store_old_heartbeats(agent: Agent, days: int, count: int) -> list[UUID]:
    """Store heartbeats that ended some days ago, with ids of their time; return the ids."""
    ids = []
    with tenant_transaction(agent.tenant_id):
        for number in range(count):
            at = datetime.now(UTC) - timedelta(days=days, minutes=-number)
            heartbeat = HeartbeatFactory(id=_id_of(at), agent=agent, slot_at=at, started_at=at, ended_at=at)
            ids.append(heartbeat.id)
    return ids


def _record_old_acts(tenant: Tenant, count: int, superuser: psycopg.Connection[Any]) -> list[UUID]:
    """Record acts of long ago, with ids of their time; return the ids."""
    times = [LONG_AGO + timedelta(minutes=number) for number in range(count)]
    with tenant_transaction(tenant.id):
        rows = AuditEvent.objects.bulk_create(
            AuditEvent(
                id=_id_of(at),
                tenant_id=tenant.id,
                action=AuditAction.OPERATOR_ACT,
                actor="user:nora",
                message=f"old {number}",
            )
            for number, at in enumerate(times)
        )
    for at, row in zip(times, rows, strict=True):
        superuser.execute("UPDATE audit_auditevent SET at = %s WHERE id = %s", [at, row.id])
    return [row.id for row in rows]


def test_positions_continue_after_the_sealed_records(superuser: psycopg.Connection[Any]) -> None:
    superuser.execute(functions_from(10_000_000))
    record_platform_act("before")
    seal()
    superuser.execute(functions_from(0))
    superuser.execute("DELETE FROM audit_platformevent")
    try:
        assert continue_audit_positions()
        assert not continue_audit_positions()
    finally:
        superuser.execute(functions_from(0))
        superuser.execute("DELETE FROM audit_platformblock; DELETE FROM audit_platformseal")


def test_positions_continue_after_a_restore(tenant: Tenant, superuser: psycopg.Connection[Any]) -> None:
    superuser.execute(functions_from(10_000_000))
    record_acts(tenant, "before")
    seal()
    superuser.execute(functions_from(0))
    try:
        assert continue_audit_positions()
        record_acts(tenant, "after")
        record_platform_act("after")
        seal()
        assert not continue_audit_positions()
        assert verify_tenant(tenant).fault_count == verify_audit(AuditChain()).fault_count == 0
        assert verify_tenant(tenant).unsealed_events == 0
    finally:
        superuser.execute(functions_from(0))


def test_sealing_costs_few_statements(
    tenant: Tenant, system_key: SigningKey, django_assert_max_num_queries: Any
) -> None:
    record_acts(tenant, *(f"act {number}" for number in range(20)))
    with (
        django_assert_max_num_queries(8, connection=connections[OPS]),
        django_assert_max_num_queries(3, connection=connections[APP]),
    ):
        assert seal_tenant(tenant.id, signer=system_key, now=datetime.now(UTC)) == 20
