"""Scheduled workflows, the sweep over tenants, and the age of runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import OperationalError
from structlog.testing import capture_logs

from apps.agents.models import Agent
from apps.audit.models import AuditAction, AuditEvent
from apps.fleet.history import sweep_history
from apps.queues import captured
from apps.tenants.models import Tenant, TenantStatus
from apps.tenants.scope import tenant_transaction
from apps.workflows.models import Workflow, WorkflowRun, WorkflowStep
from apps.workflows.services import sweep
from apps.workflows.services.answers import decide_step
from apps.workflows.services.definitions import (
    WorkflowRequest,
    WorkflowSchedule,
    change_workflow,
    delete_workflow,
    find_workflow,
)
from apps.workflows.services.legs import advance_run
from apps.workflows.services.runs import runs
from apps.workflows.services.sweep import advance_due_runs, start_scheduled, sweep_workflows
from arbor.clock import Clock, FrozenClock
from arbor.errors import Invalid, NotFound, PipelineInvalid, TransitionIllegal
from arbor.history import Record
from arbor.models.ports import ScriptedModel
from arbor.workflows.values import FIRST_LEG_DELAY, LONGEST_LEG_DELAY
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.workflows.workflow_setup import defined, graph_of, run_now, started

NOTE = 'a [type=note, text="{input.word}"]; start -> a -> done'
DAILY = WorkflowSchedule(cron="0 7 * * *", zone="UTC", input={"word": "Rain"})


def at(workflow: Workflow, **moved: float) -> FrozenClock:
    """Return a clock at the workflow's next run, moved."""
    assert workflow.next_run_at is not None
    return FrozenClock(workflow.next_run_at + timedelta(**moved))


def refreshed(workflow: Workflow) -> Workflow:
    with tenant_transaction(workflow.tenant_id):
        return find_workflow(workflow.id)


def test_a_schedule_starts_its_workflow_once_for_each_time(tenant: Tenant, fleet: Fleet) -> None:
    workflow = defined(tenant, NOTE, schedule=DAILY)
    assert start_scheduled(tenant.id, at(workflow, seconds=-1)) == 0
    # Three days passed while nothing ran: they are made up for once.
    late = at(workflow, days=3, minutes=1)
    assert start_scheduled(tenant.id, late) == 1
    assert start_scheduled(tenant.id, late) == 0
    fleet.run()
    with tenant_transaction(tenant.id):
        (run,) = runs()
        assert (run.trigger, run.started_by, run.input) == ("schedule", "system:schedule", {"word": "Rain"})
        assert run.status == "succeeded"
    assert refreshed(workflow).next_run_at == late.now().replace(minute=0) + timedelta(days=1)


def test_a_disabled_workflow_starts_no_run(tenant: Tenant) -> None:
    workflow = defined(tenant, NOTE, schedule=DAILY)
    with tenant_transaction(tenant.id):
        changed = change_workflow(
            workflow_id=workflow.id, request=WorkflowRequest(name="", enabled=False), actor="cli:eve"
        )
        assert changed.next_run_at is None
    assert start_scheduled(tenant.id, at(workflow, days=1)) == 0
    with pytest.raises(TransitionIllegal, match="is disabled"):
        started(refreshed(workflow), word="x")


def test_a_start_that_is_not_possible_is_audited(tenant: Tenant, agent: Agent) -> None:
    workflow = defined(tenant, 'a [type=prompt, prompt="x"]; start -> a -> done', agent=agent, schedule=DAILY)
    with tenant_transaction(tenant.id):
        Workflow.objects.update(agent=None)
    start_scheduled(tenant.id, at(workflow, minutes=1))
    with tenant_transaction(tenant.id):
        event = AuditEvent.objects.get(message__contains="did not start")
        assert "name no agent" in event.message
        assert not WorkflowRun.objects.exists()


def test_a_change_of_something_else_leaves_the_due_time(tenant: Tenant) -> None:
    workflow = defined(tenant, NOTE, schedule=DAILY)
    due = datetime.now(UTC) - timedelta(minutes=1)
    hourly = replace(DAILY, cron="0 * * * *")
    with tenant_transaction(tenant.id):
        Workflow.objects.update(next_run_at=due)
        for changes, stays in (
            ({"description": "new"}, True),
            ({"source": graph_of(NOTE + " "), "schedule": replace(DAILY, input={"word": "Sun"})}, True),
            ({"schedule": hourly}, False),
        ):
            changed = change_workflow(
                workflow_id=workflow.id, request=WorkflowRequest(name="", **changes), actor="x"
            )
            assert (changed.next_run_at == due) is stays


def test_a_schedule_that_is_not_valid_any_more_stops_no_other(tenant: Tenant) -> None:
    broken, sound = (defined(tenant, NOTE, name=name, schedule=DAILY) for name in ("broken", "sound"))
    with tenant_transaction(tenant.id):
        # The time zone was valid when the schedule was written.
        Workflow.objects.filter(id=broken.id).update(zone="Atlantis/Capital")
    late = at(sound, minutes=1)
    assert start_scheduled(tenant.id, late) == 2
    assert start_scheduled(tenant.id, late) == 0
    with tenant_transaction(tenant.id):
        (run,) = runs()
        assert run.workflow.name == "sound"
        event = AuditEvent.objects.get(message__contains="did not start")
        assert "there is no time zone 'Atlantis/Capital'" in event.message
    assert refreshed(broken).next_run_at is None
    with tenant_transaction(tenant.id):
        request = WorkflowRequest(name="", schedule=DAILY)
        assert change_workflow(workflow_id=broken.id, request=request, actor="x").next_run_at is not None


def test_changes_of_a_workflow_are_audited_with_both_states(tenant: Tenant, agent: Agent) -> None:
    workflow = defined(tenant, NOTE)
    request = WorkflowRequest(name="", agent="Ada", source=graph_of(NOTE + " "), schedule=DAILY)
    with tenant_transaction(tenant.id):
        change_workflow(workflow_id=workflow.id, request=request, actor="cli:eve")
        delete_workflow(workflow_id=workflow.id, actor="cli:eve")
        created, changed, deleted = AuditEvent.objects.filter(action=AuditAction.WORKFLOW_CHANGED).order_by(
            "id"
        )
    assert (created.before, created.after["version"], created.after["name"]) == ({}, 1, "report")
    assert changed.before == {"version": 1, "agent": None, "cron": "", "input": {}}
    assert changed.after == {
        "version": 2,
        "agent": str(agent.id),
        "cron": "0 7 * * *",
        "input": {"word": "Rain"},
    }
    assert (deleted.before["version"], deleted.after) == (2, {})


def test_the_sweep_starts_and_walks_runs_of_active_tenants(tenant: Tenant, other_tenant: Tenant) -> None:
    workflows = [defined(one, NOTE, schedule=DAILY) for one in (tenant, other_tenant)]
    Tenant.objects.using("ops").filter(id=other_tenant.id).update(status=TenantStatus.SUSPENDED)
    for workflow in workflows:
        with tenant_transaction(workflow.tenant_id):
            Workflow.objects.update(next_run_at=datetime.now(UTC) - timedelta(minutes=1))
    with captured() as messages:
        assert sweep_workflows().failed == 0
        assert len(messages) == 1
        with tenant_transaction(tenant.id):
            run = WorkflowRun.objects.get()
            WorkflowRun.objects.update(due_at=datetime.now(UTC) - timedelta(seconds=1))
        # Its message is lost.
        sweep_workflows()
    assert run_now(run).status == "succeeded"
    with tenant_transaction(other_tenant.id):
        assert not WorkflowRun.objects.exists()


def test_a_leg_that_raises_does_not_stop_the_other_runs(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow = defined(tenant, NOTE)
    broken, sound = sorted((started(workflow, word=word) for word in "ab"), key=lambda run: run.id)

    def advance(*, run_id: UUID, tenant_id: UUID, clock: Clock) -> bool:
        if run_id == broken.id:
            raise RuntimeError("no such leg")
        return advance_run(run_id=run_id, tenant_id=tenant_id, clock=clock)

    monkeypatch.setattr(sweep, "advance_run", advance)
    with capture_logs() as logs:
        assert advance_due_runs(tenant.id, FrozenClock(datetime.now(UTC) + timedelta(days=1))) == 1
    failed = [line["run_id"] for line in logs if line["event"] == "workflow_leg_failed"]
    assert failed == [str(broken.id)]
    assert (run_now(broken).leg, run_now(sound).status) == (0, "succeeded")


def test_a_leg_that_raises_is_tried_again_soon_then_later(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = started(defined(tenant, NOTE), word="a")

    def advance(**_: object) -> bool:
        raise OperationalError("the connection is lost")

    with monkeypatch.context() as failing:
        failing.setattr(sweep, "advance_run", advance)
        now = datetime.now(UTC) + timedelta(minutes=1)
        delays = []
        for _ in range(3):
            advance_due_runs(tenant.id, FrozenClock(now))
            due_at = run_now(run).due_at
            assert due_at is not None
            delays.append(due_at - now)
            now = due_at
    assert delays == [FIRST_LEG_DELAY, FIRST_LEG_DELAY * 2, FIRST_LEG_DELAY * 4]
    assert advance_due_runs(tenant.id, FrozenClock(now)) == 1
    ended = run_now(run)
    assert (ended.status, ended.failed_legs) == ("succeeded", 0)


@pytest.mark.parametrize("body", [NOTE, 'a [type=approval, question="{input.word}"]; start -> a -> done'])
def test_runs_that_fail_give_way_to_the_others(
    tenant: Tenant, fleet: Fleet, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    workflow = defined(tenant, body)
    begun = [started(workflow, word=word) for word in "abc"]
    if "approval" in body:
        fleet.run()
        with tenant_transaction(tenant.id):
            for run in begun:
                decide_step(step_id=run.steps.get().id, approved=True, actor="user:eve")
    failing = {begun[0].id, begun[1].id}

    def advance(*, run_id: UUID, tenant_id: UUID, clock: Clock) -> bool:
        if run_id in failing:
            raise RuntimeError("no such leg")
        return advance_run(run_id=run_id, tenant_id=tenant_id, clock=clock)

    monkeypatch.setattr(sweep, "advance_run", advance)
    monkeypatch.setattr(sweep, "_BATCH", 2)
    now = datetime.now(UTC) + timedelta(minutes=1)
    assert [advance_due_runs(tenant.id, FrozenClock(now)) for _ in range(3)] == [0, 1, 0]
    assert run_now(begun[2]).status == "succeeded"
    # What made them fail is mended.
    failing.clear()
    assert advance_due_runs(tenant.id, FrozenClock(now + LONGEST_LEG_DELAY)) == 2
    assert {run_now(run).status for run in begun} == {"succeeded"}


def test_a_message_walks_no_run_of_a_suspended_tenant(
    tenant: Tenant, agent: Agent, fleet: Fleet, scripted: Callable[..., ScriptedModel]
) -> None:
    model = scripted("fine")
    run = started(defined(tenant, 'a [type=prompt, prompt="x"]; start -> a -> done', agent=agent))
    tenants = Tenant.objects.using("ops").filter(id=tenant.id)
    tenants.update(status=TenantStatus.SUSPENDED)
    fleet.run()
    assert (run_now(run).leg, model.requests) == (0, [])
    tenants.update(status=TenantStatus.ACTIVE)
    # Its message is used up: the sweep walks the run.
    assert advance_due_runs(tenant.id, FrozenClock(datetime.now(UTC) + timedelta(days=1))) == 1
    fleet.run()
    assert run_now(run).status == "succeeded"


def test_a_change_makes_a_version_only_of_another_definition(tenant: Tenant, fleet: Fleet) -> None:
    workflow = defined(tenant, NOTE)
    run = started(workflow, word="x")
    with tenant_transaction(tenant.id):
        for source, version in ((graph_of(NOTE), 1), (graph_of(NOTE.replace("word", "topic")), 2)):
            request = WorkflowRequest(name="", source=source, description="new")
            assert change_workflow(workflow_id=workflow.id, request=request, actor="x").version == version
        with pytest.raises(Invalid, match="keeps its name"):
            change_workflow(workflow_id=workflow.id, request=WorkflowRequest(name="other"), actor="x")
        with pytest.raises(PipelineInvalid):
            change_workflow(workflow_id=workflow.id, request=WorkflowRequest(name="", source="no"), actor="x")
        with pytest.raises(NotFound):
            change_workflow(workflow_id=workflow.id, request=WorkflowRequest(name="", agent="no"), actor="x")
        with pytest.raises(TransitionIllegal, match="has open runs"):
            delete_workflow(workflow_id=workflow.id, actor="x")
    fleet.run()
    # A run keeps the version that it began with.
    assert run_now(run).status == "succeeded"
    with tenant_transaction(tenant.id):
        delete_workflow(workflow_id=workflow.id, actor="x")
        assert not WorkflowStep.objects.exists()


def test_old_runs_are_deleted_with_their_steps(tenant: Tenant, fleet: Fleet, settings: Any) -> None:
    workflow = defined(tenant, NOTE)
    old, young = started(workflow, word="old"), started(workflow, word="young")
    fleet.run()
    waits = started(defined(tenant, 'a [type=approval, question="?"]; start -> a -> done', name="w"))
    fleet.run()
    long_ago = datetime.now(UTC) - timedelta(days=40)
    with tenant_transaction(tenant.id):
        WorkflowRun.objects.filter(id=old.id).update(ended_at=long_ago)
        WorkflowRun.objects.filter(id=waits.id).update(started_at=long_ago)
    settings.ARBOR_HISTORY_AGES = {
        record: timedelta(days=30) if record is Record.WORKFLOWS else None for record in Record
    }
    sweep_history()
    with tenant_transaction(tenant.id):
        assert set(WorkflowRun.objects.values_list("id", flat=True)) == {young.id, waits.id}
        assert WorkflowStep.objects.count() == 2
