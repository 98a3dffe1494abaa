"""Workflows of tests: defined, started and looked at."""

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
_LOST = "lost [shape=Msquare, outcome=failure]; "


def graph_of(body: str) -> str:
    """Return a definition with a start, an exit, and another for failures if the body has a way to it."""
    return f"{HEAD}{_LOST if 'lost' in body else ''}{body} }}"


def defined(
    tenant: Tenant, body: str, *, name: str = "report", agent: Agent | None = None, **options: Any
) -> Workflow:
    with tenant_transaction(tenant.id):
        request = WorkflowRequest(
            name=name, source=graph_of(body), agent=agent.name if agent else None, **options
        )
        return create_workflow(request=request, actor="cli:eve")


def started(workflow: Workflow, **given: Any) -> WorkflowRun:
    with tenant_transaction(workflow.tenant_id):
        return start_run(request=RunRequest(workflow=workflow, input=given, actor="cli:eve"))


def run_now(run: WorkflowRun) -> WorkflowRun:
    with tenant_transaction(run.tenant_id):
        return WorkflowRun.objects.get(id=run.id)


def steps_now(run: WorkflowRun) -> list[WorkflowStep]:
    with tenant_transaction(run.tenant_id):
        return list(WorkflowStep.objects.filter(run_id=run.id).order_by("number"))


def step_now(run: WorkflowRun, name: str) -> WorkflowStep:
    with tenant_transaction(run.tenant_id):
        return WorkflowStep.objects.filter(run_id=run.id, name=name).latest("number")


def outputs(run: WorkflowRun) -> dict[str, str]:
    return {step.name: step.output for step in steps_now(run)}


def make_due(run: WorkflowRun, step_id: UUID) -> None:
    """Let the time of a waiting step be over."""
    with tenant_transaction(run.tenant_id):
        past = "2020-01-01T00:00:00+00:00"
        WorkflowStep.objects.filter(id=step_id).update(due_at=past)
        WorkflowRun.objects.filter(id=run.id).update(due_at=past)
