"""Pages of workflows: created, started, decided and canceled by people with the role for it."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from apps.workflows.models import Workflow, WorkflowRun, WorkflowStep
from apps.workflows.services.definitions import WorkflowRequest, create_workflow
from apps.workflows.services.legs import advance_run
from tests.factories.workflows import SOURCE, WorkflowRunFactory, WorkflowStepFactory

FORM = {"name": "review", "source": SOURCE, "agent": "", "cron": "", "zone": "UTC", "scheduled_input": ""}


def workflow_of(tenant: Tenant) -> Workflow:
    with tenant_transaction(tenant.id):
        return Workflow.objects.get()


def run_of(tenant: Tenant) -> WorkflowRun:
    with tenant_transaction(tenant.id):
        return WorkflowRun.objects.get()


def test_an_operator_creates_changes_and_starts_a_workflow(tenant: Tenant, operator: Client) -> None:
    add = reverse("admin:workflows_workflow_add")
    assert "type=approval" in operator.get(add).content.decode()
    refused = operator.post(add, {**FORM, "source": "digraph g { a [type=magic] }"})
    assert "no handler is called" in refused.content.decode()
    operator.post(add, FORM)
    workflow = workflow_of(tenant)
    page = reverse("admin:workflows_workflow_change", args=[workflow.id])
    shown = operator.get(page).content.decode()
    assert 'data-node="ask"' in shown
    assert "It has not run yet." in shown

    edit = reverse("admin:workflow-edit", args=[workflow.id])
    assert "Publish {input.topic}?" in operator.get(edit).content.decode()
    refused = operator.post(edit, {**FORM, "cron": "0 7 * * *"})
    assert "the input needs topic" in refused.content.decode()
    schedule = {"cron": "0 7 * * *", "scheduled_input": '{"topic": "rain"}'}
    operator.post(edit, {**FORM, **schedule, "source": SOURCE.replace("Publish", "Print")})
    workflow = workflow_of(tenant)
    assert (workflow.version, workflow.cron, workflow.next_run_at is not None) == (2, "0 7 * * *", True)

    act = reverse("admin:workflow-act", args=[workflow.id])
    refused = operator.post(act, {"act": "start", "values": ""}, follow=True)
    assert "the input needs topic" in refused.content.decode()
    started = operator.post(act, {"act": "start", "values": '{"topic": "rain"}'}, follow=True)
    assert "A run has started." in started.content.decode()
    operator.post(act, {"act": "disable"})
    assert not workflow_of(tenant).enabled
    refused = operator.post(act, {"act": "delete"}, follow=True)
    assert "has open runs" in refused.content.decode()


def test_an_unchanged_definition_makes_no_new_version(tenant: Tenant, operator: Client) -> None:
    with tenant_transaction(tenant.id):
        request = WorkflowRequest(name="review", source=f"\n{SOURCE.strip()}\n")
        workflow = create_workflow(request=request, actor="cli:ann")
    edit = reverse("admin:workflow-edit", args=[workflow.id])
    form = operator.get(edit).context["form"]
    operator.post(
        edit, {**FORM, "source": form["source"].value().replace("\n", "\r\n"), "description": "new"}
    )
    changed = workflow_of(tenant)
    assert (changed.description, changed.version) == ("new", 1)


@pytest.mark.parametrize("values", ["[" * 100_000, '{"topic": NaN}', '{"topic": "\\ud800"}', "[1]"])
def test_an_input_that_is_no_json_object_is_refused(tenant: Tenant, operator: Client, values: str) -> None:
    operator.post(reverse("admin:workflows_workflow_add"), FORM)
    act = reverse("admin:workflow-act", args=[workflow_of(tenant).id])
    refused = operator.post(act, {"act": "start", "values": values}, follow=True)
    assert "the input is a JSON object" in refused.content.decode()


@pytest.fixture
def waiting(tenant: Tenant) -> WorkflowStep:
    """Return a step that waits for a person."""
    with tenant_transaction(tenant.id):
        return WorkflowStepFactory(run=WorkflowRunFactory(), agent=None)


def test_a_person_decides_a_waiting_step(
    tenant: Tenant, operator: Client, viewer: Client, waiting: WorkflowStep
) -> None:
    page = reverse("admin:workflows_workflowrun_change", args=[waiting.run_id])
    decide = reverse("admin:workflow-decide", args=[waiting.id])
    assert "This run waits for the decision of an operator." in viewer.get(page).content.decode()
    assert viewer.post(decide, {"verdict": "approve"}).status_code == 403
    assert "Publish the reef?" in operator.get(page).content.decode()
    decided = operator.post(decide, {"verdict": "approve", "reason": "fine"}, follow=True)
    assert "Approved." in decided.content.decode()
    repeated = operator.post(decide, {"verdict": "deny"}, follow=True)
    assert "cannot be decided any more" in repeated.content.decode()
    advance_run(run_id=waiting.run_id, tenant_id=tenant.id)
    ended = operator.get(page).content.decode()
    assert "succeeded" in ended
    assert "This run waits for your decision." not in ended
    assert run_of(tenant).status == "succeeded"


def test_a_run_names_its_failed_attempts_and_the_next(tenant: Tenant, viewer: Client, waiting: Any) -> None:
    page = reverse("admin:workflows_workflowrun_change", args=[waiting.run_id])
    assert "the next attempt is" not in viewer.get(page).content.decode()
    with tenant_transaction(tenant.id):
        WorkflowRun.objects.update(failed_legs=3, due_at="2100-01-01T00:00Z")
    shown = viewer.get(page).content.decode()
    assert "3 attempts in a row" in shown
    assert "the next attempt is" in shown


def test_an_operator_cancels_a_run(tenant: Tenant, operator: Client, viewer: Client, waiting: Any) -> None:
    cancel = reverse("admin:workflow-cancel", args=[waiting.run_id])
    assert viewer.post(cancel).status_code == 403
    assert "The run is canceled." in operator.post(cancel, {"reason": "no"}, follow=True).content.decode()
    assert run_of(tenant).status == "canceled"


def test_lists_of_workflows_open_when_they_are_empty(tenant: Tenant, viewer: Client) -> None:
    for model in ("workflow", "workflowrun", "workflowstep", "workflowversion"):
        response = viewer.get(reverse(f"admin:workflows_{model}_changelist"))
        assert response.status_code == 200
