"""Runs and steps as values, and the messages and signals about them."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db.models import QuerySet

from apps.queues import Task, TaskMessage
from apps.workflows.models import WorkflowRun, WorkflowStep
from arbor.memory.content import check_line
from arbor.signals import Signal, SignalName, signal
from arbor.workflows.traversal import StepState, WorkflowState
from arbor.workflows.values import WorkflowStepKind, WorkflowStepStatus

#: The actor of the changes that the legs of a run make.
ACTOR = "system:workflows"
#: The most characters of the reason for a decision or a cancellation.
REASON_LENGTH = 2_000


def checked_reason(text: str) -> str:
    """Return a person's reason without the space around it. Raises Invalid for a reason that is too long or cannot be stored."""
    reason = text.strip()
    check_line("a reason", reason, REASON_LENGTH)
    return reason


def state_of(run: WorkflowRun, steps: Sequence[WorkflowStep]) -> WorkflowState:
    """Return the state of a run, from its row and those of its steps in order."""
    return WorkflowState(input=run.input, visits=tuple(map(_visit_of, steps)))


def _visit_of(row: WorkflowStep) -> StepState:
    """Return a row as a visit of its step."""
    return StepState(
        name=row.name,
        kind=WorkflowStepKind(row.kind),
        status=WorkflowStepStatus(row.status),
        attempts=row.attempts,
        input=row.input,
        output=row.output,
        data=row.data,
        error=row.error,
        decision=decision_of(row),
        decided_by=row.decided_by,
    )


def decision_of(row: WorkflowStep) -> str:
    """Return how a person decided an approval; empty before, and for other steps."""
    if row.kind != WorkflowStepKind.APPROVAL or not row.decided_by:
        return ""
    return "denied" if row.error else "approved"


def steps_of(run_id: UUID) -> QuerySet[WorkflowStep]:
    """Return the steps of a run in their order."""
    steps: QuerySet[WorkflowStep] = WorkflowStep.objects.filter(run_id=run_id).order_by("number")
    return steps


def advance_message(*, run_id: UUID, tenant_id: UUID, shown: str) -> TaskMessage:
    """Return the message on which a worker walks a run."""
    return TaskMessage(
        task=Task.ADVANCE_WORKFLOW,
        tenant_id=tenant_id,
        arguments={"run_id": str(run_id)},
        shown=f"workflow={shown} run={run_id}",
    )


def run_signal(name: SignalName, run: WorkflowRun, **data: object) -> Signal:
    """Return a signal of a run, which all agents of the tenant may follow; its `agent` is the one that the run is for."""
    agent = run.agent_id or run.workflow.agent_id
    return signal(
        name, None, run=run.id, workflow=run.workflow.name, agent=str(agent) if agent else "", **data
    )
