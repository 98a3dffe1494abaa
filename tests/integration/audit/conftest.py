"""A sealed audit log, and a superuser who tampers with it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from apps.agents.services.authority import ensure_system_authority
from apps.audit.models import AuditAction
from apps.audit.services import record, record_platform
from apps.audit.services.chains import AuditChain
from apps.audit.services.verification import ChainReport
from apps.fleet.audit_seals import seal_audit, verify_audit
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.agents.keys import SigningKey
from arbor.audit.faults import ChainFault
from arbor.clock import FrozenClock
from tests.integration.heartbeats.conftest import agent, fleet, new_agent, no_leg_time_limit, scripted

__all__ = ["agent", "fleet", "new_agent", "no_leg_time_limit", "scripted"]


@pytest.fixture(autouse=True)
def _no_pauses(settings: Any) -> None:
    """Run jobs without the pauses between their steps."""
    settings.ARBOR_MAINTENANCE_SHARE = 1.0


def record_acts(tenant: Tenant, *messages: str) -> None:
    """Record acts of a person, each in a transaction of its own."""
    for message in messages:
        with tenant_transaction(tenant.id):
            record(action=AuditAction.OPERATOR_ACT, actor="user:nora", message=message)


def record_platform_act(message: str) -> None:
    """Record an act on the installation."""
    record_platform(action=AuditAction.OPERATOR_ACT, actor="user:nora", message=message)


def seal(now: datetime | None = None) -> int:
    """Seal all committed rows; return their number."""
    return seal_audit(FrozenClock(now or datetime.now(UTC)), sinks=()).done


def verify_tenant(tenant: Tenant, **options: Any) -> ChainReport:
    """Verify the chain of a tenant."""
    return verify_audit(AuditChain(tenant_id=tenant.id), **options)


def first_fault(tenant: Tenant) -> ChainFault:
    """Return the fault at which the chain of a tenant breaks."""
    fault = verify_tenant(tenant).broken_at
    assert fault is not None
    return fault


def delete_seal(superuser: psycopg.Connection[Any], number: int) -> None:
    """Delete a seal and its blocks."""
    superuser.execute(
        "DELETE FROM audit_sealedblock b USING audit_auditseal s WHERE seal_id = s.id AND number = %s",
        [number],
    )
    superuser.execute("DELETE FROM audit_auditseal WHERE number = %s", [number])


@pytest.fixture
def sealed(tenant: Tenant) -> AuditChain:
    """Return a chain of three seals over two records each."""
    for pair in range(3):
        record_acts(tenant, f"act {2 * pair + 1}", f"act {2 * pair + 2}")
        seal()
    return AuditChain(tenant_id=tenant.id)


@pytest.fixture
def system_key(database: None) -> SigningKey:
    """Return the key of the System Authority."""
    return ensure_system_authority()
