"""Changes of the sealed log: those by a superuser are found, and serving roles cannot make any."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.db import Error, connections, transaction
from structlog.testing import capture_logs

from apps.agents.services.authority import ensure_system_authority
from apps.audit.services.chains import AuditChain
from apps.audit.services.verification import ChainReport
from apps.fleet.audit_seals import seal_tenant, verify_audit
from apps.fleet.authority_rotation import retire_authority, rotate_authority
from apps.tenants.models import Tenant
from apps.tenants.scope import OPS, tenant_transaction
from arbor.agents.identity import generate_key_pair, sign
from arbor.agents.keys import SigningKey
from arbor.audit.faults import ChainFault, FaultKind
from arbor.clock import FrozenClock
from arbor.errors import TransitionIllegal
from tests.integration.audit.conftest import (
    delete_seal,
    first_fault,
    record_acts,
    record_platform_act,
    seal,
    verify_tenant,
)
from tests.support.threads import in_own_connection

type Superuser = psycopg.Connection[Any]

_EVENTS = "audit_auditevent"


def test_a_chain_that_nobody_touched_verifies(tenant: Tenant, sealed: AuditChain) -> None:
    report = verify_tenant(tenant)
    assert (report.seals, report.events, report.fault_count, report.unsealed_events) == (3, 6, 0, 0)
    assert report.head == sealed.head()
    record_acts(tenant, "act 7")
    assert verify_tenant(tenant).unsealed_events == 1


def test_the_first_fault_is_that_of_the_first_seal() -> None:
    report = ChainReport(chain="")
    report.add(ChainFault(kind=FaultKind.SEAL_FORGED, number=number) for number in (5, 3, 4))
    assert report.broken_at == ChainFault(kind=FaultKind.SEAL_FORGED, number=3)
    # Also where the report lists no more faults.
    report.add(ChainFault(kind=FaultKind.SEAL_FORGED, number=number) for number in range(200, 1, -1))
    assert report.broken_at == ChainFault(kind=FaultKind.SEAL_FORGED, number=2)


@pytest.mark.parametrize(
    ("change", "kind", "number"),
    [
        ("UPDATE {t} SET message = 'act 9' WHERE message = 'act 3'", FaultKind.ROW_CHANGED, 2),
        ("UPDATE {t} SET detail = '{{\"a\": 1}}' WHERE message = 'act 6'", FaultKind.ROW_CHANGED, 3),
        ("UPDATE {t} SET level = 'error' WHERE message = 'act 1'", FaultKind.ROW_CHANGED, 1),
        ("UPDATE {t} SET at = at - interval '1 microsecond' WHERE message = 'act 1'", FaultKind.ROW_CHANGED, 1),
        ("DELETE FROM {t} WHERE message = 'act 4'", FaultKind.ROW_MISSING, 2),
        ("UPDATE {t} SET position = position - 1000000 WHERE message = 'act 5'", FaultKind.ROW_ADDED, 1),
        (
            "INSERT INTO {t} (tenant_id, id, at, action, actor, message, detail, position)"
            " SELECT tenant_id, gen_random_uuid(), at, action, 'user:eve', 'never done', detail, position - 1"
            " FROM {t} WHERE message = 'act 3'",
            FaultKind.ROW_ADDED,
            2,
        ),
        (
            "UPDATE {t} a SET message = b.message FROM {t} b"
            " WHERE (a.message, b.message) IN (('act 2', 'act 3'), ('act 3', 'act 2'))",
            FaultKind.ROW_CHANGED,
            1,
        ),
        ("DELETE FROM audit_sealedblock b USING audit_auditseal s WHERE b.seal_id = s.id AND number = 2",
         FaultKind.BLOCK_MISSING, 2),
        ("UPDATE audit_sealedblock b SET events = substr(b.events, 33) FROM audit_auditseal s"
         " WHERE b.seal_id = s.id AND number = 1", FaultKind.BLOCK_CHANGED, 1),
        ("DELETE FROM audit_auditseal WHERE number = 2", FaultKind.SEAL_MISSING, 2),
        ("UPDATE audit_auditseal SET events_digest = sha256('') WHERE number = 3", FaultKind.SEAL_CHANGED, 3),
        ("UPDATE audit_auditseal SET previous = sha256('') WHERE number = 2", FaultKind.SEAL_UNLINKED, 2),
    ],
)  # fmt: skip
def test_a_superuser_who_tampers_is_found(
    tenant: Tenant, sealed: AuditChain, superuser: Superuser, change: str, kind: FaultKind, number: int
) -> None:
    superuser.execute("SET session_replication_role = replica")
    superuser.execute(change.format(t=_EVENTS))
    superuser.execute("RESET session_replication_role")
    fault = first_fault(tenant)
    assert (fault.kind, fault.number) == (kind, number)


def test_a_seal_signed_by_another_key_is_found(
    tenant: Tenant, sealed: AuditChain, superuser: Superuser
) -> None:
    superuser.execute(f"UPDATE {_EVENTS} SET message = 'never done' WHERE message = 'act 6'")
    delete_seal(superuser, 3)
    seal()
    # Whoever has the key can seal the end anew: only an exported head shows that.
    assert verify_tenant(tenant).fault_count == 0
    head = sealed.head()
    assert head is not None
    forged = sign(generate_key_pair().private, head.header.signed_bytes)
    superuser.execute("UPDATE audit_auditseal SET signature = %s WHERE number = 3", [forged])
    fault = first_fault(tenant)
    assert (fault.kind, fault.number) == (FaultKind.SEAL_FORGED, 3)


def test_a_chain_outlives_the_key_that_signed_it(
    tenant: Tenant, other_tenant: Tenant, sealed: AuditChain
) -> None:
    record_acts(other_tenant, "the only one")
    seal()
    rotate_authority(actor="user:nora")
    retire_authority(actor="user:nora", force=True)
    # The new key has sealed each chain, also one without anything new to seal.
    assert [verify_tenant(owner).fault_count for owner in (tenant, other_tenant)] == [0, 0]
    assert verify_audit(AuditChain()).fault_count == 0
    assert verify_tenant(tenant, latest=1).fault_count == 0


def test_a_key_stays_while_another_process_seals(tenant: Tenant, sealed: AuditChain) -> None:
    rotate_authority(actor="user:nora")

    def retire() -> None:
        with pytest.raises(TransitionIllegal, match="being sealed by another process"):
            retire_authority(actor="user:nora")

    with transaction.atomic(using=OPS), connections[OPS].cursor() as cursor:
        name = sealed.name
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('arbor.audit.seal'), hashtext(%s))", [name])
        in_own_connection(retire).join(20)
    retire_authority(actor="user:nora")
    assert verify_tenant(tenant).fault_count == 0


def test_a_retired_key_signs_nothing_after_a_newer_one(
    tenant: Tenant, sealed: AuditChain, system_key: SigningKey, superuser: Superuser
) -> None:
    rotate_authority(actor="user:nora")
    retire_authority(actor="user:nora", force=True)
    seal()
    record_acts(tenant, "act 7")
    # Such as a worker that has read the key before the rotation.
    with capture_logs() as logged:
        assert seal_tenant(tenant.id, signer=system_key, now=datetime.now(UTC)) == 0
    assert [entry["event"] for entry in logged] == ["seal_refused_older_key"]
    assert seal() > 0
    record_acts(tenant, "act 8")
    seal()
    number = sealed.seals().count() - 1
    stolen = sealed.seal_of(sealed.seals().get(number=number))
    superuser.execute(
        "UPDATE audit_auditseal SET key_number = %s, signature = %s WHERE number = %s AND tenant_id = %s",
        [system_key.number, system_key.sign(stolen.header.signed_bytes), number, tenant.id],
    )
    fault = first_fault(tenant)
    assert (fault.kind, fault.number) == (FaultKind.SEAL_FORGED, number)


def test_history_rewritten_with_a_retired_key_is_found(
    tenant: Tenant, sealed: AuditChain, system_key: SigningKey, superuser: Superuser
) -> None:
    rotate_authority(actor="user:nora")
    retire_authority(actor="user:nora", force=True)
    seal()
    old = sealed.seal_of(sealed.seals().get(number=3))
    header = replace(old.header, at=old.header.at - timedelta(seconds=1))
    superuser.execute(
        "UPDATE audit_auditseal SET at = %s, digest = %s, signature = %s WHERE number = 3 AND tenant_id = %s",
        [header.at, header.digest, system_key.sign(header.signed_bytes), tenant.id],
    )
    fault = first_fault(tenant)
    assert (fault.kind, fault.number) == (FaultKind.SEAL_UNLINKED, 4)


def test_an_exported_head_shows_that_the_end_was_replaced(
    tenant: Tenant, sealed: AuditChain, superuser: Superuser
) -> None:
    head = sealed.head()
    assert head is not None
    exported = {head.header.number: head.digest.hex()}
    assert verify_tenant(tenant, heads=exported).fault_count == 0
    superuser.execute(f"DELETE FROM {_EVENTS} WHERE message = 'act 6'")
    delete_seal(superuser, 3)
    fault = verify_tenant(tenant, heads=exported).broken_at
    assert fault is not None
    assert fault.kind is FaultKind.HEAD_REPLACED
    seal()
    assert verify_tenant(tenant).fault_count == 0
    fault = verify_tenant(tenant, heads=exported).broken_at
    assert fault is not None
    assert (fault.kind, fault.number) == (FaultKind.HEAD_REPLACED, 3)


def insert_deletion(superuser: Superuser, chain: AuditChain, detail: str, position: str) -> None:
    """Add the record of a deletion as a superuser, at a position below or after the last seal."""
    superuser.execute(
        "INSERT INTO audit_auditevent (tenant_id, id, at, action, actor, message, detail, agent_id, position)"
        f" SELECT tenant_id, gen_random_uuid(), at + interval '400 days', 'audit.deleted', 'user:eve', 'gone', %s, gen_random_uuid(), {position}"
        " FROM audit_auditevent WHERE tenant_id = %s AND message = 'act 6'",
        [detail, chain.tenant_id],
    )


def check_later(tenant: Tenant) -> ChainReport:
    """Verify at a time when the deletion of `insert_deletion` is in the past, and could explain others."""
    return verify_tenant(tenant, clock=FrozenClock(datetime.now(UTC) + timedelta(days=401)))


ALL_RECORDS = '{"rows": "audit", "until": "2999-01-01T00:00:00+00:00"}'


def test_a_deletion_that_was_added_under_a_seal_explains_nothing(
    tenant: Tenant, sealed: AuditChain, superuser: Superuser
) -> None:
    insert_deletion(superuser, sealed, ALL_RECORDS, "position - 1")
    superuser.execute(f"DELETE FROM {_EVENTS} WHERE message = 'act 1'")
    report = check_later(tenant)
    assert [fault.kind for fault in report.faults] == [FaultKind.ROW_MISSING, FaultKind.ROW_ADDED]
    assert (report.aged, report.aged_unsealed) == (0, 0)


def test_a_deletion_whose_record_was_changed_explains_nothing(
    tenant: Tenant, sealed: AuditChain, superuser: Superuser
) -> None:
    insert_deletion(
        superuser,
        sealed,
        '{"rows": "audit", "until": "1999-01-01T00:00:00+00:00"}',
        "position + 1",
    )
    seal()
    superuser.execute(f"UPDATE {_EVENTS} SET detail = %s WHERE message = 'gone'", [ALL_RECORDS])
    superuser.execute(f"DELETE FROM {_EVENTS} WHERE message = 'act 1'")
    report = check_later(tenant)
    assert [fault.kind for fault in report.faults] == [FaultKind.ROW_MISSING, FaultKind.ROW_CHANGED]


def test_a_deletion_that_is_not_sealed_yet_is_reported_as_such(
    tenant: Tenant, sealed: AuditChain, superuser: Superuser
) -> None:
    insert_deletion(superuser, sealed, ALL_RECORDS, "position + 1")
    superuser.execute(f"DELETE FROM {_EVENTS} WHERE message = 'act 1'")
    report = check_later(tenant)
    assert (report.fault_count, report.aged, report.aged_unsealed) == (0, 1, 1)
    assert report.as_json()["aged_unsealed"] == 1
    seal()
    report = check_later(tenant)
    assert (report.fault_count, report.aged, report.aged_unsealed) == (0, 1, 0)


def test_a_deletion_that_is_never_sealed_explains_nothing(
    tenant: Tenant, sealed: AuditChain, superuser: Superuser
) -> None:
    insert_deletion(superuser, sealed, ALL_RECORDS, "position + 1000000000")
    superuser.execute(f"DELETE FROM {_EVENTS} WHERE message = 'act 1'")
    assert [fault.kind for fault in check_later(tenant).faults] == [FaultKind.ROW_MISSING]


def test_a_deletion_of_the_future_explains_no_young_rows(
    tenant: Tenant, sealed: AuditChain, superuser: Superuser
) -> None:
    insert_deletion(superuser, sealed, ALL_RECORDS, "position + 1")
    seal()
    superuser.execute(f"DELETE FROM {_EVENTS} WHERE message = 'act 1'")
    assert [fault.kind for fault in verify_tenant(tenant).faults] == [FaultKind.ROW_MISSING]
    assert check_later(tenant).fault_count == 0


def test_records_of_the_installation_are_sealed_too(tenant: Tenant, superuser: Superuser) -> None:
    record_platform_act("act 1")
    seal()
    report = verify_audit(AuditChain())
    assert report.events >= 1
    assert report.fault_count == 0
    superuser.execute("UPDATE audit_platformevent SET actor = 'user:eve'")
    fault = verify_audit(AuditChain()).broken_at
    assert fault is not None
    assert fault.kind is FaultKind.ROW_CHANGED


@pytest.mark.parametrize("alias", ["default", "ops", "accounts"])
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_auditevent SET message = 'never done'",
        "UPDATE audit_platformevent SET message = 'never done'",
        "UPDATE audit_auditseal SET digest = ''",
        "UPDATE audit_platformseal SET digest = ''",
        "UPDATE audit_sealedblock SET events = ''",
        "DELETE FROM audit_auditseal",
        "DELETE FROM audit_platformseal",
        "TRUNCATE audit_auditevent",
    ],
)
def test_no_serving_role_changes_the_log_or_its_seals(
    tenant: Tenant, sealed: AuditChain, alias: str, statement: str
) -> None:
    with (
        pytest.raises(Error, match="permission denied"),
        tenant_transaction(tenant.id),
        transaction.atomic(using=alias),
        connections[alias].cursor() as cursor,
    ):
        cursor.execute(statement)
    assert verify_tenant(tenant).fault_count == 0


@pytest.mark.parametrize("table", ["audit_auditevent", "audit_sealedblock"])
def test_the_operations_role_deletes_nothing_before_its_age(
    tenant: Tenant, sealed: AuditChain, table: str
) -> None:
    with transaction.atomic(using=OPS), connections[OPS].cursor() as cursor:
        cursor.execute(f"DELETE FROM {table}")
        assert cursor.rowcount == 0


def test_only_the_operations_role_adds_seals(tenant: Tenant, sealed: AuditChain) -> None:
    assert ensure_system_authority().number == 1
    with (
        pytest.raises(Error, match="permission denied"),
        tenant_transaction(tenant.id),
        connections["default"].cursor() as cursor,
    ):
        cursor.execute("INSERT INTO audit_auditseal SELECT * FROM audit_auditseal")
