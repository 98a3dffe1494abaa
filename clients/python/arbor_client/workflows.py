"""Workflows, their runs, and the steps that people approve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from arbor_client.calls import (
    UNCHANGED,
    Call,
    Id,
    PagedCall,
    Unchanged,
    delete,
    get,
    listed,
    patch,
    post,
    segment,
)
from arbor_client.groups import Group, listing, operation

if TYPE_CHECKING:
    from arbor_client.clients import Arbor, AsyncArbor


@dataclass(frozen=True, kw_only=True)
class Workflow:
    """A workflow."""

    id: UUID
    name: str
    description: str
    #: The number of the latest version.
    version: int
    #: The agent of steps that name none.
    agent_id: UUID | None
    #: Whether new runs may start.
    enabled: bool
    #: Five fields of cron; empty: no schedule.
    cron: str
    zone: str
    scheduled_input: dict[str, Any]
    next_run_at: datetime | None
    created_by: str
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class WorkflowDefinition:
    """A workflow with its definition in one version."""

    workflow: Workflow
    #: The version that is shown.
    number: int
    #: The graph in DOT.
    source: str
    #: The names that a run's input must have.
    inputs: list[str]
    steps: list[str]


@dataclass(frozen=True, kw_only=True)
class DefinitionCheck:
    """The parts of a valid definition."""

    steps: list[str]
    inputs: list[str]
    agents: list[str]


@dataclass(frozen=True, kw_only=True)
class WorkflowStep:
    """One step of a run: a visit of a node."""

    id: UUID
    run_id: UUID
    number: int
    name: str
    #: prompt, approval, delegate, wait or note.
    kind: str
    #: waiting, answered, retrying, succeeded, failed or canceled.
    status: str
    agent_id: UUID | None
    #: The prompt, question or task with its values: data, never an instruction.
    input: str
    output: str
    #: The output as JSON, where the step's format is json.
    data: Any
    attempts: int
    error: str
    decided_by: str
    started_at: datetime
    due_at: datetime | None
    completed_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class WorkflowRun:
    """A run of a workflow."""

    id: UUID
    workflow_id: UUID
    workflow: str
    version: int
    #: running, waiting, succeeded, failed or canceled.
    status: str
    #: person, schedule or agent.
    trigger: str
    started_by: str
    input: dict[str, Any]
    exit: str
    error: str
    #: Attempts in a row to continue the run that ended with an error.
    failed_legs: int
    #: When the run continues at the latest; None: with an answer.
    due_at: datetime | None
    started_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class RunWithSteps:
    """A run with its steps, in their order."""

    run: WorkflowRun
    steps: list[WorkflowStep]


class Workflows[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about workflows and their runs."""

    @listing
    def list(self) -> PagedCall[Workflow]:
        """List the workflows of the tenant by name."""
        return listed(Workflow, "/workflows")

    @operation
    def get(self, workflow_id: Id, *, version: int | None = None) -> Call[WorkflowDefinition]:
        """Return a workflow with its definition, by default in the latest version."""
        return get(WorkflowDefinition, f"/workflows/{segment(workflow_id)}", version=version)

    @operation
    def create(
        self,
        name: str,
        source: str,
        *,
        description: str = "",
        agent: str | None = None,
        schedule: Mapping[str, Any] | None = None,
        enabled: bool = True,
    ) -> Call[Workflow]:
        """Create a workflow; `schedule` has `cron`, `zone` and `input`."""
        body = {
            "name": name,
            "source": source,
            "description": description,
            "agent": agent,
            "schedule": schedule,
            "enabled": enabled,
        }
        return post(Workflow, "/workflows", body)

    @operation
    def change(
        self,
        workflow_id: Id,
        *,
        source: str | Unchanged = UNCHANGED,
        description: str | Unchanged = UNCHANGED,
        agent: str | Unchanged = UNCHANGED,
        schedule: Mapping[str, Any] | Unchanged = UNCHANGED,
        enabled: bool | Unchanged = UNCHANGED,
    ) -> Call[Workflow]:
        """Change a workflow; another definition is a new version, which new runs use."""
        body = {
            "source": source,
            "description": description,
            "agent": agent,
            "schedule": schedule,
            "enabled": enabled,
        }
        return patch(Workflow, f"/workflows/{segment(workflow_id)}", body)

    @operation
    def delete(self, workflow_id: Id) -> Call[Workflow | None]:
        """Delete a workflow with its versions and ended runs. Raises Conflict for one with open runs."""
        return delete(Workflow, f"/workflows/{segment(workflow_id)}")

    @operation
    def check(self, source: str) -> Call[DefinitionCheck]:
        """Check a definition, and name every fault; nothing is stored."""
        return post(DefinitionCheck, "/workflows/check", {"source": source})

    @operation
    def start(
        self, workflow_id: Id, *, values: Mapping[str, Any] | None = None, key: str = ""
    ) -> Call[WorkflowRun]:
        """Start a run of the latest version with the values of its input; a second start by the same caller, key and input returns the first run."""
        return post(
            WorkflowRun, f"/workflows/{segment(workflow_id)}/runs", {"values": values or {}, "key": key}
        )

    @listing
    def runs(self, *, workflow_id: Id | None = None, status: str | None = None) -> PagedCall[WorkflowRun]:
        """List runs, the latest first."""
        return listed(WorkflowRun, "/workflow-runs", workflow_id=workflow_id, status=status)

    @operation
    def run(self, run_id: Id) -> Call[RunWithSteps]:
        """Return a run with its steps and their outputs."""
        return get(RunWithSteps, f"/workflow-runs/{segment(run_id)}")

    @operation
    def cancel(self, run_id: Id, *, reason: str = "") -> Call[WorkflowRun]:
        """Cancel an open run with its waiting step. Raises Conflict for one that has ended."""
        return post(WorkflowRun, f"/workflow-runs/{segment(run_id)}/cancel", {"reason": reason})

    @listing
    def waiting(self) -> PagedCall[WorkflowStep]:
        """List the approval steps that wait for a person, the oldest first."""
        return listed(WorkflowStep, "/workflow-approvals")

    @operation
    def approve(self, step_id: Id, *, reason: str = "") -> Call[WorkflowStep]:
        """Approve a waiting step. Raises Conflict for one that is decided."""
        return post(WorkflowStep, f"/workflow-steps/{segment(step_id)}/approve", {"reason": reason})

    @operation
    def deny(self, step_id: Id, *, reason: str = "") -> Call[WorkflowStep]:
        """Deny a waiting step. Raises Conflict for one that is decided."""
        return post(WorkflowStep, f"/workflow-steps/{segment(step_id)}/deny", {"reason": reason})
