"""Empty the prompts of old maintenance calls: they copy texts of memories, which may be purged."""

from __future__ import annotations

from uuid import UUID

from django.conf import settings

from apps.memories.services.jobs.job_runs import JobRunResult, run_job
from apps.tenants.packing import sql_literal
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import change

#: Prompts emptied in one step for one agent.
STEP = 500

# The condition of the partial index of prompts that are not emptied yet, and the age.
_OLD = f"""errand_status = 'complete' AND request <> {sql_literal({})}
    AND requested_at < now() - %(age)s::interval AND ended_at < now() - %(age)s::interval"""
_WAITING = f"""
SELECT DISTINCT agent_id FROM (
    SELECT agent_id FROM calls_externalcall
    WHERE tenant_id = t.id AND {_OLD} AND agent_id <> ALL(%(passed)s::uuid[]) ORDER BY requested_at LIMIT 1000
) old
"""  # noqa: S608 (no external input)
_EMPTY = f"""
UPDATE calls_externalcall SET request = {sql_literal({})}, sections = {sql_literal([])}
WHERE tenant_id = %(tenant)s AND id IN (
    SELECT id FROM calls_externalcall
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND {_OLD} ORDER BY requested_at LIMIT %(step)s
)
"""  # noqa: S608


def empty_prompts() -> JobRunResult:
    """Empty the prompts of maintenance calls completed more than ARBOR_MAINTENANCE_PROMPTS_DAYS ago, agent by agent."""
    seconds = settings.ARBOR_MAINTENANCE_PROMPTS_KEPT.total_seconds()
    return run_job("prompts", waiting=_WAITING.replace("%(age)s", f"'{seconds} seconds'"), step=_empty)


def _empty(tenant_id: UUID, agent_id: UUID) -> int:
    with tenant_transaction(tenant_id):
        return change(_EMPTY, agent=agent_id, step=STEP, age=settings.ARBOR_MAINTENANCE_PROMPTS_KEPT)
