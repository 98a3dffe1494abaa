"""Lease the pending calls of a message to this worker."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import structlog
from django.conf import settings

from apps.calls.services.leased_calls import LeasedCall
from apps.calls.services.provider_lookup import PROVIDER_OF_MODEL, read_provider
from apps.tenants.encoding import from_json
from apps.tenants.packing import unpack
from apps.tenants.scope import release_connection, tenant_transaction
from apps.tenants.statements import fetch
from arbor.heartbeat.prompts.questions import request_of

log = structlog.get_logger(__name__)

#: Time to store a reply after the model's deadline; a summary is embedded first.
_TIME_TO_STORE = timedelta(seconds=10)
_TIME_TO_STORE_MAINTENANCE = timedelta(seconds=60)
#: A call that has waited longer than this since its lease, in seconds, renews the lease.
RENEWED_AFTER_S = 5.0

# The heartbeat's lease must outlast the model's deadline, so it is extended where it is too short. Schedules are locked
# before calls, both in the order of ids, as the runner of heartbeats locks them: the count of `short`, which is always 0 or more,
# has PostgreSQL lock those rows first.
_LEASE = """
WITH pending AS MATERIALIZED (
    SELECT c.id, c.agent_id, (
        SELECT h.epoch FROM heartbeats_heartbeat h WHERE h.tenant_id = c.tenant_id AND h.id = c.heartbeat_id
    ) AS epoch
    FROM calls_externalcall c
    WHERE c.tenant_id = %(tenant)s AND c.id = ANY(%(calls)s::uuid[]) AND {pending}
), short AS MATERIALIZED (
    SELECT s.agent_id FROM heartbeats_heartbeatschedule s
    JOIN pending ON pending.agent_id = s.agent_id AND pending.epoch = s.epoch
    WHERE s.tenant_id = %(tenant)s AND s.agent_id = ANY(ARRAY(SELECT agent_id FROM pending))
        AND s.state = 'running' AND s.lease_until < now() + %(enough)s::interval
    ORDER BY s.agent_id FOR UPDATE OF s
), locked AS MATERIALIZED (
    SELECT c.id FROM calls_externalcall c
    WHERE c.tenant_id = %(tenant)s AND c.id = ANY(ARRAY(SELECT id FROM pending)) AND {pending}
        AND (SELECT count(*) FROM short) >= 0
    ORDER BY c.id FOR UPDATE
), leased AS (
    UPDATE calls_externalcall c
    SET status = 'running', attempts = c.attempts + {new}, started_at = now(),
        lease_until = now() + CASE subject_key WHEN '' THEN %(lease)s::interval ELSE %(maintenance_lease)s::interval END
    FROM locked WHERE c.tenant_id = %(tenant)s AND c.id = locked.id AND c.id = ANY(%(calls)s::uuid[])
    RETURNING c.id, c.agent_id, c.model, c.request, c.attempts, c.subject, c.failures
), waiting AS (
    UPDATE heartbeats_heartbeatschedule s SET lease_until = now() + %(wait)s::interval
    FROM short JOIN leased USING (agent_id)
    WHERE s.tenant_id = %(tenant)s AND s.agent_id = short.agent_id AND s.agent_id = ANY(ARRAY(SELECT agent_id FROM pending))
)
SELECT {columns} FROM leased ORDER BY id
"""
_LEASE_PENDING = _LEASE.format(
    pending="c.status = 'pending' AND (c.due_at IS NULL OR c.due_at <= now())",
    new=1,
    columns=f"id, agent_id, model, request, attempts, subject, failures, {PROVIDER_OF_MODEL.format(model='leased.model')}",
)
_RENEW = _LEASE.format(pending="c.status = 'running' AND c.attempts = %(attempt)s::int", new=0, columns="id")


def lease_calls(call_ids: Sequence[UUID], *, tenant_id: UUID) -> list[LeasedCall]:
    """Lease the calls that are pending and due, in one transaction of one statement; skip all others."""
    with tenant_transaction(tenant_id, generic_plans=True):
        rows = fetch(_LEASE_PENDING, calls=list(call_ids), **_durations())
    release_connection()
    for call_id in set(call_ids) - {row[0] for row in rows}:
        log.info("call_skipped", call_id=str(call_id))
    return [
        LeasedCall(
            call_id=call_id,
            tenant_id=tenant_id,
            agent_id=agent_id,
            model=model,
            request=request_of(unpack(request)),
            attempt=attempt,
            subject=from_json(subject),
            failures=failures,
            provider=read_provider(tenant_id, provider),
        )
        for call_id, agent_id, model, request, attempt, subject, failures, provider in rows
    ]


def renew_lease(call: LeasedCall) -> bool:
    """Renew the lease of a call that waited long for a thread or its provider; return False if the lease was lost."""
    if time.monotonic() - call.leased_at < RENEWED_AFTER_S:
        return True
    with tenant_transaction(call.tenant_id):
        is_renewed = bool(fetch(_RENEW, calls=[call.call_id], attempt=call.attempt, **_durations()))
    release_connection()
    if not is_renewed:
        log.warning("call_lease_lost", call_id=str(call.call_id))
    return is_renewed


def _durations() -> dict[str, timedelta]:
    deadline = timedelta(seconds=settings.ARBOR_MODEL_DEADLINE_S)
    lease = deadline + _TIME_TO_STORE
    queued: timedelta = settings.ARBOR_QUEUE_LEASE
    return {
        "lease": lease,
        "maintenance_lease": deadline + _TIME_TO_STORE_MAINTENANCE,
        "wait": lease + queued,
        # Includes the time of the message that resumes the heartbeat.
        "enough": lease + queued / 2,
    }
