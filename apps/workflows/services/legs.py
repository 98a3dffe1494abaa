"""Walk runs: one leg, from an answer to the next step that waits, or to the end.

A leg is one transaction that locks the run: a worker that dies leaves the run as it was, and whoever walks it next repeats the leg.
The answer of a step is stored with the step before, so no answer is used twice. Nothing outside the database is called.
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
from apps.workflows.services.asking import Asked, agent_of, ask, release_step
from apps.workflows.services.rows import ACTOR, run_signal, state_of, steps_of
from arbor.clock import Clock, SystemClock
from arbor.errors import ArborError
from arbor.ids import uuid7
from arbor.pipeline.engine import NodeOutcome, Progress, ProgressStatus
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

#: The columns of a step that its later legs change.
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
    """Walk a run as far as it goes now; return False if it is over, waits for an answer, or is unknown.

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
        """Walk, ask for what the next step needs, and write everything."""
        if self._run.position and self._answer() is None:
            return False
        self._lock()
        progress, asked = self._ask(self._traverse())
        self._release_ended(progress.checkpoint.state)
        self._write(progress, asked)
        return True

    def _lock(self) -> None:
        """Lock agents in the order of ids, then the waiting step, whose answer may have come since it was read.

        A step that nobody can be asked for leads on to another one in the same leg, so all agents are locked that may be handed a step.
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

    def _ask(self, progress: Progress[WorkflowState]) -> tuple[Progress[WorkflowState], Asked]:
        """Ask for what the waiting step needs; a step that cannot be asked is a failed try."""
        while progress.suspension is not None:
            wait: StepWait = progress.suspension.payload
            if wait.is_retry:
                break
            state = progress.checkpoint.state
            row_id = self._row_id(len(state.visits) - 1)
            try:
                return progress, ask(self._run, wait.spec, state, step_id=row_id, now=self._now)
            except ArborError as error:
                position = progress.checkpoint.position()
                progress = self._resume(position, state, StepAnswer(error=str(error)))
        return progress, Asked()

    def _row_id(self, index: int) -> UUID:
        """Return the id of a visit's row, made where there is none yet."""
        while len(self._rows) <= index:
            self._rows.append(WorkflowStep(id=uuid7(), tenant_id=self._run.tenant_id, run=self._run))
        return self._rows[index].id

    def _release_ended(self, state: WorkflowState) -> None:
        """Close the goals of delegated steps that have ended."""
        for row, visit in zip(self._rows, state.visits, strict=False):
            if row.goal_id and row.status in OPEN_STEPS and visit.status not in OPEN_STEPS:
                release_step(row, reached=visit.status is WorkflowStepStatus.SUCCEEDED, reason=visit.error)

    def _write(self, progress: Progress[WorkflowState], asked: Asked) -> None:
        state = progress.checkpoint.state
        wait: StepWait | None = progress.suspension.payload if progress.suspension is not None else None
        until = asked.until or (self._now + wait.waits if wait and wait.waits else None)
        for index, visit in enumerate(state.visits):
            row_id = self._row_id(index)
            row = self._rows[index]
            if row.completed_at is not None:
                continue
            is_last = index == len(state.visits) - 1
            self._write_step(row, visit, index, asked if is_last else Asked(), until if is_last else None)
            log.debug("workflow_step_written", step_id=str(row_id), status=row.status)
        self._write_run(progress, until)

    def _write_step(
        self, row: WorkflowStep, visit: StepState, index: int, asked: Asked, until: datetime | None
    ) -> None:
        is_new = not row.number
        ended = visit.status not in OPEN_STEPS
        row.number, row.name, row.kind = index + 1, visit.name, visit.kind.value
        row.status = (asked.status or visit.status).value
        row.attempts = visit.attempts - asked.uncounted
        row.input, row.output, row.data = visit.input, visit.output, visit.data
        row.error, row.decided_by = asked.error or visit.error, visit.decided_by
        row.agent_id = asked.agent_id or row.agent_id
        row.goal_id = asked.goal_id or row.goal_id
        row.started_at = row.started_at or self._now
        row.completed_at, row.due_at = (self._now, None) if ended else (None, until)
        row.save(force_insert=is_new, update_fields=None if is_new else _CHANGED)
        self._report(row, cut=visit.cut + asked.cut, ended=ended, asked=bool(asked.agent_id) or is_new)

    def _report(self, row: WorkflowStep, *, cut: int, ended: bool, asked: bool) -> None:
        if cut:
            record(
                action=AuditAction.TRUNCATED,
                actor=ACTOR,
                agent_id=row.agent_id,
                message=f"cut {cut:,} characters of the step {row.name} of {self._run.workflow.name}",
                detail={"run_id": str(self._run.id), "step_id": str(row.id), "characters": cut},
            )
        if ended:
            emit(
                run_signal(
                    SignalName.WORKFLOW_STEP, self._run, step=row.name, kind=row.kind, status=row.status
                )
            )
        elif asked and row.kind == WorkflowStepKind.APPROVAL:
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
            run.exit, run.error = progress.exit, "" if succeeded else _reason(progress)
            run.ended_at, run.due_at = self._now, None
        run.save(
            update_fields=["position", "leg", "failed_legs", "due_at", "status", "exit", "error", "ended_at"],
            force_update=True,
        )
        if run.ended_at is not None:
            end_reported(run, actor=ACTOR)


def end_reported(run: WorkflowRun, *, actor: str) -> None:
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
    """Return the answer to a waiting step: the stored one, or that its time is over; None if there is none yet."""
    if row.status == WorkflowStepStatus.ANSWERED:
        return StepAnswer(
            output=row.output,
            error=row.error,
            final=row.kind == WorkflowStepKind.APPROVAL,
            decision=("denied" if row.error else "approved") if row.kind == WorkflowStepKind.APPROVAL else "",
            decided_by=row.decided_by,
        )
    if row.due_at is not None and row.due_at <= now:
        return answer_after_timeout(definition.steps[row.name], WorkflowStepStatus(row.status))
    return None


def _reason(progress: Progress[WorkflowState]) -> str:
    """Return why a run failed: the fault of the walk, or the error of the last failed step."""
    failed = [visit for visit in progress.checkpoint.state.visits if visit.error]
    last = f"{failed[-1].name}: {failed[-1].error}" if failed else f"it reached the exit {progress.exit}"
    return f"{last} ({progress.fault})" if progress.fault and failed else progress.fault or last
