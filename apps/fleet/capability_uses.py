"""Delete the uses of capabilities that no limit counts any more."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from apps.authority.models import CapabilityUse
from apps.memories.services.jobs.job_runs import JobRunResult, run_job
from apps.tenants.scope import OPS
from arbor.authority.constraints import MAX_PERIOD_S

#: Uses that one step deletes.
_STEP = 2_000
# A grant in force that limits its uses needs all of its uses; a grant that limits its rate needs the uses of the longest period.
_WAITING = """
SELECT t.id AS agent_id WHERE EXISTS (
    SELECT FROM authority_capabilityuse u JOIN authority_capabilitygrant g
        ON g.tenant_id = u.tenant_id AND g.id = u.capability_id
    WHERE u.tenant_id = t.id AND u.at < '{before}' AND (g.revoked_at IS NOT NULL OR NOT g.constraints ? 'max_uses')
)
"""
_UNCOUNTED = Q(capability__revoked_at__isnull=False) | ~Q(capability__constraints__has_key="max_uses")


def delete_uncounted_uses(*, now: datetime, max_duration: timedelta) -> JobRunResult:
    """Delete the uses, older than the longest period of a rate, of grants that are revoked or limit only their rate."""
    before = now - timedelta(seconds=MAX_PERIOD_S)

    def step(tenant_id: UUID, _: UUID) -> int:
        with transaction.atomic(using=OPS):
            uses: QuerySet[CapabilityUse] = QuerySet(CapabilityUse, using=OPS).filter(tenant_id=tenant_id)
            old = uses.filter(_UNCOUNTED, at__lt=before).order_by("at").values_list("id", flat=True)
            # `_raw_delete` returns None where it deletes no row.
            return uses.filter(id__in=list(old[:_STEP]))._raw_delete(OPS) or 0

    return run_job(
        "history of capability uses",
        waiting=_WAITING.format(before=before.isoformat()),
        step=step,
        max_duration=max_duration,
    )
