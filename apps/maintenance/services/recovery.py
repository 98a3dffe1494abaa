"""Recover maintenance calls whose message or worker was lost, and list and retry failed ones."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.calls.models import CallStatus
from apps.calls.services.leased_calls import LeasedCall, execution_message
from apps.calls.services.usage import budget_status_of
from apps.maintenance.services.settlement import record_failed_try
from apps.memories.services.jobs.job_runs import JobRunResult, run_job
from apps.memories.services.jobs.summaries import reset_failures
from apps.queues import enqueue
from apps.tenants.packing import unpack
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import change, fetch
from arbor.models.handles import is_reflex
from arbor.models.ports import ModelRequest
from arbor.quotations import counted

#: The longest time after which the message of a call that no worker took is published again.
_MAX_MESSAGE_LEASE = timedelta(hours=1)
#: The most maintenance calls that one step recovers.
_MAX_RECOVERED = 100

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
# The message lease grows with the waiting time, so messages do not pile up while no worker runs. In the subject of a
# conversation's call, `told` means that the process that waited for the answer is lost, so workers execute the retries.
_EXTEND_MESSAGE_LEASES = """
UPDATE calls_externalcall
SET lease_until = now() + least(%(longest)s, greatest(%(lease)s, now() - requested_at)),
    subject = CASE purpose WHEN 'chat' THEN subject || '{"told": true}' ELSE subject END
WHERE tenant_id = %(tenant)s AND id = ANY(%(calls)s::uuid[])
"""


class _WorkerLost(Exception):
    """The lease of a worker on a maintenance call expired."""


def recover_maintenance_calls() -> JobRunResult:
    """Re-enqueue maintenance calls whose message was lost, and retry those whose worker was lost."""
    return run_job("maintenance_calls", waiting=_LOST, step=_recover)


def _recover(tenant_id: UUID, agent_id: UUID) -> int:
    with tenant_transaction(tenant_id):
        rows = fetch(_LOCK_LOST, agent=agent_id, limit=_MAX_RECOVERED)
        pending = [row for row in rows if row[1] == CallStatus.PENDING]
        lost = [row for row in rows if row[1] == CallStatus.RUNNING]
        if pending and not budget_status_of(agent_id).level.may_maintain:
            # Over the daily limit only conversations and rules continue; the other calls stay due until the next day.
            pending = [row for row in pending if is_reflex(row[2]) or "chat" in json.loads(row[5])]
        unsent = [(row[0], row[-1]) for row in pending]
        for row in lost:
            error = _WorkerLost(f"the worker of try {row[4]} did not come back")
            record_failed_try(_leased_call(tenant_id, agent_id, row), error=error)
        if unsent:
            calls = [call_id for call_id, _ in unsent]
            change(
                _EXTEND_MESSAGE_LEASES,
                calls=calls,
                lease=settings.ARBOR_QUEUE_LEASE,
                longest=_MAX_MESSAGE_LEASE,
            )
        for call_id, name in unsent:
            enqueue(execution_message(call_id=call_id, tenant_id=tenant_id, agent_name=name))
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


_RETRY = """
UPDATE calls_externalcall SET status = 'retried'
WHERE tenant_id = %(tenant)s AND (%(agent)s::uuid IS NULL OR agent_id = %(agent)s)
    AND errand_status = 'failed' AND purpose NOT IN ('chat', 'workflow')
RETURNING purpose, subject
"""
_FAILED = """
SELECT c.id, a.name, c.purpose, c.subject, c.model, c.error_kind || ': ' || c.error, c.ended_at
FROM calls_externalcall c JOIN agents_agent a ON a.tenant_id = c.tenant_id AND a.id = c.agent_id
WHERE c.tenant_id = %(tenant)s AND (%(agent)s::uuid IS NULL OR c.agent_id = %(agent)s)
    AND c.errand_status = 'failed' AND c.purpose NOT IN ('chat', 'workflow')
ORDER BY c.ended_at DESC, c.id LIMIT %(limit)s
"""


@dataclass(frozen=True, kw_only=True)
class FailedMaintenanceCall:
    """A failed maintenance call, as commands and pages show it."""

    id: UUID
    agent: str
    purpose: str
    #: `an episode`, `a memory`, or the number of memories.
    about: str
    model: str
    reason: str
    ended_at: datetime


def failed_maintenance_calls(
    *, agent_id: UUID | None = None, limit: int = 100
) -> list[FailedMaintenanceCall]:
    """Return the failed maintenance calls of an agent or the whole tenant, latest first. One statement."""
    return [
        FailedMaintenanceCall(
            id=call_id,
            agent=name,
            purpose=purpose,
            about=_about(json.loads(subject)),
            model=model,
            reason=reason,
            ended_at=ended_at,
        )
        for call_id, name, purpose, subject, model, reason, ended_at in fetch(
            _FAILED, agent=agent_id, limit=limit
        )
    ]


def _about(subject: dict[str, Any]) -> str:
    if "episode" in subject:
        return "an episode"
    return counted(len(subject["memories"]), "memory", "memories")


def retry_failed_maintenance_calls(*, actor: str, agent_id: UUID | None = None) -> int:
    """Release the subjects of failed maintenance calls of an agent, or of the whole tenant, for new calls; return the number of calls.

    In the open transaction. The next job run creates the new calls; the failed ones remain, as retried.
    """
    rows = fetch(_RETRY, agent=agent_id)
    episodes = [
        subject["episode"] for _, subject_json in rows if "episode" in (subject := json.loads(subject_json))
    ]
    reset_failures(episodes)
    if rows:
        record(
            action=AuditAction.OPERATOR_ACT,
            actor=actor,
            agent_id=agent_id,
            message=f"requested new calls for {counted(len(rows), 'failed maintenance call')}",
            detail={"purposes": dict(Counter(purpose for purpose, _ in rows))},
        )
    return len(rows)
