"""Lease pending calls to this worker, those of one message at once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings

from apps.tenants.encoding import from_json
from apps.tenants.packing import unpack
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import fetch
from arbor.heartbeat.questions import request_of
from arbor.models.ports import ModelRequest

#: Beyond the model's own deadline, the time to store its reply; a summary is embedded before.
_STORING = timedelta(seconds=10)
_ERRAND_STORING = timedelta(seconds=60)
#: A call that has waited longer for its thread renews its lease before the model is asked.
RENEWED_AFTER_S = 5.0

# A heartbeat's lease must last as long as the model may take, however long its call has waited before. It is extended only
# where it does not: most calls are taken at once. Schedules are locked before calls, both in the order of their ids, as
# whoever walks heartbeats locks them.
_LEASE = """
WITH pending AS MATERIALIZED (
    SELECT c.id, c.agent_id, h.epoch FROM heartbeats_externalcall c
    LEFT JOIN heartbeats_heartbeat h ON h.tenant_id = c.tenant_id AND h.id = c.heartbeat_id
    WHERE c.tenant_id = %(tenant)s AND c.id = ANY(%(calls)s::uuid[]) AND {pending}
), short AS MATERIALIZED (
    SELECT s.agent_id FROM heartbeats_heartbeatschedule s
    JOIN pending ON pending.agent_id = s.agent_id AND pending.epoch = s.epoch
    WHERE s.tenant_id = %(tenant)s AND s.state = 'running' AND s.lease_until < now() + %(enough)s::interval
    ORDER BY s.agent_id FOR UPDATE OF s
), locked AS MATERIALIZED (
    SELECT c.id FROM heartbeats_externalcall c
    WHERE c.tenant_id = %(tenant)s AND c.id IN (SELECT id FROM pending) AND {pending}
        AND (SELECT count(*) FROM short) >= 0
    ORDER BY c.id FOR UPDATE
), leased AS (
    UPDATE heartbeats_externalcall c
    SET status = 'running', attempts = c.attempts + {new}, started_at = now(),
        lease_until = now() + CASE subject_key WHEN '' THEN %(lease)s::interval ELSE %(errand_lease)s::interval END
    FROM locked WHERE c.tenant_id = %(tenant)s AND c.id = locked.id
    RETURNING c.id, c.agent_id, c.model, c.request, c.attempts, c.subject, c.failures
), waiting AS (
    UPDATE heartbeats_heartbeatschedule s SET lease_until = now() + %(wait)s::interval
    FROM short JOIN leased USING (agent_id) WHERE s.tenant_id = %(tenant)s AND s.agent_id = short.agent_id
)
SELECT {columns} FROM leased ORDER BY id
"""
_TAKE = _LEASE.format(
    pending="c.status = 'pending' AND (c.due_at IS NULL OR c.due_at <= now())",
    new=1,
    columns="id, agent_id, model, request, attempts, subject, failures",
)
_RENEW = _LEASE.format(pending="c.status = 'running' AND c.attempts = %(attempt)s::int", new=0, columns="id")


@dataclass(frozen=True, kw_only=True)
class LeasedCall:
    """A call that this worker has; `attempt` is the token of its lease."""

    call_id: UUID
    tenant_id: UUID
    agent_id: UUID
    model: str
    request: ModelRequest
    attempt: int
    #: What an errand of maintenance is about; empty for a heartbeat's call.
    subject: dict[str, Any]
    #: Tries of an errand that brought nothing so far.
    failures: int
    #: When it was leased, by the monotonic clock.
    leased_at: float = field(default_factory=time.monotonic)


def lease_calls(call_ids: Sequence[UUID], *, tenant_id: UUID) -> list[LeasedCall]:
    """Lease those of the calls that are pending and due, in one transaction of one statement.

    The others are other workers', done, or not due yet: a doubled message costs one short read.
    """
    with tenant_transaction(tenant_id):
        rows = fetch(_TAKE, calls=list(call_ids), **_durations())
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
        )
        for call_id, agent_id, model, request, attempt, subject, failures in rows
    ]


def renew_lease(call: LeasedCall) -> bool:
    """Renew the lease of a call that has waited for a thread; False if it was lost meanwhile."""
    if time.monotonic() - call.leased_at < RENEWED_AFTER_S:
        return True
    with tenant_transaction(call.tenant_id):
        return bool(fetch(_RENEW, calls=[call.call_id], attempt=call.attempt, **_durations()))


def _durations() -> dict[str, timedelta]:
    deadline = timedelta(seconds=settings.ARBOR_MODEL_DEADLINE_S)
    lease = deadline + _STORING
    queued: timedelta = settings.ARBOR_QUEUE_LEASE
    return {
        "lease": lease,
        "errand_lease": deadline + _ERRAND_STORING,
        "wait": lease + queued,
        # With time left for the message that lets the heartbeat go on.
        "enough": lease + queued / 2,
    }
