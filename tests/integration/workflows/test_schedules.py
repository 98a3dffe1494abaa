"""Scheduled workflows, the sweep over tenants, and the deletion of old runs."""

from __future__ import annotations

from collections.abc import Collection
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
    version_of,
)
from apps.workflows.services.legs import advance_run
from apps.workflows.services.runs import runs
from apps.workflows.services.sweep import advance_due_runs, start_scheduled, sweep_workflows
from arbor.clock import Clock, FrozenClock
from arbor.errors import Invalid, NotFound, PipelineInvalid, TransitionIllegal
from arbor.history import Record
from arbor.workflows.values import FIRST_LEG_DELAY, MAX_LEG_DELAY
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script
from tests.integration.workflows.workflow_setup import (
    define_workflow,
    graph_of,
    start_new_workflow,
    start_workflow,
)
from tests.support.rows import reload

NOTE = 'a [type=note, text="{input.word}"]; start -> a -> done'
DAILY = WorkflowSchedule(cron="0 7 * * *", zone="UTC", input={"word": "Rain"})


def clock_at_next_run(workflow: Workflow, **offset: float) -> FrozenClock:
    """Return a clock at the time of the workflow's next run, moved by an offset."""
    assert workflow.next_run_at is not None
    return FrozenClock(workflow.next_run_at + timedelta(**offset))


def refreshed(workflow: Workflow) -> Workflow:
    with tenant_transaction(workflow.tenant_id):
        return find_workflow(workflow.id)


def test_a_schedule_starts_its_workflow_once_for_each_time(tenant: Tenant, fleet: Fleet) -> None:
    workflow = define_workflow(tenant, NOTE, schedule=DAILY)
    assert start_scheduled(tenant.id, clock=clock_at_next_run(workflow, seconds=-1)) == 0
    # Nothing ran for three days: one run makes up for them.
    late = clock_at_next_run(workflow, days=3, minutes=1)
    assert start_scheduled(tenant.id, clock=late) == 1
    assert start_scheduled(tenant.id, clock=late) == 0
    fleet.run()
    with tenant_transaction(tenant.id):
        (run,) = runs()
        assert (run.trigger, run.started_by, run.input) == ("schedule", "system:schedule", {"word": "Rain"})
        assert run.status == "succeeded"
    assert refreshed(workflow).next_run_at == late.now().replace(minute=0) + timedelta(days=1)


def test_a_disabled_workflow_starts_no_run(tenant: Tenant) -> None:
    workflow = define_workflow(tenant, NOTE, schedule=DAILY)
    with tenant_transaction(tenant.id):
        changed = change_workflow(
            workflow_id=workflow.id, request=WorkflowRequest(name="", enabled=False), actor="cli:eve"
        )
        assert changed.next_run_at is None
    assert start_scheduled(tenant.id, clock=clock_at_next_run(workflow, days=1)) == 0
    with pytest.raises(TransitionIllegal, match="is disabled"):
        start_workflow(refreshed(workflow), word="x")


def test_a_scheduled_start_that_fails_is_audited(tenant: Tenant, agent: Agent) -> None:
    workflow = define_workflow(
        tenant, 'a [type=prompt, prompt="x"]; start -> a -> done', agent=agent, schedule=DAILY
    )
    with tenant_transaction(tenant.id):
        Workflow.objects.update(agent=None)
    start_scheduled(tenant.id, clock=clock_at_next_run(workflow, minutes=1))
    with tenant_transaction(tenant.id):
        event = AuditEvent.objects.get(message__contains="did not start")
        assert "name no agent" in event.message
        assert not WorkflowRun.objects.exists()


def test_only_another_schedule_changes_the_due_time(tenant: Tenant) -> None:
    workflow = define_workflow(tenant, NOTE, schedule=DAILY)
    due = datetime.now(UTC) - timedelta(minutes=1)
    hourly = replace(DAILY, cron="0 * * * *")
    with tenant_transaction(tenant.id):
        Workflow.objects.update(next_run_at=due)
        for changes, is_unchanged in (
            ({"description": "new"}, True),
            ({"source": graph_of(NOTE + " "), "schedule": replace(DAILY, input={"word": "Sun"})}, True),
            ({"schedule": hourly}, False),
        ):
            changed = change_workflow(
                workflow_id=workflow.id, request=WorkflowRequest(name="", **changes), actor="x"
            )
            assert (changed.next_run_at == due) is is_unchanged


@pytest.mark.parametrize(
    "changes", [{"cron": "0 9 * * *"}, {"zone": "Europe/Berlin"}, {"input": {"word": "Sun"}}]
)
def test_parts_of_a_schedule_that_are_left_out_stay(tenant: Tenant, changes: dict[str, Any]) -> None:
    workflow = define_workflow(tenant, NOTE, schedule=DAILY)
    with tenant_transaction(tenant.id):
        request = WorkflowRequest(name="", schedule=WorkflowSchedule(**changes))
        row = change_workflow(workflow_id=workflow.id, request=request, actor="x")
    assert WorkflowSchedule(cron=row.cron, zone=row.zone, input=row.scheduled_input) == replace(
        DAILY, **changes
    )


@pytest.mark.parametrize("word", ["x" * 64_001, "a\0b", "\ud83d"])
def test_an_input_without_a_schedule_is_checked_too(tenant: Tenant, word: str) -> None:
    with pytest.raises(Invalid, match="the input"):
        define_workflow(tenant, NOTE, schedule=WorkflowSchedule(input={"word": word}))


@pytest.mark.parametrize("zone", ["Atlantis/Capital", "x" * 61, "a\0b"])
def test_a_time_zone_without_a_schedule_is_checked_too(tenant: Tenant, zone: str) -> None:
    with pytest.raises(Invalid, match="there is no time zone"):
        define_workflow(tenant, NOTE, schedule=WorkflowSchedule(zone=zone, input={"word": "Rain"}))


def test_a_schedule_that_is_too_long_is_refused(tenant: Tenant) -> None:
    minutes = ",".join(map(str, range(60)))
    with pytest.raises(Invalid, match="at most 100 characters"):
        define_workflow(tenant, NOTE, schedule=replace(DAILY, cron=f"{minutes} * * * *"))


def test_a_schedule_that_is_not_valid_any_more_stops_no_other(tenant: Tenant) -> None:
    broken, sound = (define_workflow(tenant, NOTE, name=name, schedule=DAILY) for name in ("broken", "sound"))
    with tenant_transaction(tenant.id):
        # The time zone was valid when the schedule was written.
        Workflow.objects.filter(id=broken.id).update(zone="Atlantis/Capital")
    late = clock_at_next_run(sound, minutes=1)
    assert start_scheduled(tenant.id, clock=late) == 2
    assert start_scheduled(tenant.id, clock=late) == 0
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
    workflow = define_workflow(tenant, NOTE)
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


def test_the_sweep_starts_and_advances_runs_of_active_tenants(tenant: Tenant, other_tenant: Tenant) -> None:
    workflows = [define_workflow(owner, NOTE, schedule=DAILY) for owner in (tenant, other_tenant)]
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
        # The message of the run is lost.
        sweep_workflows()
    assert reload(run).status == "succeeded"
    with tenant_transaction(other_tenant.id):
        assert not WorkflowRun.objects.exists()


def fail_legs(monkeypatch: pytest.MonkeyPatch, failing: Collection[UUID]) -> None:
    """Let the legs of these runs raise, as long as their ids are in `failing`."""

    def advance(*, run_id: UUID, tenant_id: UUID, clock: Clock) -> bool:
        if run_id in failing:
            raise RuntimeError("no such leg")
        return advance_run(run_id=run_id, tenant_id=tenant_id, clock=clock)

    monkeypatch.setattr(sweep, "advance_run", advance)


def test_a_leg_that_raises_does_not_stop_the_other_runs(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow = define_workflow(tenant, NOTE)
    broken, sound = sorted((start_workflow(workflow, word=word) for word in "ab"), key=lambda run: run.id)

    fail_legs(monkeypatch, {broken.id})
    with capture_logs() as logs:
        assert advance_due_runs(tenant.id, clock=FrozenClock(datetime.now(UTC) + timedelta(days=1))) == 1
    failed = [line["run_id"] for line in logs if line["event"] == "workflow_leg_failed"]
    assert failed == [str(broken.id)]
    assert (reload(broken).leg, reload(sound).status) == (0, "succeeded")


def test_a_leg_that_raises_is_tried_again_soon_then_later(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start_workflow(define_workflow(tenant, NOTE), word="a")

    def lose_connection(**_: object) -> bool:
        raise OperationalError("the connection is lost")

    with monkeypatch.context() as failing:
        failing.setattr(sweep, "advance_run", lose_connection)
        now = datetime.now(UTC) + timedelta(minutes=1)
        delays = []
        for _ in range(3):
            advance_due_runs(tenant.id, clock=FrozenClock(now))
            due_at = reload(run).due_at
            assert due_at is not None
            delays.append(due_at - now)
            now = due_at
    assert delays == [FIRST_LEG_DELAY, FIRST_LEG_DELAY * 2, FIRST_LEG_DELAY * 4]
    assert advance_due_runs(tenant.id, clock=FrozenClock(now)) == 1
    ended = reload(run)
    assert (ended.status, ended.failed_legs) == ("succeeded", 0)


@pytest.mark.parametrize("body", [NOTE, 'a [type=approval, question="{input.word}"]; start -> a -> done'])
def test_failing_runs_do_not_hold_up_the_others(
    tenant: Tenant, fleet: Fleet, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    workflow = define_workflow(tenant, body)
    begun = [start_workflow(workflow, word=word) for word in "abc"]
    if "approval" in body:
        fleet.run()
        with tenant_transaction(tenant.id):
            for run in begun:
                decide_step(step_id=run.steps.get().id, approved=True, actor="user:eve")
    failing = {begun[0].id, begun[1].id}
    fail_legs(monkeypatch, failing)
    monkeypatch.setattr(sweep, "_BATCH", 2)
    now = datetime.now(UTC) + timedelta(minutes=1)
    assert [advance_due_runs(tenant.id, clock=FrozenClock(now)) for _ in range(3)] == [0, 1, 0]
    assert reload(begun[2]).status == "succeeded"
    # The cause of the failures is gone.
    failing.clear()
    assert advance_due_runs(tenant.id, clock=FrozenClock(now + MAX_LEG_DELAY)) == 2
    assert {reload(run).status for run in begun} == {"succeeded"}


def test_a_message_advances_no_run_of_a_suspended_tenant(
    tenant: Tenant, agent: Agent, fleet: Fleet, scripted: Script
) -> None:
    model = scripted("fine")
    run = start_new_workflow(tenant, 'a [type=prompt, prompt="x"]; start -> a -> done', agent=agent)
    tenants = Tenant.objects.using("ops").filter(id=tenant.id)
    tenants.update(status=TenantStatus.SUSPENDED)
    fleet.run()
    assert (reload(run).leg, model.requests) == (0, [])
    tenants.update(status=TenantStatus.ACTIVE)
    # The message is consumed, so the sweep advances the run.
    assert advance_due_runs(tenant.id, clock=FrozenClock(datetime.now(UTC) + timedelta(days=1))) == 1
    fleet.run()
    assert reload(run).status == "succeeded"


def test_a_version_that_no_workflow_has_is_not_found(tenant: Tenant) -> None:
    workflow = define_workflow(tenant, NOTE)
    with tenant_transaction(tenant.id):
        assert version_of(workflow).number == version_of(workflow, 1).number == 1
        for number in (0, 2, -1, 10**30):
            with pytest.raises(NotFound, match=f"no version {number}; it has 1 to 1"):
                version_of(workflow, number)


def test_a_change_makes_a_version_only_of_another_definition(tenant: Tenant, fleet: Fleet) -> None:
    workflow = define_workflow(tenant, NOTE)
    run = start_workflow(workflow, word="x")
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
    assert reload(run).status == "succeeded"
    with tenant_transaction(tenant.id):
        delete_workflow(workflow_id=workflow.id, actor="x")
        assert not WorkflowStep.objects.exists()


def test_old_runs_are_deleted_with_their_steps(tenant: Tenant, fleet: Fleet, settings: Any) -> None:
    workflow = define_workflow(tenant, NOTE)
    old, young = start_workflow(workflow, word="old"), start_workflow(workflow, word="young")
    fleet.run()
    waiting = start_new_workflow(tenant, 'a [type=approval, question="?"]; start -> a -> done', name="w")
    fleet.run()
    long_ago = datetime.now(UTC) - timedelta(days=40)
    with tenant_transaction(tenant.id):
        WorkflowRun.objects.filter(id=old.id).update(ended_at=long_ago)
        WorkflowRun.objects.filter(id=waiting.id).update(started_at=long_ago)
    settings.ARBOR_HISTORY_AGES = {
        record: timedelta(days=30) if record is Record.WORKFLOWS else None for record in Record
    }
    sweep_history()
    with tenant_transaction(tenant.id):
        assert set(WorkflowRun.objects.values_list("id", flat=True)) == {young.id, waiting.id}
        assert WorkflowStep.objects.count() == 2
