"""Sign the grants that a migration has written."""

from __future__ import annotations

from django.db import transaction

from apps.agents.services.authority import ensure_system_authority
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.authority.models import CapabilityGrant
from apps.authority.services.grants import sign_rows
from arbor.authority.grants import ACTION_PREFIX

#: The actor of grants that a migration has written; no other unsigned row is ever signed.
MIGRATION = "system:migration"
#: Grants signed in one statement.
BATCH = 500


def sign_pending_grants(*, actor: str) -> int:
    """Sign the unsigned grants of the current tenant as the System Authority, and return their number; audited.

    Idempotent: a run that stopped halfway is continued by the next.
    """
    key, signed = ensure_system_authority(), 0
    while True:
        with transaction.atomic():
            rows = list(
                CapabilityGrant.objects.select_related("agent")
                .filter(signature="", granted_by=MIGRATION, resource__startswith=ACTION_PREFIX)
                .order_by("id")
                .select_for_update(of=("self",), skip_locked=True, no_key=True)[:BATCH]
            )
            sign_rows(rows, key)
            CapabilityGrant.objects.bulk_update(rows, ["issuer", "signature"])
        signed += len(rows)
        if len(rows) < BATCH:
            break
    if signed:
        record(
            action=AuditAction.CAPABILITY_GRANTED,
            actor=actor,
            message=f"signed {signed} grants from before capabilities",
        )
    return signed
