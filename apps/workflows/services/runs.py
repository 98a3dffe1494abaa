"""Start, cancel and list runs of workflows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from apps.agents.services.locks import lock_schedule
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.calls.services.maintenance_calls import cancel_maintenance_call, subject_of_step
from apps.queues import enqueue
from apps.signals.services.emission import emit
from apps.tenants.scope import current_tenant
from apps.tenants.services import require_active
from apps.workflows.models import Workflow, WorkflowRun, WorkflowStep
from apps.workflows.services.definitions import check_input, version_of
from apps.workflows.services.legs import report_end
from apps.workflows.services.rows import advance_message, checked_reason, run_signal, steps_of
from apps.workflows.services.step_requests import close_step_goal
from arbor.errors import Invalid, NotFound, TransitionIllegal
from arbor.memory.content import check_line
from arbor.signals import SignalName
from arbor.workflows.definition import read_definition
from arbor.workflows.values import (
    OPEN_RUNS,
    OPEN_STEPS,
    WorkflowRunStatus,
    WorkflowStepKind,
    WorkflowStepStatus,
    WorkflowTrigger,
)

#: The time after which a run that no worker has walked is walked by the sweep.
MESSAGE_LEASE = timedelta(seconds=15)
KEY_LENGTH = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRequest:
    """The start of a run."""

    workflow: Workflow
    input: Mapping[str, Any] = field(default_factory=dict)
    actor: str
    trigger: WorkflowTrigger = WorkflowTrigger.PERSON
    #: The agent that starts it.
    agent_id: UUID | None = None
    #: Identifies the start among those of the actor: a second start by the same key returns the first run. Empty: none.
    key: str = ""


@transaction.atomic
def start_run(*, request: RunRequest) -> WorkflowRun:
    """Start a run of the latest version, or return the run that the same key has started.

    Raises Invalid for the key, for an input that is not valid or differs from that of the key's run, and for steps without an
    agent; TransitionIllegal where the workflow is disabled or the tenant suspended; NotFound where it is deleted meanwhile.
    """
    workflow = request.workflow
    check_line("a key", request.key, KEY_LENGTH)
    if existing := _started_before(request):
        return existing
    require_active()
    if not workflow.enabled:
        raise TransitionIllegal(f"the workflow {workflow.name} is disabled; enable it first")
    version = version_of(workflow)
    definition = read_definition(version.source)
    lacking = definition.steps_without_agent()
    if lacking and workflow.agent_id is None and request.agent_id is None:
        raise Invalid(
            f"the steps {', '.join(lacking)} name no agent; give the workflow {workflow.name} one, or each step its own"
        )
    run = WorkflowRun(
        tenant_id=current_tenant(),
        workflow=workflow,
        version=version,
        trigger=request.trigger.value,
        started_by=request.actor,
        agent_id=request.agent_id,
        key=request.key,
        input=check_input(definition, request.input),
        due_at=datetime.now(UTC) + MESSAGE_LEASE,
    )
    try:
        with transaction.atomic():
            run.save(force_insert=True)
    except IntegrityError as error:
        # Another process started it by the same key, or deleted the workflow, at this moment.
        if existing := _started_before(request):
            return existing
        if Workflow.objects.filter(id=workflow.id).exists():
            raise
        raise NotFound(f"there is no workflow {workflow.name} any more") from error
    record(
        action=AuditAction.WORKFLOW_STARTED,
        actor=request.actor,
        agent_id=request.agent_id,
        message=f"started the workflow {workflow.name}, version {version.number}",
        detail={"run_id": str(run.id), "trigger": run.trigger},
    )
    emit(run_signal(SignalName.WORKFLOW_STARTED, run, trigger=run.trigger, actor=request.actor))
    enqueue(advance_message(run_id=run.id, tenant_id=run.tenant_id, shown=workflow.name))
    return run


@transaction.atomic
def cancel_run(*, run_id: UUID, actor: str, reason: str = "") -> WorkflowRun:
    """Cancel an open run with its waiting step. Raises NotFound, Invalid, TransitionIllegal for a run that has ended."""
    reason = checked_reason(reason)
    run: WorkflowRun | None = (
        WorkflowRun.objects.select_for_update(of=("self",))
        .select_related("workflow")
        .filter(id=run_id)
        .first()
    )
    if run is None:
        raise NotFound(f"there is no run {run_id} in this tenant")
    if run.status not in OPEN_RUNS:
        raise TransitionIllegal(f"the run {run_id} has {run.status} already, so it cannot be canceled")
    open_steps = list(steps_of(run_id).filter(status__in=OPEN_STEPS))
    for agent_id in sorted(step.agent_id for step in open_steps if step.goal_id and step.agent_id):
        lock_schedule(agent_id)
    now, why = datetime.now(UTC), f"canceled by {actor}{f': {reason}' if reason else ''}"
    for step in open_steps:
        _cancel_step(run, step, now=now, reason=why)
    run.status, run.error, run.ended_at, run.due_at = WorkflowRunStatus.CANCELED, why, now, None
    run.save(update_fields=["status", "error", "ended_at", "due_at"])
    report_end(run, actor=actor)
    return run


def run_by_id(run_id: UUID) -> WorkflowRun:
    """Return a run with its workflow and version. Raises NotFound."""
    run: WorkflowRun | None = (
        WorkflowRun.objects.select_related("workflow", "version").filter(id=run_id).first()
    )
    if run is None:
        raise NotFound(f"there is no run {run_id} in this tenant")
    return run


def runs(
    *, workflow_id: UUID | None = None, statuses: Collection[WorkflowRunStatus] = ()
) -> QuerySet[WorkflowRun]:
    """Return the runs of one workflow or of all, in the given statuses or in any, the latest first."""
    rows = WorkflowRun.objects.select_related("workflow", "version").order_by("-started_at", "-id")
    if workflow_id is not None:
        rows = rows.filter(workflow_id=workflow_id)
    return rows.filter(status__in=statuses) if statuses else rows


def _started_before(request: RunRequest) -> WorkflowRun | None:
    """Return the run that the same actor has started by the same key. Raises Invalid for another input."""
    if not request.key:
        return None
    started: WorkflowRun | None = (
        runs(workflow_id=request.workflow.id)
        .filter(trigger=request.trigger, started_by=request.actor, key=request.key)
        .first()
    )
    if started is not None and started.input != dict(request.input):
        raise Invalid(
            f"the key {request.key!r} has started the run {started.id} with another input; repeat that input, or choose"
            " another key"
        )
    return started


def _cancel_step(run: WorkflowRun, step: WorkflowStep, *, now: datetime, reason: str) -> None:
    if step.goal_id:
        close_step_goal(run, step=step, succeeded=False, reason=reason)
    step.status, step.completed_at, step.error, step.due_at = WorkflowStepStatus.CANCELED, now, reason, None
    step.save(update_fields=["status", "completed_at", "error", "due_at"])
    if step.kind == WorkflowStepKind.PROMPT and step.agent_id:
        subject = subject_of_step(step.id, attempt=step.attempts)
        cancel_maintenance_call(agent_id=step.agent_id, subject=subject, reason=reason)
