"""Runs and steps between rows and values."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db.models import QuerySet

from apps.queues import Task, TaskMessage
from apps.workflows.models import WorkflowRun, WorkflowStep
from arbor.signals import Signal, SignalName, signal
from arbor.workflows.traversal import StepState, WorkflowState
from arbor.workflows.values import WorkflowStepKind, WorkflowStepStatus

#: The actor of what the walk of a run does.
ACTOR = "system:workflows"


def state_of(run: WorkflowRun, steps: Sequence[WorkflowStep]) -> WorkflowState:
    """Return the state of a run from its rows, in order."""
    return WorkflowState(input=run.input, visits=tuple(map(visit_of, steps)))


def visit_of(row: WorkflowStep) -> StepState:
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
    """Return the message that walks a run."""
    return TaskMessage(
        task=Task.ADVANCE_WORKFLOW,
        tenant_id=tenant_id,
        arguments={"run_id": str(run_id)},
        shown=f"workflow={shown} run={run_id}",
    )


def run_signal(name: SignalName, run: WorkflowRun, **data: object) -> Signal:
    """Return a signal of a run, which all agents of the tenant may follow; `agent` names the one that it runs for."""
    agent = run.agent_id or run.workflow.agent_id
    return signal(
        name, None, run=run.id, workflow=run.workflow.name, agent=str(agent) if agent else "", **data
    )
