"""Define, start and read workflows of tests."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from apps.agents.models import Agent
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from apps.workflows.models import Workflow, WorkflowRun, WorkflowStep
from apps.workflows.services.definitions import WorkflowRequest, create_workflow
from apps.workflows.services.runs import RunRequest, start_run

HEAD = "digraph g { start [shape=Mdiamond]; done [shape=Msquare]; "
PAST = "2020-01-01T00:00:00+00:00"
_LOST = "lost [shape=Msquare, outcome=failure]; "


def graph_of(body: str) -> str:
    """Return a definition with a start and an exit, and with the exit `lost` for failures if the body names it."""
    return f"{HEAD}{_LOST if 'lost' in body else ''}{body} }}"


def define_workflow(
    tenant: Tenant, body: str, *, name: str = "report", agent: Agent | None = None, **options: Any
) -> Workflow:
    with tenant_transaction(tenant.id):
        request = WorkflowRequest(
            name=name, source=graph_of(body), agent=agent.name if agent else None, **options
        )
        return create_workflow(request=request, actor="cli:eve")


def start_workflow(workflow: Workflow, **values: Any) -> WorkflowRun:
    with tenant_transaction(workflow.tenant_id):
        return start_run(request=RunRequest(workflow=workflow, input=values, actor="cli:eve"))


def start_new_workflow(tenant: Tenant, body: str, **options: Any) -> WorkflowRun:
    """Define a workflow, and start a run of it without an input."""
    return start_workflow(define_workflow(tenant, body, **options))


def current_steps(run: WorkflowRun) -> list[WorkflowStep]:
    with tenant_transaction(run.tenant_id):
        return list(WorkflowStep.objects.filter(run_id=run.id).order_by("number"))


def latest_step(run: WorkflowRun, name: str) -> WorkflowStep:
    with tenant_transaction(run.tenant_id):
        return WorkflowStep.objects.filter(run_id=run.id, name=name).latest("number")


def outputs_of(run: WorkflowRun) -> dict[str, str]:
    return {step.name: step.output for step in current_steps(run)}


def make_due(run: WorkflowRun, step_id: UUID) -> None:
    """Move the due times of a step and of its run into the past."""
    with tenant_transaction(run.tenant_id):
        WorkflowStep.objects.filter(id=step_id).update(due_at=PAST)
    make_run_due(run)


def make_run_due(run: WorkflowRun) -> None:
    with tenant_transaction(run.tenant_id):
        WorkflowRun.objects.filter(id=run.id).update(due_at=PAST)
