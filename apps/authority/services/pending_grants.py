"""Sign the grants that migrations have written."""

from __future__ import annotations

from django.db import transaction

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.authority.models import CapabilityGrant
from apps.authority.services.grants import sign_rows
from arbor.authority.grants import ACTION_PREFIX
from arbor.quotations import counted

#: The actor of grants that a migration has written; no other unsigned row is ever signed.
MIGRATION = "system:migration"
#: Grants signed in one statement.
BATCH = 2_000


@transaction.atomic
def sign_pending_grants(*, actor: str) -> int:
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
