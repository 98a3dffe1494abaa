"""Define and run workflows, and decide their steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TextIO

import click
from rich.console import Group
from rich.markup import escape
from rich.syntax import Syntax

from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from apps.workflows.models import Workflow, WorkflowRun, WorkflowStep
from apps.workflows.services import answers, definitions, runs
from apps.workflows.services.definitions import WorkflowRequest, WorkflowSchedule, find_workflow, version_of
from apps.workflows.services.rows import steps_of
from arbor.quotations import counted
from arbor.workflows.definition import read_definition, read_new_definition
from arbor.workflows.values import WorkflowRunStatus
from config.cli.kit.columns import OutputColumn, bounded_listing, listing, row_to_dict, table_of
from config.cli.kit.declarations import Output
from config.cli.kit.lookup import find_in_tenant, in_transaction_of, tenant_of_name, tenant_of_row
from config.cli.kit.output import cut, format_relative_time, short
from config.cli.kit.tenancy import (
    actor,
    choose_agent,
    choose_tenant,
    in_tenant_transaction,
    named_or_default_tenant,
)
from config.cli.kit.text_files import read_text
from config.cli.kit.values import index_by_name, json_or_text

_COLUMNS = (
    OutputColumn("id"),
    OutputColumn("name", "workflow"),
    OutputColumn("version", "version"),
    OutputColumn("enabled", "enabled"),
    OutputColumn("agent", "agent", value=lambda row: row.agent.name if row.agent else ""),
    OutputColumn("cron", "schedule"),
    OutputColumn("next_run_at", "next run", cell=format_relative_time),
    OutputColumn("description", "about", cell=cut),
    *(OutputColumn(key) for key in ("zone", "scheduled_input", "created_by", "created_at")),
)
_RUN_COLUMNS = (
    OutputColumn("id", "id", cell=short),
    OutputColumn("workflow", "workflow", value=lambda row: row.workflow.name),
    OutputColumn("version", "version", value=lambda row: row.version.number),
    OutputColumn("status", "status"),
    OutputColumn("started_by", "by"),
    OutputColumn("started_at", "started", cell=format_relative_time),
    OutputColumn("error", "error", cell=cut),
    *(OutputColumn(key) for key in ("trigger", "input", "exit", "failed_legs", "due_at", "ended_at")),
)
_STEP_COLUMNS = (
    OutputColumn("number", "#"),
    OutputColumn("name", "step"),
    OutputColumn("kind", "kind"),
    OutputColumn("status", "status"),
    OutputColumn("attempts", "tries"),
    OutputColumn("output", "output", cell=cut),
    OutputColumn("error", "error", cell=cut),
    *(
        OutputColumn(key)
        for key in ("id", "input", "data", "decided_by", "started_at", "due_at", "completed_at")
    ),
)
_WAITING_COLUMNS = (
    OutputColumn("id", "id", cell=short),
    OutputColumn("workflow", "workflow", value=lambda row: row.run.workflow.name),
    OutputColumn("name", "step"),
    OutputColumn("input", "question", cell=cut),
    OutputColumn("started_at", "asked", cell=format_relative_time),
    OutputColumn("due_at", "until", cell=format_relative_time),
    OutputColumn("run_id"),
)


@in_tenant_transaction
def list_workflows(tenant: Tenant) -> Output:
    """List the workflows."""
    rows = list(Workflow.objects.select_related("agent"))
    return listing(
        "workflows",
        rows,
        _COLUMNS,
        about={"tenant": tenant.slug},
        empty="No workflow yet: [bold]arbor workflow create NAME FILE[/bold]",
    )


@in_transaction_of(tenant_of_name, Workflow, "name")
def show(tenant: Tenant, *, name: str, number: int | None) -> Output:
    """Show a workflow."""
    row = find_workflow(name)
    version = version_of(row, number)
    head = (
        f"[bold]{row.name}[/bold], version {version.number} of {row.version}, by {escape(version.created_by)}"
    )
    inputs = list(read_definition(version.source).inputs)
    value = {
        "tenant": tenant.slug,
        **row_to_dict(row, _COLUMNS),
        "number": version.number,
        "inputs": inputs,
        "source": version.source,
    }
    needs = f"Its input needs: {', '.join(inputs) or 'nothing'}."
    source = Syntax(version.source, "dot", word_wrap=True, background_color="default")
    return Output(
        value, text=Group(head, *([escape(row.description)] if row.description else []), needs, source)
    )


# Files are read before a transaction begins, because a person may type one at standard input.


def create(*, name: str, file: TextIO, tenant_slug: str | None, **options: Any) -> Output:
    """Create a workflow."""
    request = _build_request(name, read_text(file), enabled=None, **options)
    agent = options["agent"]
    tenant = choose_tenant(choose_agent(agent, tenant_slug).tenant_slug if agent else tenant_slug)
    with tenant_transaction(tenant.id):
        row = definitions.create_workflow(request=request, actor=actor())
        return _workflow_output(tenant, row, "is created")


def change(
    *, name: str, file: TextIO | None, enabled: bool | None, tenant_slug: str | None, **options: Any
) -> Output:
    """Change a workflow."""
    if file is None and enabled is None and not any(value not in (None, ()) for value in options.values()):
        raise click.UsageError(
            "say what is to change: --file, --description, --agent, --cron, --zone, --input, --enable or --disable"
        )
    source = read_text(file) if file is not None else None
    tenant_id = tenant_of_name(Workflow, name, tenant_slug)
    with tenant_transaction(tenant_id):
        request = _build_request("", source, enabled=enabled, **options)
        row = definitions.change_workflow(workflow_id=find_workflow(name).id, request=request, actor=actor())
        state = "enabled" if row.enabled else "disabled"
        planned = f"; the next run starts {format_relative_time(row.next_run_at)}" if row.next_run_at else ""
        tenant = Tenant.objects.get(id=tenant_id)
        return _workflow_output(tenant, row, f"has version {row.version}, and is {state}{planned}")


@in_transaction_of(tenant_of_name, Workflow, "name")
def delete(tenant: Tenant, *, name: str) -> Output:
    """Delete a workflow."""
    row = definitions.delete_workflow(workflow_id=find_workflow(name).id, actor=actor())
    return _workflow_output(tenant, row, "is deleted")


def check(*, file: TextIO, tenant_slug: str | None) -> Output:
    """Check a definition; an error lists every fault."""
    definition = read_new_definition(read_text(file))
    definitions.check_step_models(definition)
    tenant = named_or_default_tenant(tenant_slug)
    value = {
        "tenant": tenant.slug if tenant else None,
        "steps": list(definition.steps),
        "inputs": list(definition.inputs),
        "agents": list(definition.agents),
    }
    needs = f"; its input needs {', '.join(definition.inputs)}" if definition.inputs else ""
    return Output(
        value, text=f"The definition is valid, with {counted(len(definition.steps), 'step')}{needs}."
    )


@in_transaction_of(tenant_of_name, Workflow, "name")
def start(tenant: Tenant, *, name: str, values: Sequence[str], key: str) -> Output:
    """Start a run."""
    request = runs.RunRequest(
        workflow=find_workflow(name), input=_parse_values(values), actor=actor(), key=key
    )
    run = runs.run_by_id(runs.start_run(request=request).id)
    text = f"Run {short(run.id)} of [bold]{run.workflow.name}[/bold] has started: arbor workflow run show {short(run.id)}"
    return Output({"tenant": tenant.slug, **row_to_dict(run, _RUN_COLUMNS)}, text=text)


@in_tenant_transaction
def list_runs(tenant: Tenant, *, workflow: str | None, status: str | None) -> Output:
    """List runs."""
    rows = runs.runs(
        workflow_id=find_workflow(workflow).id if workflow is not None else None,
        statuses=[WorkflowRunStatus(status)] if status else (),
    )
    return bounded_listing(
        "runs",
        rows,
        _RUN_COLUMNS,
        about={"tenant": tenant.slug},
        empty="No run. [bold]arbor workflow start NAME[/bold]",
    )


@in_transaction_of(tenant_of_row, WorkflowRun, "run_id")
def show_run(tenant: Tenant, *, run_id: str) -> Output:
    """Show a run with its steps."""
    run = runs.run_by_id(find_in_tenant(WorkflowRun, run_id))
    steps = list(steps_of(run.id))
    value = {
        "tenant": tenant.slug,
        **row_to_dict(run, _RUN_COLUMNS),
        "steps": [row_to_dict(step, _STEP_COLUMNS) for step in steps],
    }
    head = (
        f"[bold]{run.workflow.name}[/bold], version {run.version.number}, run {short(run.id)}: {run.status}"
    )
    notes = [escape(run.error)] if run.error else []
    if run.failed_legs and run.due_at:
        next_at = format_relative_time(run.due_at)
        failed = counted(run.failed_legs, "attempt")
        notes.append(f"{failed} in a row to continue it failed; the next one is {next_at}.")
    shown = table_of(steps, _STEP_COLUMNS) if steps else "No step has begun yet."
    return Output(value, text=Group(head, *notes, shown))


@in_transaction_of(tenant_of_row, WorkflowRun, "run_id")
def cancel_run(tenant: Tenant, *, run_id: str, reason: str) -> Output:
    """Cancel a run."""
    run = runs.cancel_run(run_id=find_in_tenant(WorkflowRun, run_id), actor=actor(), reason=reason)
    run = runs.run_by_id(run.id)
    text = f"Run {short(run.id)} of [bold]{run.workflow.name}[/bold] is canceled."
    return Output({"tenant": tenant.slug, **row_to_dict(run, _RUN_COLUMNS)}, text=text)


@in_tenant_transaction
def list_waiting(tenant: Tenant) -> Output:
    """List the steps that wait for a person."""
    return bounded_listing(
        "steps",
        answers.waiting_approvals(),
        _WAITING_COLUMNS,
        about={"tenant": tenant.slug},
        empty="No step waits for a person.",
    )


@in_transaction_of(tenant_of_row, WorkflowStep, "step_id")
def approve_step(tenant: Tenant, *, step_id: str, reason: str) -> Output:
    """Approve a step."""
    return _decide(tenant, step_id, approved=True, reason=reason)


@in_transaction_of(tenant_of_row, WorkflowStep, "step_id")
def deny_step(tenant: Tenant, *, step_id: str, reason: str) -> Output:
    """Deny a step."""
    return _decide(tenant, step_id, approved=False, reason=reason)


def _decide(tenant: Tenant, step_id: str, *, approved: bool, reason: str) -> Output:
    step = answers.decide_step(
        step_id=find_in_tenant(WorkflowStep, step_id), approved=approved, actor=actor(), reason=reason
    )
    verdict = "approved" if approved else "denied"
    text = f"The step {step.name} of [bold]{step.run.workflow.name}[/bold] ({short(step.id)}) is {verdict}."
    return Output({"tenant": tenant.slug, **row_to_dict(step, _STEP_COLUMNS)}, text=text)


def _build_request(name: str, source: str | None, *, enabled: bool | None, **options: Any) -> WorkflowRequest:
    return WorkflowRequest(
        name=name,
        source=source,
        description=options["description"],
        agent=options["agent"],
        schedule=_build_schedule(options["cron"], options["zone"], options["values"]),
        enabled=enabled,
    )


def _build_schedule(cron: str | None, zone: str | None, values: Sequence[str]) -> WorkflowSchedule | None:
    """Return the parts of a schedule that options give; None if no option is given."""
    if cron is None and zone is None and not values:
        return None
    return WorkflowSchedule(cron=cron, zone=zone, input=_parse_values(values) if values else None)


def _parse_values(written: Sequence[str]) -> dict[str, Any]:
    """Parse the values of an input, NAME=VALUE: a value is JSON if it is valid JSON, else text."""
    values = []
    for item in written:
        name, separator, text = item.partition("=")
        if not separator or not name.strip():
            raise click.UsageError(f"a value of the input is NAME=VALUE, got {item!r}")
        values.append((name.strip(), json_or_text(text)))
    return index_by_name(values, option="--input")


def _workflow_output(tenant: Tenant, row: Workflow, verb: str) -> Output:
    return Output(
        {"tenant": tenant.slug, **row_to_dict(row, _COLUMNS)},
        text=f"The workflow [bold]{row.name}[/bold] {verb}.",
    )
