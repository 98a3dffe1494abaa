"""Store the answers of models, people and agents to waiting steps; the next leg of the run reads them.

An answer is one compare-and-set on the step's row: the first one counts. The transaction locks that row last, so it never waits for
another lock while it has this one.
"""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.queues import enqueue
from apps.workflows.models import WorkflowStep
from apps.workflows.services.rows import advance_message, checked_reason
from arbor.errors import Invalid, NotFound, TransitionIllegal
from arbor.models.json_text import storable
from arbor.workflows.values import OPEN_RUNS, OUTPUT_LENGTH, WorkflowStepKind, WorkflowStepStatus


def answer_prompt(*, step_id: UUID, attempt: int, output: str) -> bool:
    """Store the reply of a model in the open transaction; return False if the step does not wait for this try."""
    return _answer(WorkflowStep.objects.filter(id=step_id, attempts=attempt), output=output)


def fail_prompt(*, step_id: UUID, attempt: int, reason: str) -> bool:
    """Store why a model gave no usable reply; return False if the step does not wait for this try."""
    return _answer(WorkflowStep.objects.filter(id=step_id, attempts=attempt), error=reason)


@transaction.atomic
def decide_step(*, step_id: UUID, approved: bool, actor: str, reason: str = "") -> WorkflowStep:
    """Approve or deny a waiting approval step. Raises NotFound, Invalid, and TransitionIllegal for a step that does not wait."""
    reason = checked_reason(reason)
    step = step_by_id(step_id)
    if step.kind != WorkflowStepKind.APPROVAL:
        raise Invalid(
            f"the step {step.name} is a {step.kind} step; only an approval step is approved or denied"
        )
    error = "" if approved else f"denied by {actor}{f': {reason}' if reason else ''}"
    waiting = WorkflowStep.objects.filter(id=step_id)
    if not _answer(waiting, output=reason, error=error, decided_by=actor):
        raise TransitionIllegal(
            f"the step {step.name} is {_status_of(step)}, so it cannot be decided any more"
        )
    verdict = "approved" if approved else "denied"
    record(
        action=AuditAction.STEP_DECIDED,
        actor=actor,
        message=f"{verdict} the step {step.name} of {step.run.workflow.name}{f': {reason}' if reason else ''}",
        detail={"run_id": str(step.run_id), "step_id": str(step.id)},
    )
    return step_by_id(step_id)


@transaction.atomic
def complete_delegated_step(
    *, step_id: UUID, agent_id: UUID, output: str, failed: bool, actor: str
) -> WorkflowStep:
    """Store an agent's answer to a step that was delegated to it; with `failed`, the output is why it could not be done.

    Raises NotFound, also for another agent's step, Invalid for the output, and TransitionIllegal for a step that has ended.
    """
    output = output.strip()
    if not 1 <= len(output) <= OUTPUT_LENGTH:
        raise Invalid(f"the output of a step has 1 to {OUTPUT_LENGTH:,} characters, got {len(output):,}")
    delegated = WorkflowStep.objects.filter(id=step_id, agent_id=agent_id, kind=WorkflowStepKind.DELEGATE)
    step: WorkflowStep | None = delegated.select_related("run__workflow").first()
    if step is None:
        raise NotFound(f"no step {step_id} is delegated to you")
    answered = _answer(
        delegated, output="" if failed else output, error=output if failed else "", decided_by=actor
    )
    if not answered:
        raise TransitionIllegal(
            f"the step {step.name} is {_status_of(step)}, so it cannot be completed any more"
        )
    return step_by_id(step_id)


def step_by_id(step_id: UUID) -> WorkflowStep:
    """Return a step with its run and workflow. Raises NotFound."""
    step: WorkflowStep | None = (
        WorkflowStep.objects.select_related("run__workflow", "agent").filter(id=step_id).first()
    )
    if step is None:
        raise NotFound(f"there is no step {step_id} in this tenant")
    return step


def waiting_approvals() -> QuerySet[WorkflowStep]:
    """Return the approval steps that wait for a person, the oldest first."""
    steps: QuerySet[WorkflowStep] = WorkflowStep.objects.filter(
        kind=WorkflowStepKind.APPROVAL, status=WorkflowStepStatus.WAITING
    )
    return steps.select_related("run__workflow").order_by("started_at", "id")


def _status_of(step: WorkflowStep) -> str:
    """Return the status of a step as it is now; another answer may have come since the step was read."""
    return step_by_id(step.id).status


def _answer(
    steps: QuerySet[WorkflowStep], *, output: str = "", error: str = "", decided_by: str = ""
) -> bool:
    """Store the answer of a waiting step and enqueue its run; return False if the step does not wait.

    The leg cuts an output that is too long, and records the cut in the audit log.
    """
    waiting = steps.filter(status=WorkflowStepStatus.WAITING, run__status__in=OPEN_RUNS)
    found = waiting.values_list("id", "run_id", "tenant_id", "run__workflow__name").first()
    if found is None:
        return False
    step_id, run_id, tenant_id, workflow = found
    # Under the conditions of `steps` once more: the step may wait for another try, or another agent, by now.
    changed = steps.filter(id=step_id, status=WorkflowStepStatus.WAITING).update(
        status=WorkflowStepStatus.ANSWERED,
        output=storable(output),
        error=storable(error),
        decided_by=decided_by,
        # If the message is lost, the sweep walks the run.
        due_at=Now(),
    )
    if changed:
        enqueue(advance_message(run_id=run_id, tenant_id=tenant_id, shown=workflow))
    return bool(changed)
