"""Read workflows and their runs for their pages: the drawn definition, steps with their outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apps.console.pictures.pipeline import DrawnPipeline, NodeVisits, draw_pipeline
from apps.console.stored_json import pretty
from apps.workflows.models import Workflow, WorkflowRun, WorkflowStep, WorkflowVersion
from apps.workflows.services.definitions import version_of
from apps.workflows.services.rows import steps_of
from apps.workflows.services.runs import runs
from arbor.workflows.definition import StepSpec, read_definition
from arbor.workflows.values import (
    OPEN_RUNS,
    OPEN_STEPS,
    WorkflowRunStatus,
    WorkflowStepKind,
    WorkflowStepStatus,
)

#: The latest runs and versions that the page of a workflow lists.
LATEST_SHOWN = 10
#: The outcome that the box of a step shows, by the status of the step.
_OUTCOMES = {
    WorkflowStepStatus.SUCCEEDED: "success",
    WorkflowStepStatus.FAILED: "failure",
    WorkflowStepStatus.CANCELED: "failure",
    WorkflowStepStatus.RETRYING: "retry",
}
_ENDED = {WorkflowRunStatus.SUCCEEDED: "success", WorkflowRunStatus.FAILED: "failure"}


@dataclass(frozen=True, kw_only=True)
class WorkflowPage:
    """A workflow with its definition, drawn."""

    workflow: Workflow
    source: str
    picture: DrawnPipeline | None
    steps: Sequence[StepSpec]
    inputs: Sequence[str]
    runs: Sequence[WorkflowRun]
    versions: Sequence[WorkflowVersion]


@dataclass(frozen=True, kw_only=True)
class WorkflowRunPage:
    """A run with its steps, and the way it took."""

    run: WorkflowRun
    #: The input as indented JSON.
    input_text: str
    picture: DrawnPipeline | None
    steps: Sequence[WorkflowStep]
    #: The step that waits for a person, if any.
    waiting: WorkflowStep | None
    is_open: bool


def read_workflow_page(row: Workflow) -> WorkflowPage:
    """Return the page of a workflow."""
    source = version_of(row).source
    definition = read_definition(source)
    return WorkflowPage(
        workflow=row,
        source=source,
        picture=draw_pipeline(source, visits={}, path=[], ended=""),
        steps=list(definition.steps.values()),
        inputs=definition.inputs,
        runs=list(runs(workflow_id=row.id)[:LATEST_SHOWN]),
        versions=list(WorkflowVersion.objects.filter(workflow_id=row.id).order_by("-number")[:LATEST_SHOWN]),
    )


def read_run_page(row: WorkflowRun) -> WorkflowRunPage:
    """Return the page of a run."""
    run = WorkflowRun.objects.select_related("workflow", "version").get(id=row.id)
    steps = list(steps_of(run.id).select_related("agent"))
    waiting = [
        step
        for step in steps
        if step.kind == WorkflowStepKind.APPROVAL and step.status == WorkflowStepStatus.WAITING
    ]
    return WorkflowRunPage(
        run=run,
        input_text=pretty(run.input),
        picture=draw_pipeline(
            run.version.source,
            visits=_visits(steps),
            path=[step.name for step in steps],
            ended=_ENDED.get(WorkflowRunStatus(run.status), ""),
        ),
        steps=steps,
        waiting=waiting[-1] if waiting else None,
        is_open=run.status in OPEN_RUNS,
    )


def _visits(steps: Sequence[WorkflowStep]) -> dict[str, NodeVisits]:
    """Return the visits of each step: the outcome of the latest, and the time of all."""
    visits: dict[str, NodeVisits] = {}
    for step in steps:
        before = visits.get(step.name)
        ended = step.completed_at or step.started_at
        seconds = (ended - step.started_at).total_seconds()
        visits[step.name] = NodeVisits(
            outcome="waiting"
            if step.status in OPEN_STEPS and step.status != WorkflowStepStatus.RETRYING
            else _OUTCOMES[WorkflowStepStatus(step.status)],
            milliseconds=seconds * 1000 + (before.milliseconds if before else 0.0),
            visits=1 + (before.visits if before else 0),
        )
    return visits
