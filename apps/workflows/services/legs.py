"""Walk runs leg by leg: from an answer to the next step that waits, or to the end.

A leg is one transaction that locks the run: a worker that dies leaves the run as it was, and the next worker repeats the leg.
The leg that uses an answer also writes the step as ended, so no answer is used twice. Nothing outside the database is called.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import structlog

from apps.agents.services.locks import lock_schedule
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.signals.services.emission import emit
from apps.tenants.models import TenantStatus
from apps.tenants.scope import tenant_transaction
from apps.workflows.models import WorkflowRun, WorkflowStep
from apps.workflows.services.rows import ACTOR, decision_of, run_signal, state_of, steps_of
from apps.workflows.services.step_requests import (
    AnswerRequest,
    agent_of,
    close_step_goal,
    request_answer,
)
from arbor.clock import Clock, SystemClock
from arbor.errors import ArborError
from arbor.ids import uuid7
from arbor.pipeline.engine import NodeOutcome, Progress, ProgressStatus
from arbor.quotations import counted
from arbor.signals import SignalName
from arbor.workflows.definition import WorkflowDefinition, read_definition
from arbor.workflows.traversal import (
    RetryDue,
    StepAnswer,
    StepState,
    StepWait,
    WorkflowState,
    answer_after_timeout,
    begin_traversal,
    resume_traversal,
)
from arbor.workflows.values import (
    OPEN_RUNS,
    OPEN_STEPS,
    WorkflowRunStatus,
    WorkflowStepKind,
    WorkflowStepStatus,
)

log = structlog.get_logger(__name__)

#: The columns of a stored step that later legs change.
_CHANGED = (
    "status",
    "attempts",
    "output",
    "data",
    "error",
    "decided_by",
    "agent",
    "goal_id",
    "completed_at",
    "due_at",
)


def advance_run(*, run_id: UUID, tenant_id: UUID, clock: Clock | None = None) -> bool:
    """Walk a run as far as possible now; return False if it has ended, waits for an answer, or is unknown.

    Nothing runs on behalf of a suspended tenant: its runs wait, and the sweep walks them once the tenant is active again.
    """
    clock = clock or SystemClock()
    with tenant_transaction(tenant_id):
        run: WorkflowRun | None = (
            WorkflowRun.objects.select_for_update(of=("self",))
            .select_related("workflow", "version")
            .filter(id=run_id, status__in=OPEN_RUNS, tenant__status=TenantStatus.ACTIVE)
            .first()
        )
        return run is not None and _RunLeg(run, clock).advance()


class _RunLeg:
    """One leg of a locked run."""

    def __init__(self, run: WorkflowRun, clock: Clock) -> None:
        self._run = run
        self._clock = clock
        self._now = clock.now()
        self._rows: list[WorkflowStep] = list(steps_of(run.id))
        self._definition: WorkflowDefinition = read_definition(run.version.source)

    def advance(self) -> bool:
        """Walk, request the answer of the next step, and write everything; return False if the step has no answer yet."""
        if self._run.position and self._answer() is None:
            return False
        self._lock()
        progress, request = self._request(self._traverse())
        self._close_goals(progress.checkpoint.state)
        self._write(progress, request)
        return True

    def _lock(self) -> None:
        """Lock the schedules of agents in the order of ids, then the waiting step, whose answer may have come since it was read.

        After a step for which nobody can be asked, the same leg walks on to another: so all agents that a step may be delegated to are locked.
        """
        delegates = {
            spec.agent: spec
            for spec in self._definition.steps.values()
            if spec.kind is WorkflowStepKind.DELEGATE
        }
        agents = (agent_of(self._run, spec) for spec in delegates.values())
        agent_ids = {agent.id for agent in agents if agent is not None}
        agent_ids |= {row.agent_id for row in self._rows[-1:] if row.agent_id}
        for agent_id in sorted(agent_ids):
            lock_schedule(agent_id)
        if self._rows:
            self._rows[-1] = steps_of(self._run.id).select_for_update().get(id=self._rows[-1].id)

    def _answer(self) -> StepAnswer | RetryDue | None:
        """Return the answer to the waiting step; None if there is none yet."""
        return _answer_to(self._rows[-1], self._definition, self._now)

    def _traverse(self) -> Progress[WorkflowState]:
        state = state_of(self._run, self._rows)
        if not self._run.position:
            return begin_traversal(self._definition, state, clock=self._clock)
        answer = self._answer()
        assert answer is not None, f"the answer to the step {self._rows[-1].id} is gone"
        return self._resume(self._run.position, state, answer)

    def _resume(
        self, position: dict[str, object], state: WorkflowState, answer: StepAnswer | RetryDue
    ) -> Progress[WorkflowState]:
        return resume_traversal(self._definition, position, state, answer, clock=self._clock)

    def _request(self, progress: Progress[WorkflowState]) -> tuple[Progress[WorkflowState], AnswerRequest]:
        """Request the answer of the waiting step; a step for which nobody can be asked is a failed try."""
        while progress.suspension is not None:
            wait: StepWait = progress.suspension.payload
            if wait.is_retry:
                break
            state = progress.checkpoint.state
            row_id = self._row_id(len(state.visits) - 1)
            try:
                return progress, request_answer(
                    self._run, spec=wait.spec, state=state, step_id=row_id, now=self._now
                )
            except ArborError as error:
                position = progress.checkpoint.position()
                progress = self._resume(position, state, StepAnswer(error=str(error)))
        return progress, AnswerRequest()

    def _row_id(self, index: int) -> UUID:
        """Return the id of a visit's row, which is created if there is none yet."""
        while len(self._rows) <= index:
            self._rows.append(WorkflowStep(id=uuid7(), tenant_id=self._run.tenant_id, run=self._run))
        return self._rows[index].id

    def _close_goals(self, state: WorkflowState) -> None:
        """Close the goals of delegated steps that have ended in this leg."""
        for row, visit in zip(self._rows, state.visits, strict=False):
            if row.goal_id and row.status in OPEN_STEPS and visit.status not in OPEN_STEPS:
                succeeded = visit.status is WorkflowStepStatus.SUCCEEDED
                close_step_goal(self._run, step=row, succeeded=succeeded, reason=visit.error)

    def _write(self, progress: Progress[WorkflowState], request: AnswerRequest) -> None:
        """Write the run and the steps that had not ended before; the request belongs to the last step."""
        state = progress.checkpoint.state
        wait: StepWait | None = progress.suspension.payload if progress.suspension is not None else None
        until = request.until or (self._now + wait.waits if wait and wait.waits else None)
        for index, visit in enumerate(state.visits):
            row_id = self._row_id(index)
            row = self._rows[index]
            if row.completed_at is not None:
                continue
            if index == len(state.visits) - 1:
                self._write_step(row, visit, index, request, until)
            else:
                self._write_step(row, visit, index, AnswerRequest(), None)
            log.debug("workflow_step_written", step_id=str(row_id), status=row.status)
        self._write_run(progress, until)

    def _write_step(
        self, row: WorkflowStep, visit: StepState, index: int, request: AnswerRequest, until: datetime | None
    ) -> None:
        is_new = not row.number
        ended = visit.status not in OPEN_STEPS
        row.number, row.name, row.kind = index + 1, visit.name, visit.kind.value
        row.status = (request.status or visit.status).value
        row.attempts = visit.attempts - request.uncounted
        row.input, row.output, row.data = visit.input, visit.output, visit.data
        row.error, row.decided_by = request.error or visit.error, visit.decided_by
        row.agent_id = request.agent_id or row.agent_id
        row.goal_id = request.goal_id or row.goal_id
        row.started_at = row.started_at or self._now
        row.completed_at, row.due_at = (self._now, None) if ended else (None, until)
        row.save(force_insert=is_new, update_fields=None if is_new else _CHANGED)
        is_requested = bool(request.agent_id) or is_new
        self._report(row, cut=visit.cut + request.cut, ended=ended, is_requested=is_requested)

    def _report(self, row: WorkflowStep, *, cut: int, ended: bool, is_requested: bool) -> None:
        """Record a cut of the step in the audit log, and emit that it ended, or that it waits for an approval."""
        if cut:
            record(
                action=AuditAction.TRUNCATED,
                actor=ACTOR,
                agent_id=row.agent_id,
                message=f"cut {counted(cut, 'character')} of the step {row.name} of {self._run.workflow.name}",
                detail={"run_id": str(self._run.id), "step_id": str(row.id), "characters": cut},
            )
        if ended:
            emit(
                run_signal(
                    SignalName.WORKFLOW_STEP, self._run, step=row.name, kind=row.kind, status=row.status
                )
            )
        elif is_requested and row.kind == WorkflowStepKind.APPROVAL:
            emit(run_signal(SignalName.WORKFLOW_APPROVAL, self._run, step_id=row.id, step=row.name))

    def _write_run(self, progress: Progress[WorkflowState], until: datetime | None) -> None:
        run = self._run
        run.position = progress.checkpoint.position()
        run.leg += 1
        run.failed_legs = 0
        run.due_at, run.status = until, WorkflowRunStatus.WAITING
        if progress.status is ProgressStatus.FINISHED:
            succeeded = progress.outcome in (NodeOutcome.SUCCESS, NodeOutcome.SKIPPED)
            run.status = WorkflowRunStatus.SUCCEEDED if succeeded else WorkflowRunStatus.FAILED
            run.exit, run.error = progress.exit, "" if succeeded else _failure_reason(progress)
            run.ended_at, run.due_at = self._now, None
        run.save(
            update_fields=["position", "leg", "failed_legs", "due_at", "status", "exit", "error", "ended_at"],
            force_update=True,
        )
        if run.ended_at is not None:
            report_end(run, actor=ACTOR)


def report_end(run: WorkflowRun, *, actor: str) -> None:
    """Record the end of a run in the audit log, and emit its signal."""
    record(
        action=AuditAction.WORKFLOW_ENDED,
        actor=actor,
        agent_id=run.agent_id,
        message=f"the run of {run.workflow.name} {run.status}{f': {run.error}' if run.error else ''}",
        detail={"run_id": str(run.id), "exit": run.exit},
    )
    emit(run_signal(SignalName.WORKFLOW_ENDED, run, status=WorkflowRunStatus(run.status).value))


def _answer_to(
    row: WorkflowStep, definition: WorkflowDefinition, now: datetime
) -> StepAnswer | RetryDue | None:
    """Return the stored answer to a waiting step, or what follows once its time is over; None if there is none yet."""
    if row.status == WorkflowStepStatus.ANSWERED:
        return StepAnswer(
            output=row.output,
            error=row.error,
            final=row.kind == WorkflowStepKind.APPROVAL,
            decision=decision_of(row),
            decided_by=row.decided_by,
        )
    if row.due_at is not None and row.due_at <= now:
        return answer_after_timeout(definition.steps[row.name], WorkflowStepStatus(row.status))
    return None


def _failure_reason(progress: Progress[WorkflowState]) -> str:
    """Return why a run failed: the error of the last failed step, and the fault of the traversal."""
    failed = [visit for visit in progress.checkpoint.state.visits if visit.error]
    last = f"{failed[-1].name}: {failed[-1].error}" if failed else f"it reached the exit {progress.exit}"
    return f"{last} ({progress.fault})" if progress.fault and failed else progress.fault or last
