"""Pages of workflows, their versions, runs and steps."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from apps.console import cells, columns
from apps.console.access import Right, actor_of, has_right
from apps.console.add_pages import AddPageAdmin
from apps.console.listing import (
    AgentRowsAdmin,
    ConsoleAdmin,
    FoundByIdAdmin,
    PageAdmin,
    filters,
)
from apps.console.live import BUSY_REFRESH_S
from apps.console.operator.workflows import EXAMPLE, WorkflowForm
from apps.console.pages.workflows import read_run_page, read_workflow_page
from apps.console.views import console_page
from apps.workflows.models import Workflow, WorkflowRun, WorkflowStep, WorkflowVersion
from apps.workflows.services.rows import REASON_LENGTH
from arbor.workflows.values import OPEN_RUNS


@admin.register(Workflow)
class WorkflowAdmin(AddPageAdmin, PageAdmin, FoundByIdAdmin):
    """List the workflows of a tenant."""

    page_template = "console/workflow.html"
    list_display = ("name", "version", "agent_shown", "schedule", "next_run", "state")
    ordering = ("name",)
    joined = ("agent",)
    deferred = AgentRowsAdmin.deferred
    when_empty = "A workflow is a sequence of steps: prompts, approvals of people, steps that agents do."
    when_empty_command = "arbor workflow create --help"

    read_page = staticmethod(read_workflow_page)

    def add_page(self, request: HttpRequest) -> HttpResponse:
        """Create a workflow."""
        form = WorkflowForm(request.POST if request.method == "POST" else None, initial={"source": EXAMPLE})
        created = form.save(actor=actor_of(request)) if form.is_valid() else None
        if created is not None:
            return HttpResponseRedirect(reverse("admin:workflows_workflow_change", args=[created.id]))
        return console_page(
            request, "console/workflow_form.html", title="New workflow", opts=self.opts, form=form
        )

    agent_shown = columns.cell("agent", lambda row: row.agent.name if row.agent else "–")
    schedule = columns.cell("schedule", lambda row: cells.mono(row.cron) if row.cron else "–")
    next_run = columns.moment("next_run_at", "next run")
    state = columns.cell("state", lambda row: cells.badge("enabled" if row.enabled else "disabled"))


@admin.register(WorkflowRun)
class WorkflowRunAdmin(PageAdmin, FoundByIdAdmin):
    """List runs of workflows, the latest first."""

    page_template = "console/workflow_run.html"
    live_template = "console/parts/live_workflow_run.html"
    is_live = True
    list_before_template = "console/parts/live_bar.html"
    list_display = ("begun", "workflow_link", "status_shown", "trigger", "who", "ended", "problem")
    list_filter = filters("status", "trigger")
    filters_latest = True
    sortable_by: Any = ()
    joined = ("workflow",)
    when_empty = "No workflow has run yet."
    when_empty_command = "arbor workflow start --help"

    read_page = staticmethod(read_run_page)
    read_parts = staticmethod(read_run_page)

    def live_interval(self, row: WorkflowRun) -> int:
        """Return the seconds between two updates of an open run's page; 0 for an ended run."""
        return BUSY_REFRESH_S if row.status in OPEN_RUNS else 0

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Add whether the person may approve steps."""
        return {
            **super().page_context(request, row),
            "may_approve": has_right(request, Right.APPROVE),
            "reason_length": REASON_LENGTH,
        }

    begun = columns.moment("started_at", "started")
    workflow_link = columns.cell(
        "workflow", lambda run: cells.link("workflows_workflow", run.workflow_id, run.workflow.name)
    )
    status_shown = columns.badge("status", "status")
    who = columns.origin("started_by", "by")
    ended = columns.moment("ended_at", "ended")
    problem = columns.error("error")


@admin.register(WorkflowStep)
class WorkflowStepAdmin(FoundByIdAdmin):
    """List steps of runs; those that wait for a person are decided on the page of their run."""

    list_display = ("name", "run_link", "kind", "status_shown", "agent_shown", "begun", "until", "problem")
    list_filter = filters("status", "kind")
    filters_latest = True
    sortable_by: Any = ()
    joined = ("run__workflow", "agent")
    deferred = AgentRowsAdmin.deferred
    fields = (
        "name",
        "run_link",
        "kind",
        "status",
        "input",
        "output",
        "data_shown",
        "error",
        "attempts",
        "who_decided",
        "started_at",
        "due_at",
        "completed_at",
    )
    when_empty = "No step has begun yet."

    run_link = columns.cell(
        "run", lambda step: cells.link("workflows_workflowrun", step.run_id, step.run.workflow.name)
    )
    status_shown = columns.badge("status", "status")
    agent_shown = columns.cell("agent", lambda step: step.agent.name if step.agent else "–")
    data_shown = columns.json("data", "data")
    who_decided = columns.origin("decided_by", "decided by")
    begun = columns.moment("started_at", "began")
    until = columns.moment("due_at", "until")
    problem = columns.error("error")


@admin.register(WorkflowVersion)
class WorkflowVersionAdmin(ConsoleAdmin):
    """List the versions of workflows."""

    list_display = ("shown", "who", "at", "content_hash")
    list_select_related = ("workflow",)
    fields = ("shown", "source_shown", "content_hash", "who", "created_at")
    when_empty = "No workflow yet."

    shown = columns.cell("version", lambda version: f"{version.workflow.name} {version.number}")
    source_shown = columns.cell("definition", lambda version: cells.block(version.source))
    who = columns.origin("created_by", "by")
    at = columns.moment("created_at", "created")
