"""Columns about steps of workflows in the statement that reads a situation; the agent is `a`.

Steps are arrays, in the order in which `arbor.heartbeat.influence` unpacks them.
"""

from __future__ import annotations

#: The latest ended steps that were delegated to other agents of the tenant. Read for agents that may delegate.
DELEGATIONS_COLUMN = """
CASE WHEN a.id = ANY(%(delegating)s::uuid[]) THEN (
    SELECT coalesce(json_agg(json_build_array(handler.name, step.about, step.completed, step.attempts, step.error)), '[]')
    FROM (
        SELECT agent_id, concat_ws(' ', replace(name, '_', ' '), left(input, 300)) AS about, status = 'succeeded' AS completed,
            attempts, left(error, 200) AS error
        FROM workflows_workflowstep
        WHERE tenant_id = %(tenant)s AND kind = 'delegate' AND completed_at IS NOT NULL AND agent_id IS NOT NULL
            AND agent_id <> a.id AND status IN ('succeeded', 'failed')
        ORDER BY completed_at DESC LIMIT %(delegations)s
    ) step
    CROSS JOIN LATERAL (
        SELECT name FROM agents_agent WHERE tenant_id = %(tenant)s AND id = step.agent_id LIMIT 1
    ) handler
) ELSE '[]' END AS delegations
"""
#: The latest outputs of steps that the agent itself carried out. Read for agents that may write for people.
STEP_RESULTS_COLUMN = """
CASE WHEN a.id = ANY(%(publishing)s::uuid[]) OR a.id = ANY(%(writing)s::uuid[]) THEN (
    SELECT coalesce(json_agg(json_build_array(flow.name, step.name, step.task, step.output, step.completed_at)), '[]')
    FROM (
        SELECT run_id, name, left(input, 200) AS task, left(output, 300) AS output, completed_at
        FROM workflows_workflowstep
        WHERE tenant_id = %(tenant)s AND agent_id = a.id AND status = 'succeeded' AND output <> ''
        ORDER BY started_at DESC LIMIT %(step_results)s
    ) step
    CROSS JOIN LATERAL (
        SELECT w.name FROM workflows_workflowrun r JOIN workflows_workflow w ON w.tenant_id = r.tenant_id AND w.id = r.workflow_id
        WHERE r.tenant_id = %(tenant)s AND r.id = step.run_id LIMIT 1
    ) flow
) ELSE '[]' END AS step_results
"""
#: Whether a step waits for an answer of the agent. Read for agents that may answer steps.
WAITING_STEP_COLUMN = """
a.id = ANY(%(answering)s::uuid[]) AND EXISTS (
    SELECT FROM workflows_workflowstep
    WHERE tenant_id = %(tenant)s AND agent_id = a.id AND kind = 'delegate' AND status = 'waiting'
) AS has_waiting_step
"""
#: The most steps that the columns of several steps read.
DELEGATIONS_READ = 40
STEP_RESULTS_READ = 8


def step_values() -> dict[str, int]:
    """Return the values of the columns, besides the ids of the tenant and of agents."""
    return {"delegations": DELEGATIONS_READ, "step_results": STEP_RESULTS_READ}
