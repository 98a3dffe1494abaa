"""Start scheduled workflows, and walk runs whose time has come or whose message was lost."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

import structlog

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.memories.services.jobs.job_runs import JobRunResult, run_job
from apps.tenants.scope import tenant_transaction
from apps.workflows.models import Workflow, WorkflowRun, WorkflowStep
from apps.workflows.services.definitions import plan_next_run
from apps.workflows.services.legs import advance_run
from apps.workflows.services.runs import RunRequest, start_run
from arbor.clock import Clock, SystemClock
from arbor.errors import ArborError
from arbor.workflows.values import OPEN_RUNS, WorkflowStepStatus, WorkflowTrigger, delay_after_failed_legs

log = structlog.get_logger(__name__)

#: The most workflows that one step starts for a tenant, the most due runs that it walks, and the most runs with an answer.
_BATCH = 50
#: Well below the period of the sweep.
_JOB_RUN_DURATION = timedelta(seconds=3)
#: The actor of scheduled runs.
SCHEDULER = "system:schedule"

# `run_job` visits agents; here the id of the tenant is that of its only "agent". Nothing runs on behalf of a suspended tenant.
_SCHEDULED = """
SELECT t.id AS agent_id WHERE EXISTS (
    SELECT FROM workflows_workflow w WHERE w.tenant_id = t.id AND w.next_run_at <= now()
) AND EXISTS (SELECT FROM tenants_tenant WHERE id = t.id AND status = 'active')
"""
_DUE = """
SELECT t.id AS agent_id WHERE (
    EXISTS (SELECT FROM workflows_workflowrun r WHERE r.tenant_id = t.id AND r.due_at <= now())
    OR EXISTS (
        SELECT FROM workflows_workflowstep s WHERE s.tenant_id = t.id AND s.status = 'answered' AND s.due_at <= now()
    )
) AND EXISTS (SELECT FROM tenants_tenant WHERE id = t.id AND status = 'active')
"""


def sweep_workflows() -> JobRunResult:
    """Start the scheduled workflows of all tenants, then walk their due runs."""
    started = run_job(
        "workflow schedules",
        waiting=_SCHEDULED,
        step=lambda tenant_id, _: start_scheduled(tenant_id),
        max_duration=_JOB_RUN_DURATION,
    )
    walked = run_job(
        "workflow runs",
        waiting=_DUE,
        step=lambda tenant_id, _: advance_due_runs(tenant_id),
        max_duration=_JOB_RUN_DURATION,
    )
    return started + walked


def start_scheduled(tenant_id: UUID, *, clock: Clock | None = None) -> int:
    """Start the due workflows of a tenant, each once for all times that have passed; return their number."""
    now = (clock or SystemClock()).now()
    with tenant_transaction(tenant_id):
        due = list(
            Workflow.objects.select_for_update(skip_locked=True)
            .filter(next_run_at__lte=now)
            .order_by("id")[:_BATCH]
        )
        for workflow in due:
            _start_due(workflow, now)
    return len(due)


def _start_due(workflow: Workflow, now: datetime) -> None:
    """Start a due workflow and plan its next run; record in the audit log why a run did not start."""
    slot = workflow.next_run_at
    assert slot is not None
    # A schedule that is no longer valid has no next run until a person changes it.
    workflow.next_run_at = None
    try:
        plan_next_run(workflow, after=now)
        start_run(
            request=RunRequest(
                workflow=workflow,
                input=workflow.scheduled_input,
                actor=SCHEDULER,
                trigger=WorkflowTrigger.SCHEDULE,
                key=f"schedule:{slot.isoformat()}",
            )
        )
    except ArborError as error:
        log.warning("workflow_start_failed", workflow=workflow.name, error=str(error))
        record(
            action=AuditAction.WORKFLOW_ENDED,
            actor=SCHEDULER,
            agent_id=workflow.agent_id,
            message=f"the scheduled run of {workflow.name} did not start: {error}",
            detail={"workflow_id": str(workflow.id), "slot": slot.isoformat()},
        )
    workflow.save(update_fields=["next_run_at"])


def advance_due_runs(tenant_id: UUID, *, clock: Clock | None = None) -> int:
    """Walk the runs of a tenant that are due, or whose step has an answer; return how many moved."""
    clock = clock or SystemClock()
    now = clock.now()
    with tenant_transaction(tenant_id):
        due = WorkflowRun.objects.filter(due_at__lte=now).order_by("due_at")
        answered = WorkflowRun.objects.filter(
            steps__status=WorkflowStepStatus.ANSWERED, steps__due_at__lte=now
        ).order_by("steps__due_at")
        leg_by_run = {
            run_id: leg for rows in (due, answered) for run_id, leg in rows.values_list("id", "leg")[:_BATCH]
        }
    return sum(_advance(run_id, leg, tenant_id, clock) for run_id, leg in sorted(leg_by_run.items()))


def _advance(run_id: UUID, leg: int, tenant_id: UUID, clock: Clock) -> bool:
    """Walk one run; put off a run whose leg raises."""
    try:
        return advance_run(run_id=run_id, tenant_id=tenant_id, clock=clock)
    except Exception:
        # A leg that raises may raise again in each sweep, and must not keep the tenant's other runs from moving.
        log.exception("workflow_leg_failed", run_id=str(run_id))
        _put_off(run_id, leg, tenant_id, now=clock.now())
        return False


def _put_off(run_id: UUID, leg: int, tenant_id: UUID, *, now: datetime) -> None:
    """Count a failed leg and delay the next sweep of its run, unless another worker has walked the run since."""
    with tenant_transaction(tenant_id):
        run: WorkflowRun | None = (
            WorkflowRun.objects.select_for_update(of=("self",))
            .filter(id=run_id, leg=leg, status__in=OPEN_RUNS)
            .first()
        )
        if run is None:
            return
        # The count stops below the largest number of its column.
        run.failed_legs = min(run.failed_legs + 1, 32_000)
        run.due_at = now + delay_after_failed_legs(run.failed_legs)
        run.save(update_fields=["failed_legs", "due_at"])
        WorkflowStep.objects.filter(run_id=run_id, status=WorkflowStepStatus.ANSWERED).update(
            due_at=run.due_at
        )
