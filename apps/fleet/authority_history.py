"""Delete the history of authority: uses of capabilities that no limit counts any more, and ended requests for approval."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from apps.authority.models import ActionApproval, CapabilityUse
from apps.heartbeats.models import Heartbeat
from apps.memories.services.jobs.job_runs import JobRunResult, run_job
from apps.tenants.scope import OPS, tenant_transaction
from arbor.authority.approvals import OPEN_APPROVALS
from arbor.authority.constraints import MAX_PERIOD_S

#: Uses that one step deletes.
_STEP = 2_000
#: Requests for approval that one step deletes.
_APPROVALS_STEP = 500
# A grant in force that limits its uses needs all of its uses; a grant that limits its rate needs the uses of the longest period.
_WAITING = """
SELECT t.id AS agent_id WHERE EXISTS (
    SELECT FROM authority_capabilityuse u JOIN authority_capabilitygrant g
        ON g.tenant_id = u.tenant_id AND g.id = u.capability_id
    WHERE u.tenant_id = t.id AND u.at < '{before}' AND (g.revoked_at IS NOT NULL OR NOT g.constraints ? 'max_uses')
)
"""
# Part: a request for approval `r` has ended, and the heartbeats that filed and executed it are gone. A denial refuses the same
# request until the denied one would have expired.
APPROVAL_HAS_ENDED = """
r.status NOT IN ('pending', 'approved') AND r.expires_at < now() AND NOT EXISTS (
    SELECT FROM heartbeats_heartbeat h WHERE h.tenant_id = t.id AND h.id IN (r.heartbeat_id, r.executed_by)
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


def delete_approvals(tenant_id: UUID, agent_id: UUID, before: datetime) -> int:
    """Delete some of an agent's requests for approval that were filed before a time and have ended; return their number."""
    with tenant_transaction(tenant_id):
        heartbeats = Heartbeat.objects.filter(id__in=[OuterRef("heartbeat_id"), OuterRef("executed_by")])
        rows = ActionApproval.objects.filter(~Exists(heartbeats), agent_id=agent_id, asked_at__lt=before)
        ended = rows.exclude(status__in=OPEN_APPROVALS).filter(expires_at__lt=Now())
        locked = ended.order_by("asked_at").select_for_update(skip_locked=True)
        ids = list(locked.values_list("id", flat=True)[:_APPROVALS_STEP])
        ActionApproval.objects.filter(id__in=ids).delete()
        return len(ids)
