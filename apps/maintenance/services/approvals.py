"""Expire requests for approval that nobody decided, and approvals that were not used in time."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from apps.authority.services.approvals import expire_approvals
from apps.memories.services.jobs.job_runs import JobRunResult, run_job
from apps.tenants.scope import tenant_transaction

_WAITING = """
SELECT DISTINCT agent_id FROM authority_actionapproval
WHERE tenant_id = t.id AND status IN ('pending', 'approved') AND expires_at <= now()
"""


def expire_overdue_approvals() -> JobRunResult:
    """Expire overdue requests, agent by agent."""
    return run_job("approvals", waiting=_WAITING, step=_expire)


def _expire(tenant_id: UUID, agent_id: UUID) -> int:
    with tenant_transaction(tenant_id):
        return expire_approvals(agent_id=agent_id, now=datetime.now(UTC))
