"""Forms and acts of workflows, their runs and steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any
from uuid import UUID

import orjson
from django import forms
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from apps.console.access import Right, actor_of, has_right
from apps.console.forms import ServiceForm
from apps.console.stored_json import text_of
from apps.console.views import console_page, refuse
from apps.tenants.scope import APP
from apps.workflows.models import Workflow
from apps.workflows.services.answers import decide_step, step_by_id
from apps.workflows.services.definitions import (
    DESCRIPTION_LENGTH,
    WorkflowRequest,
    WorkflowSchedule,
    change_workflow,
    create_workflow,
    delete_workflow,
    find_workflow,
    version_of,
)
from apps.workflows.services.runs import RunRequest, cancel_run, start_run
from arbor.errors import AlreadyExists, Invalid, NotFound
from arbor.pipeline.dot import MAX_DOT_CHARACTERS
from arbor.workflows.values import NAME_LENGTH

EXAMPLE = """\
digraph report {
    start  [shape=Mdiamond];
    draft  [type=prompt, prompt="Write a short report about {input.topic}.", retries=2];
    review [type=approval, question="Publish this report? {steps.draft}", timeout="2d"];
    done   [shape=Msquare];
    denied [shape=Msquare, outcome=failure];
    start -> draft -> review -> done;
    review -> denied [condition="outcome=failure"];
}
"""


class WorkflowForm(ServiceForm):
    """The form of a new workflow, and of changes of a workflow."""

    name = forms.CharField(
        max_length=NAME_LENGTH,
        widget=UnfoldAdminTextInputWidget(),
        help_text="Lower-case letters, digits, - and _; capabilities of agents name it.",
    )
    description = forms.CharField(
        required=False, max_length=DESCRIPTION_LENGTH, widget=UnfoldAdminTextInputWidget()
    )
    source = forms.CharField(
        label="Definition",
        max_length=MAX_DOT_CHARACTERS,
        # A definition without its outer blanks would be another version.
        strip=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 18, "spellcheck": "false"}),
        help_text="A graph in DOT. A step's type is prompt, approval, delegate, wait or note.",
    )
    agent = forms.CharField(
        required=False,
        max_length=200,
        widget=UnfoldAdminTextInputWidget(),
        help_text="The name of the agent of steps that name none.",
    )
    cron = forms.CharField(
        label="Schedule",
        required=False,
        max_length=100,
        widget=UnfoldAdminTextInputWidget(),
        help_text="Minute, hour, day, month, weekday, such as 0 7 * * 1-5; empty: none.",
    )
    zone = forms.CharField(
        label="Time zone", required=False, max_length=60, widget=UnfoldAdminTextInputWidget(), initial="UTC"
    )
    scheduled_input = forms.CharField(
        label="Input of scheduled runs",
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3, "spellcheck": "false"}),
        help_text='A JSON object, such as {"topic": "rain"}.',
    )

    def save(self, *, actor: str, workflow_id: UUID | None = None) -> Workflow | None:
        """Create or change the workflow; None, with the reason in the form's errors, if refused."""
        data = self.cleaned_data
        with self.refusals(Invalid, AlreadyExists, NotFound):
            request = WorkflowRequest(
                name=data["name"] if workflow_id is None else "",
                source=data["source"].replace("\r\n", "\n"),
                description=data["description"],
                agent=data["agent"],
                schedule=WorkflowSchedule(
                    cron=data["cron"], zone=data["zone"], input=read_values(data["scheduled_input"])
                ),
            )
            if workflow_id is None:
                return create_workflow(request=request, actor=actor)
            return change_workflow(workflow_id=workflow_id, request=request, actor=actor)
        return None


def read_values(text: str) -> dict[str, Any]:
    """Parse an input as strict JSON, as REST does; empty: no values. Raises Invalid."""
    try:
        values = orjson.loads(text) if text.strip() else {}
    except ValueError as error:
        raise Invalid(f'the input is a JSON object, such as {{"topic": "rain"}}: {error}') from error
    if not isinstance(values, dict):
        raise Invalid(f'the input is a JSON object, such as {{"topic": "rain"}}, got {text[:80]!r}')
    return values


@require_http_methods(["GET", "HEAD", "POST"])
def edit_workflow(request: HttpRequest, workflow_id: UUID) -> HttpResponse:
    """Show the form of a workflow; a valid one is stored, another definition as a new version."""
    if not has_right(request, Right.OPERATE):
        return refuse(request, attempted=f"change workflow {workflow_id}")
    workflow = find_workflow(workflow_id)
    form = WorkflowForm(request.POST if request.method == "POST" else None, initial=_values_of(workflow))
    form.fields["name"].disabled = True
    if form.is_valid() and (saved := form.save(actor=actor_of(request), workflow_id=workflow_id)):
        messages.success(request, f"Saved as version {saved.version}.")
        return HttpResponseRedirect(reverse("admin:workflows_workflow_change", args=[workflow_id]))
    return console_page(
        request, "console/workflow_form.html", title=f"Change {workflow.name}", form=form, workflow=workflow
    )


def _values_of(workflow: Workflow) -> dict[str, Any]:
    return {
        "name": workflow.name,
        "description": workflow.description,
        "source": version_of(workflow).source,
        "agent": workflow.agent.name if workflow.agent else "",
        "cron": workflow.cron,
        "zone": workflow.zone,
        "scheduled_input": text_of(workflow.scheduled_input) if workflow.scheduled_input else "",
    }


def _start(request: HttpRequest, workflow_id: UUID) -> str:
    run = start_run(
        request=RunRequest(
            workflow=find_workflow(workflow_id),
            input=read_values(request.POST.get("values", "")),
            actor=actor_of(request),
        )
    )
    return reverse("admin:workflows_workflowrun_change", args=[run.id])


def _switch(enabled: bool) -> Callable[[HttpRequest, UUID], str]:
    def switch(request: HttpRequest, workflow_id: UUID) -> str:
        change_workflow(
            workflow_id=workflow_id,
            request=WorkflowRequest(name="", enabled=enabled),
            actor=actor_of(request),
        )
        return reverse("admin:workflows_workflow_change", args=[workflow_id])

    return switch


def _delete(request: HttpRequest, workflow_id: UUID) -> str:
    delete_workflow(workflow_id=workflow_id, actor=actor_of(request))
    return reverse("admin:workflows_workflow_changelist")


def _cancel(request: HttpRequest, run_id: UUID) -> str:
    cancel_run(run_id=run_id, actor=actor_of(request), reason=request.POST.get("reason", ""))
    return reverse("admin:workflows_workflowrun_change", args=[run_id])


#: Acts, each with its message afterwards; an act returns the address of the next page.
_WORKFLOW_ACTS: Mapping[str, tuple[Callable[[HttpRequest, UUID], str], str]] = MappingProxyType(
    {
        "start": (_start, "A run has started."),
        "enable": (_switch(True), "New runs may start."),
        "disable": (_switch(False), "No new run may start."),
        "delete": (_delete, "The workflow is deleted with its versions and runs."),
    }
)


@require_POST
def act_on_workflow(request: HttpRequest, workflow_id: UUID) -> HttpResponse:
    """Apply the posted act to a workflow, and redirect to the page that shows the result."""
    act = request.POST.get("act", "")
    if not has_right(request, Right.OPERATE):
        return refuse(request, attempted=f"{act} workflow {workflow_id}")
    if act not in _WORKFLOW_ACTS:
        raise NotFound(f"the act must be one of {', '.join(_WORKFLOW_ACTS)}, got {act!r}")
    run, success = _WORKFLOW_ACTS[act]
    here = reverse("admin:workflows_workflow_change", args=[workflow_id])
    return _apply(request, lambda: run(request, workflow_id), success=success, here=here)


@require_POST
def cancel_workflow_run(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Cancel a run, and return to its page."""
    if not has_right(request, Right.OPERATE):
        return refuse(request, attempted=f"cancel run {run_id}")
    here = reverse("admin:workflows_workflowrun_change", args=[run_id])
    return _apply(request, lambda: _cancel(request, run_id), success="The run is canceled.", here=here)


@require_POST
def decide_workflow_step(request: HttpRequest, step_id: UUID) -> HttpResponse:
    """Approve or deny a waiting step, and return to its run. A button posts `verdict=approve` or `verdict=deny`."""
    if not has_right(request, Right.APPROVE):
        return refuse(request, attempted=f"decide step {step_id}", right=Right.APPROVE)
    verdict = request.POST.get("verdict", "")
    if verdict not in ("approve", "deny"):
        raise NotFound(f"the verdict must be approve or deny, got {verdict!r}")
    here = reverse("admin:workflows_workflowrun_change", args=[step_by_id(step_id).run_id])

    def decide() -> str:
        decide_step(
            step_id=step_id,
            approved=verdict == "approve",
            actor=actor_of(request),
            reason=request.POST.get("reason", ""),
        )
        return here

    return _apply(request, decide, success="Approved." if verdict == "approve" else "Denied.", here=here)


def _apply(request: HttpRequest, act: Callable[[], str], *, success: str, here: str) -> HttpResponse:
    """Apply an act, and redirect to the page that the act returns, or back to `here` if the act is refused."""
    try:
        with transaction.atomic(using=APP):
            there = act()
    except Invalid as refusal:
        messages.error(request, f"Nothing was done: {refusal}.")
        return HttpResponseRedirect(here)
    messages.success(request, success)
    return HttpResponseRedirect(there)
