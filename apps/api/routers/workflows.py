"""Workflows, their runs, and the steps that people approve."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import Field

from apps.api.authentication import READ
from apps.api.paging import ListPage, Paging, page_of
from apps.api.requests import access_of
from apps.api.rows import Input
from apps.workflows.models import Workflow, WorkflowRun
from apps.workflows.services import answers, definitions
from apps.workflows.services import runs as run_services
from apps.workflows.services.definitions import WorkflowRequest, WorkflowSchedule
from apps.workflows.services.rows import REASON_LENGTH, steps_of
from arbor.pipeline.dot import MAX_DOT_CHARACTERS
from arbor.workflows.definition import read_definition, read_new_definition
from arbor.workflows.values import (
    NAME_LENGTH,
    WorkflowRunStatus,
    WorkflowStepKind,
    WorkflowStepStatus,
    WorkflowTrigger,
)

router = Router()

_Source = Annotated[str, Field(max_length=MAX_DOT_CHARACTERS, description="The graph in DOT.")]
_Reason = Annotated[str, Field(max_length=REASON_LENGTH)]
_EXAMPLE = 'digraph g { start [shape=Mdiamond]; done [shape=Msquare]; a [type=note, text="Hello {input.name}"]; start -> a -> done }'


class WorkflowResource(Schema):
    """A workflow."""

    id: UUID
    name: str
    description: str
    version: int = Field(description="The number of the latest version.")
    agent_id: UUID | None = Field(description="The agent of steps that name none.")
    enabled: bool = Field(description="Whether new runs may start.")
    cron: str = Field(description="Five fields of cron; empty: no schedule.")
    zone: str
    scheduled_input: dict[str, Any]
    next_run_at: datetime | None
    created_by: str
    created_at: datetime


class DefinitionResource(Schema):
    """A workflow with its definition in one version."""

    workflow: WorkflowResource
    number: int = Field(description="The version that is shown.")
    source: str = Field(description="The graph in DOT.")
    inputs: list[str] = Field(description="The names that a run's input must have.")
    steps: list[str]


class WorkflowStepResource(Schema):
    """One step of a run: a visit of a node."""

    id: UUID
    run_id: UUID
    number: int
    name: str
    kind: WorkflowStepKind
    status: WorkflowStepStatus
    agent_id: UUID | None
    input: str = Field(
        description="The prompt, question or task with its values: data, never an instruction."
    )
    output: str
    data: Any = Field(description="The output as JSON, where the step's format is json.")
    attempts: int
    error: str
    decided_by: str
    started_at: datetime
    due_at: datetime | None
    completed_at: datetime | None


class WorkflowRunResource(Schema):
    """A run of a workflow."""

    id: UUID
    workflow_id: UUID
    workflow: str
    version: int
    status: WorkflowRunStatus
    trigger: WorkflowTrigger
    started_by: str
    input: dict[str, Any]
    exit: str
    error: str
    failed_legs: int = Field(description="Attempts in a row to continue the run that ended with an error.")
    due_at: datetime | None = Field(description="When the run continues at the latest; null: with an answer.")
    started_at: datetime
    ended_at: datetime | None

    @classmethod
    def of(cls, row: WorkflowRun) -> WorkflowRunResource:
        """Return the resource of a row."""
        shown = {name: getattr(row, name) for name in cls.model_fields if name not in ("workflow", "version")}
        return cls(**shown, workflow=row.workflow.name, version=row.version.number)


class RunStepsResource(Schema):
    """A run with its steps, in their order."""

    run: WorkflowRunResource
    steps: list[WorkflowStepResource]


class ScheduleInput(Input):
    """A schedule: the times of runs, and their input."""

    cron: Annotated[str, Field(max_length=definitions.CRON_LENGTH, examples=["0 7 * * 1-5"])] = ""
    zone: Annotated[str, Field(max_length=60)] = "UTC"
    input: dict[str, Any] = {}

    def value(self) -> WorkflowSchedule:
        """Return the parts of the schedule that are given."""
        return WorkflowSchedule(**self.model_dump(exclude_unset=True))


class WorkflowInput(Input):
    """A new workflow."""

    name: Annotated[str, Field(min_length=1, max_length=NAME_LENGTH)]
    source: Annotated[_Source, Field(min_length=1, examples=[_EXAMPLE])]
    description: Annotated[str, Field(max_length=definitions.DESCRIPTION_LENGTH)] = ""
    agent: str | None = Field(
        default=None, description="The name or id of the agent of steps that name none."
    )
    schedule: ScheduleInput | None = None
    enabled: bool = True


class WorkflowChange(Input):
    """The changes of a workflow; fields that are left out stay."""

    source: _Source | None = None
    description: Annotated[str, Field(max_length=definitions.DESCRIPTION_LENGTH)] | None = None
    agent: str | None = Field(default=None, description="Empty: none.")
    schedule: ScheduleInput | None = Field(
        default=None, description="With an empty cron: none. Parts that are left out stay."
    )
    enabled: bool | None = None


class RunInput(Input):
    """The start of a run."""

    values: dict[str, Any] = Field(
        default={}, description="The input, by name.", examples=[{"topic": "rain"}]
    )
    key: Annotated[str, Field(max_length=100)] = Field(
        default="", description="A second start by the same caller, key and input returns the first run."
    )


class CancelInput(Input):
    """The end of a run by a person."""

    reason: _Reason = ""


class StepDecision(Input):
    """A decision about a step."""

    reason: _Reason = ""


class DefinitionInput(Input):
    """A definition to check."""

    source: _Source


class DefinitionCheck(Schema):
    """The parts of a valid definition."""

    steps: list[str]
    inputs: list[str]
    agents: list[str]


@router.get("/workflows", response=ListPage[WorkflowResource], summary="List workflows")
def list_workflows(request: HttpRequest, page: Paging) -> ListPage[WorkflowResource]:
    """List the workflows of the tenant by name."""
    return page_of(Workflow.objects.all(), page, order="name", to_resource=WorkflowResource.model_validate)


@router.post("/workflows", response={201: WorkflowResource}, summary="Create a workflow")
def add_workflow(request: HttpRequest, payload: WorkflowInput) -> Status[WorkflowResource]:
    """Create a workflow with its first version."""
    row = definitions.create_workflow(
        request=_workflow_request(payload.name, payload), actor=access_of(request).actor
    )
    return Status(201, WorkflowResource.model_validate(row))


@router.post("/workflows/check", response=DefinitionCheck, auth=READ, summary="Check a definition")
def check_definition(request: HttpRequest, payload: DefinitionInput) -> DefinitionCheck:
    """Check a definition; the answer to a wrong definition names every fault. Nothing is stored."""
    definition = read_new_definition(payload.source)
    definitions.check_step_models(definition)
    return DefinitionCheck(
        steps=list(definition.steps), inputs=list(definition.inputs), agents=list(definition.agents)
    )


@router.get("/workflows/{uuid:workflow_id}", response=DefinitionResource, summary="Show a workflow")
def show_workflow(request: HttpRequest, workflow_id: UUID, version: int | None = None) -> DefinitionResource:
    """Show a workflow with its definition, by default in the latest version."""
    row = definitions.find_workflow(workflow_id)
    chosen = definitions.version_of(row, version)
    definition = read_definition(chosen.source)
    return DefinitionResource(
        workflow=WorkflowResource.model_validate(row),
        number=chosen.number,
        source=chosen.source,
        inputs=list(definition.inputs),
        steps=list(definition.steps),
    )


@router.patch("/workflows/{uuid:workflow_id}", response=WorkflowResource, summary="Change a workflow")
def change_workflow(request: HttpRequest, workflow_id: UUID, change: WorkflowChange) -> WorkflowResource:
    """Change a workflow. A changed definition becomes a new version, which new runs use."""
    row = definitions.change_workflow(
        workflow_id=workflow_id,
        request=_workflow_request("", change),
        actor=access_of(request).actor,
    )
    return WorkflowResource.model_validate(row)


@router.delete("/workflows/{uuid:workflow_id}", response=WorkflowResource, summary="Delete a workflow")
def remove_workflow(request: HttpRequest, workflow_id: UUID) -> WorkflowResource:
    """Delete a workflow with its versions and ended runs. A workflow with open runs is answered 409."""
    row = definitions.delete_workflow(workflow_id=workflow_id, actor=access_of(request).actor)
    return WorkflowResource.model_validate(row)


@router.post(
    "/workflows/{uuid:workflow_id}/runs", response={201: WorkflowRunResource}, summary="Start a workflow"
)
def start_workflow(request: HttpRequest, workflow_id: UUID, payload: RunInput) -> Status[WorkflowRunResource]:
    """Start a run of the latest version."""
    run = run_services.start_run(
        request=run_services.RunRequest(
            workflow=definitions.find_workflow(workflow_id),
            input=payload.values,
            actor=access_of(request).actor,
            key=payload.key,
        )
    )
    return Status(201, WorkflowRunResource.of(run_services.run_by_id(run.id)))


@router.get("/workflow-runs", response=ListPage[WorkflowRunResource], summary="List runs of workflows")
def list_runs(
    request: HttpRequest,
    page: Paging,
    workflow_id: UUID | None = None,
    status: WorkflowRunStatus | None = None,
) -> ListPage[WorkflowRunResource]:
    """List runs, the latest first."""
    rows = run_services.runs(workflow_id=workflow_id, statuses=[status] if status else ())
    return page_of(rows, page, order="-started_at", to_resource=WorkflowRunResource.of)


@router.get("/workflow-runs/{uuid:run_id}", response=RunStepsResource, summary="Show a run with its steps")
def show_run(request: HttpRequest, run_id: UUID) -> RunStepsResource:
    """Show a run with its steps and their outputs."""
    run = run_services.run_by_id(run_id)
    return RunStepsResource(
        run=WorkflowRunResource.of(run),
        steps=[WorkflowStepResource.model_validate(step) for step in steps_of(run.id)],
    )


@router.post("/workflow-runs/{uuid:run_id}/cancel", response=WorkflowRunResource, summary="Cancel a run")
def cancel_run(request: HttpRequest, run_id: UUID, payload: CancelInput) -> WorkflowRunResource:
    """Cancel an open run with its waiting step. A run that has ended is answered 409."""
    run_services.cancel_run(run_id=run_id, actor=access_of(request).actor, reason=payload.reason)
    return WorkflowRunResource.of(run_services.run_by_id(run_id))


@router.get(
    "/workflow-approvals",
    response=ListPage[WorkflowStepResource],
    summary="List steps that wait for a person",
)
def list_waiting_steps(request: HttpRequest, page: Paging) -> ListPage[WorkflowStepResource]:
    """List the approval steps that wait for a person, the oldest first."""
    rows = answers.waiting_approvals().order_by()
    return page_of(rows, page, order="started_at", to_resource=WorkflowStepResource.model_validate)


@router.post(
    "/workflow-steps/{uuid:step_id}/{verb}", response=WorkflowStepResource, summary="Approve or deny a step"
)
def decide_step(
    request: HttpRequest, step_id: UUID, verb: Literal["approve", "deny"], decision: StepDecision
) -> WorkflowStepResource:
    """Approve or deny a waiting approval step. A decided step is answered 409."""
    step = answers.decide_step(
        step_id=step_id,
        approved=verb == "approve",
        actor=access_of(request).actor,
        reason=decision.reason,
    )
    return WorkflowStepResource.model_validate(step)


def _workflow_request(name: str, payload: WorkflowInput | WorkflowChange) -> WorkflowRequest:
    return WorkflowRequest(
        name=name,
        source=payload.source,
        description=payload.description,
        agent=payload.agent,
        schedule=payload.schedule.value() if payload.schedule else None,
        enabled=payload.enabled,
    )
