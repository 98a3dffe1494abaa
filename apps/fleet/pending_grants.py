"""Sign the grants of all tenants that a migration has written without a signature."""

from __future__ import annotations

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.authority.models import CapabilityGrant
from apps.authority.services.grants import sign_rows
from apps.tenants.scope import ops_scope, tenant_transaction
from arbor.authority.grants import ACTION_PREFIX
from arbor.quotations import counted

#: The actor of grants that a migration has written; no other unsigned row is ever signed.
MIGRATION = "system:migration"
#: Grants signed in one statement.
BATCH = 2_000


def sign_all_pending_grants(*, actor: str) -> int:
    """Sign all grants that a migration has written without a signature, and return their number. Idempotent.

    Raises ConfigurationInvalid without a master key, and SealBroken where another master key has sealed the System Authority's key.
    """
    with ops_scope():
        rows = CapabilityGrant.objects.filter(signature="").order_by("tenant_id")
        tenants = list(rows.values_list("tenant_id", flat=True).distinct())
    signed = 0
    for tenant_id in tenants:
        while True:
            # Each batch has a transaction of its own, so that an interruption loses little.
            with tenant_transaction(tenant_id):
                batch = _sign_batch(actor)
            signed += batch
            if not batch:
                break
    return signed


def _sign_batch(actor: str) -> int:
    """Sign a batch of unsigned grants of the current tenant as the System Authority, and return their number; audited."""
    rows = list(
        CapabilityGrant.objects.select_related("agent")
        .filter(signature="", granted_by=MIGRATION, resource__startswith=ACTION_PREFIX)
        .order_by("id")
        .select_for_update(of=("self",), no_key=True)[:BATCH]
    )
    if rows:
        sign_rows(rows)
        CapabilityGrant.objects.bulk_update(rows, ["issuer", "signature"])
        message = f"signed {counted(len(rows), 'grant')} from before capabilities"
        record(action=AuditAction.CAPABILITY_GRANTED, actor=actor, message=message)
    return len(rows)
