"""Sign the grants of all tenants that a migration has written without a signature."""

from __future__ import annotations

from apps.authority.models import CapabilityGrant
from apps.authority.services.pending_grants import sign_pending_grants
from apps.tenants.scope import ops_scope, tenant_transaction


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
                batch = sign_pending_grants(actor=actor)
            signed += batch
            if not batch:
                break
    return signed
