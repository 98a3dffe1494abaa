"""Recover lost maintenance calls: enqueue unleased ones again, and retry those whose worker was lost."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings

from apps.calls.models import CallStatus
from apps.calls.services.leased_calls import LeasedCall, execute_message
from apps.calls.services.usage import budget_status_of
from apps.maintenance.services.settlement import record_failed_try
from apps.memories.services.jobs.job_runs import JobRunResult, run_job
from apps.queues import enqueue
from apps.tenants.packing import unpack
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import change, fetch
from arbor.models.handles import REFLEX
from arbor.models.ports import ModelRequest

#: Time after which an unanswered message is published again, at most.
_MAX_MESSAGE_LEASE = timedelta(hours=1)
#: Maintenance calls of one agent recovered in one step.
_RECOVERED = 100

# Suspended tenants are skipped.
_LOST = """
SELECT DISTINCT agent_id FROM calls_externalcall
WHERE tenant_id = t.id AND errand_status IN ('pending', 'running') AND errand_lease < now()
    AND EXISTS (SELECT FROM tenants_tenant WHERE id = t.id AND status = 'active')
"""
_LOCK_LOST = """
SELECT c.id, c.status, c.model, c.request, c.attempts, c.subject, c.failures, a.name
FROM calls_externalcall c JOIN agents_agent a ON a.tenant_id = c.tenant_id AND a.id = c.agent_id
WHERE c.tenant_id = %(tenant)s AND c.agent_id = %(agent)s AND c.errand_status IN ('pending', 'running')
    AND c.errand_lease < now()
ORDER BY c.id LIMIT %(limit)s FOR UPDATE OF c SKIP LOCKED
"""
# The message lease grows with the waiting time, so messages do not pile up while no worker runs. For a conversation's
# call, `told` says that its process is lost, so workers execute the retries.
_EXTEND_MESSAGE_LEASES = """
UPDATE calls_externalcall
SET lease_until = now() + least(%(longest)s, greatest(%(lease)s, now() - requested_at)),
    subject = CASE purpose WHEN 'chat' THEN subject || '{"told": true}' ELSE subject END
WHERE tenant_id = %(tenant)s AND id = ANY(%(calls)s::uuid[])
"""


class _WorkerLost(Exception):
    """A worker lost its lease on a maintenance call."""


def recover_maintenance_calls() -> JobRunResult:
    """Enqueue unleased maintenance calls again, and retry those whose worker was lost."""
    return run_job("maintenance_calls", waiting=_LOST, step=_recover)


def _recover(tenant_id: UUID, agent_id: UUID) -> int:
    with tenant_transaction(tenant_id):
        rows = fetch(_LOCK_LOST, agent=agent_id, limit=_RECOVERED)
        pending = [row for row in rows if row[1] == CallStatus.PENDING]
        lost = [row for row in rows if row[1] == CallStatus.RUNNING]
        if pending and not budget_status_of(agent_id).level.may_maintain:
            # Over the daily limit only conversations and rules continue; the rest stay due until the next day.
            pending = [
                row for row in pending if row[2].startswith(f"{REFLEX}/") or "chat" in json.loads(row[5])
            ]
        unsent = [(row[0], row[-1]) for row in pending]
        for row in lost:
            error = _WorkerLost(f"worker {row[4]} took it and did not come back")
            record_failed_try(_leased_call(tenant_id, agent_id, row), error)
        if unsent:
            calls = [call_id for call_id, _ in unsent]
            change(
                _EXTEND_MESSAGE_LEASES,
                calls=calls,
                lease=settings.ARBOR_QUEUE_LEASE,
                longest=_MAX_MESSAGE_LEASE,
            )
        for call_id, name in unsent:
            enqueue(execute_message(call_id=call_id, tenant_id=tenant_id, agent_name=name))
    # Calls that wait for the next day do not count as work, so that the run continues with other agents.
    return len(unsent) + len(lost)


def _leased_call(tenant_id: UUID, agent_id: UUID, row: tuple[Any, ...]) -> LeasedCall:
    call_id, _, model, request, attempt, subject, failures, _ = row
    return LeasedCall(
        call_id=call_id,
        tenant_id=tenant_id,
        agent_id=agent_id,
        model=model,
        request=ModelRequest.from_json(unpack(request)),
        attempt=attempt,
        subject=json.loads(subject),
        failures=failures,
    )
