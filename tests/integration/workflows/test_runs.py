"""Runs of workflows, each of which ends once, whichever process dies meanwhile."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext

from apps.agents.models import Agent, AgentPolicy, Percept
from apps.audit.models import AuditAction, AuditEvent
from apps.calls.models import CallStatus, DailyUsage, ExternalCall, LedgerEntry
from apps.goals.models import Goal
from apps.heartbeats.services.calls.call_leases import lease_calls
from apps.maintenance.services.recovery import recover_maintenance_calls
from apps.queues import Task
from apps.signals.services.reading import read_latest_signals
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from apps.workflows.services import legs
from apps.workflows.services.answers import complete_delegated_step, decide_step, waiting_approvals
from apps.workflows.services.legs import advance_run
from apps.workflows.services.runs import cancel_run
from apps.workflows.services.search import found_steps, steps_with
from apps.workflows.services.sweep import advance_due_runs
from arbor.errors import ModelUnavailable, NotFound, TransitionIllegal
from arbor.goals.values import GoalState
from arbor.workflows.values import OUTPUT_LENGTH
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script
from tests.integration.workflows.workflow_setup import (
    current_steps,
    define_workflow,
    latest_step,
    make_due,
    make_run_due,
    outputs_of,
    start_new_workflow,
    start_workflow,
)
from tests.support.rows import reload

#: A prompt that is tried again, an approval, a delegated step, and a note that quotes their outputs.
ALL_KINDS = (
    'draft [type=prompt, prompt="Write about {input.topic}", retries=2];'
    'review [type=approval, question="Publish {steps.draft}?"];'
    'illustrate [type=delegate, task="Draw {input.topic}", agent="Ada"];'
    'report [type=note, text="{steps.draft} / {steps.illustrate}"];'
    'start -> draft -> review -> illustrate -> report -> done; review -> lost [condition="outcome=failure"]'
)


def test_a_workflow_ends_once_with_all_outputs(
    tenant: Tenant, agent: Agent, fleet: Fleet, scripted: Script
) -> None:
    """An approval, a killed worker, a retry and a delegated step."""
    model = scripted(ModelUnavailable("busy"), "It rains.", repeat=False)
    run = start_workflow(define_workflow(tenant, ALL_KINDS, agent=agent), topic="rain")
    fleet.step()
    # A worker takes the call and dies: nobody settles it, and the recovery counts a failed try.
    dying = fleet.pop_message()
    assert dying.task is Task.EXECUTE_CALL
    with tenant_transaction(tenant.id):
        call_id = ExternalCall.objects.get(subject_key__startswith="step:").id
    assert lease_calls([call_id], tenant_id=tenant.id)
    expire_lease(call_id)
    recover_maintenance_calls()
    fleet.run()
    draft = latest_step(run, "draft")
    assert (draft.status, draft.attempts) == ("retrying", 1)
    assert "did not come back" in draft.error

    # The second try fails by its model, the third one succeeds.
    for attempt in (2, 3):
        make_due(run, draft.id)
        assert advance_due_runs(tenant.id) == 1
        fleet.run()
        assert latest_step(run, "draft").attempts == attempt
    assert len(model.requests) == 2

    with tenant_transaction(tenant.id):
        (review,) = waiting_approvals()
        assert review.input == "Publish It rains.?"
        decide_step(step_id=review.id, approved=True, actor="user:eve", reason="good")
    fleet.run()

    illustrate = latest_step(run, "illustrate")
    with tenant_transaction(tenant.id):
        complete_delegated_step(
            step_id=illustrate.id,
            agent_id=agent.id,
            output="A cloud.",
            failed=False,
            actor=f"agent:{agent.public_id}",
        )
    # The message is lost, and a duplicate of an earlier message comes late; the sweep advances the run.
    fleet.messages.clear()
    assert advance_due_runs(tenant.id) == 1
    assert not advance_run(run_id=run.id, tenant_id=tenant.id)
    assert advance_due_runs(tenant.id) == 0

    ended = reload(run)
    assert (ended.status, ended.exit, ended.error) == ("succeeded", "done", "")
    assert outputs_of(run) == {
        "draft": "It rains.",
        "review": "good",
        "illustrate": "A cloud.",
        "report": "It rains. / A cloud.",
    }
    with tenant_transaction(tenant.id):
        ends = AuditEvent.objects.filter(action=AuditAction.WORKFLOW_ENDED)
        assert [event.message for event in ends] == ["the run of report succeeded"]
        names = [
            signal.name for signal in read_latest_signals().signals if signal.name.startswith("workflow.")
        ]
        assert names[::-1] == [
            "workflow.started",
            "workflow.step_completed",
            "workflow.awaits_approval",
            *["workflow.step_completed"] * 3,
            "workflow.ended",
        ]
        assert LedgerEntry.objects.filter(purpose="workflow", error_kind="").count() == 1
        goal = Goal.objects.get(title__startswith="Do the step illustrate")
        # The goal waited behind three active goals.
        assert goal.state == GoalState.COMPLETED
        # The agent did the step itself.
        assert not Percept.objects.filter(content__startswith="Your goal").exists()


def expire_lease(call_id: UUID) -> None:
    with connections["owner"].cursor() as cursor:
        cursor.execute(
            "UPDATE calls_externalcall SET lease_until = now() - interval '1 second' WHERE id = %s", [call_id]
        )


def test_a_workflow_may_consist_of_one_note(tenant: Tenant, fleet: Fleet) -> None:
    workflow = define_workflow(tenant, 'a [type=note, text="{input.word}!"]; start -> a -> done')
    run = start_workflow(workflow, word="Rain")
    fleet.run()
    assert (reload(run).status, outputs_of(run)) == ("succeeded", {"a": "Rain!"})
    with tenant_transaction(tenant.id):
        (found,) = found_steps(steps_with("rAiN!"))
        assert (found.workflow, found.step, found.output) == ("report", "a", "Rain!")
        assert not steps_with("%")


def test_the_last_of_the_notes_of_one_leg_is_found_first(tenant: Tenant, fleet: Fleet) -> None:
    names = [f"n{number}" for number in range(6)]
    notes = " ".join(f'{name} [type=note, text="Rain"];' for name in names)
    start_workflow(define_workflow(tenant, f"{notes} start -> {' -> '.join(names)} -> done"))
    fleet.run()
    with tenant_transaction(tenant.id):
        found = found_steps(steps_with("rain")[:4])
    assert len({step.completed_at for step in found}) == 1
    assert [step.step for step in found] == names[:1:-1]


def test_the_reflex_policy_answers_prompts_without_a_model(
    tenant: Tenant, agent: Agent, fleet: Fleet
) -> None:
    workflow = define_workflow(
        tenant, 'a [type=prompt, prompt="Sum up {input.text}"]; start -> a -> done', agent=agent
    )
    run = start_workflow(workflow, text="It rains in Lisbon.")
    fleet.run()
    assert outputs_of(run) == {"a": "It rains in Lisbon."}


def test_a_denied_step_takes_the_edge_of_failures(tenant: Tenant, fleet: Fleet) -> None:
    workflow = define_workflow(
        tenant,
        'ask [type=approval, question="May I?"]; sorry [type=note, text="{steps.ask.error}"];'
        'start -> ask -> done; ask -> sorry [condition="outcome=failure"]; sorry -> lost',
    )
    run = start_workflow(workflow)
    fleet.run()
    step = latest_step(run, "ask")
    with tenant_transaction(tenant.id):
        decide_step(step_id=step.id, approved=False, actor="user:eve", reason="too late")
        with pytest.raises(TransitionIllegal, match="answered, so it cannot be decided"):
            decide_step(step_id=step.id, approved=True, actor="user:bob")
    fleet.run()
    ended = reload(run)
    assert (ended.status, ended.error) == ("failed", "ask: denied by user:eve: too late")
    assert outputs_of(run)["sorry"] == "denied by user:eve: too late"


def test_a_step_that_nobody_answers_in_time_fails(tenant: Tenant, fleet: Fleet) -> None:
    run = start_new_workflow(tenant, 'ask [type=approval, question="?", timeout="2d"]; start -> ask -> done')
    fleet.run()
    assert not advance_run(run_id=run.id, tenant_id=tenant.id)
    make_due(run, latest_step(run, "ask").id)
    advance_due_runs(tenant.id)
    assert reload(run).error.startswith("ask: no answer within 2d")


def test_a_late_reply_of_a_repeated_try_is_not_used(
    tenant: Tenant, agent: Agent, fleet: Fleet, scripted: Script
) -> None:
    scripted("late", "in time")
    workflow = define_workflow(tenant, 'a [type=prompt, prompt="x"]; start -> a -> done', agent=agent)
    run = start_workflow(workflow)
    fleet.step()
    slow = fleet.pop_message()
    for _ in range(2):
        # First the time for the answer is over, then the delay before the next try.
        make_due(run, latest_step(run, "a").id)
        advance_due_runs(tenant.id)
    fleet.deliver(slow)
    with tenant_transaction(tenant.id):
        dropped = ExternalCall.objects.get(subject__attempt=1).dropped
    assert dropped == ["the step does not wait for this try any more"]
    fleet.run()
    assert outputs_of(run) == {"a": "in time"}


# The child ends before it could use a lock of another thread.
@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_a_worker_killed_within_a_leg_leaves_the_run_as_it_was(
    tenant: Tenant, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow = define_workflow(
        tenant, 'a [type=note, text="x"]; b [type=note, text="y"]; start -> a -> b -> done'
    )
    run = start_workflow(workflow)
    with monkeypatch.context() as patch:
        # After all rows are written, before the commit.
        patch.setattr(legs, "report_end", _kill_this_process)
        # The child opens connections of its own.
        connections.close_all()
        worker = os.fork()
        if not worker:
            advance_run(run_id=run.id, tenant_id=tenant.id)
            os._exit(0)
        _, status = os.waitpid(worker, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    fleet.messages.clear()
    assert (current_steps(run), reload(run).leg) == ([], 0)
    make_run_due(run)
    assert advance_due_runs(tenant.id) == 1
    assert (reload(run).status, outputs_of(run)) == ("succeeded", {"a": "x", "b": "y"})


def _kill_this_process(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_used_up_daily_limit_delays_a_prompt_without_a_try(
    tenant: Tenant, agent: Agent, fleet: Fleet, scripted: Script
) -> None:
    scripted("fine")
    with tenant_transaction(tenant.id):
        policy, _ = AgentPolicy.objects.update_or_create(
            agent=agent, tenant_id=tenant.id, defaults={"daily_tokens": 10}
        )
        DailyUsage.objects.update_or_create(
            tenant_id=tenant.id, agent=agent, day=datetime.now(UTC).date(), defaults={"tokens": 10}
        )
    run = start_new_workflow(tenant, 'a [type=prompt, prompt="x"]; start -> a -> done', agent=agent)
    fleet.run()
    step = latest_step(run, "a")
    assert (step.status, step.attempts, step.error) == ("retrying", 0, "the daily limit of Ada is used up")
    with tenant_transaction(tenant.id):
        policy.daily_tokens = None
        policy.save()
    make_due(run, step.id)
    advance_due_runs(tenant.id)
    fleet.run()
    assert (outputs_of(run), latest_step(run, "a").attempts) == ({"a": "fine"}, 1)


def test_a_delegated_step_reaches_its_agent_and_no_other(
    tenant: Tenant, agent: Agent, new_agent: Callable[..., Agent], fleet: Fleet
) -> None:
    other = new_agent(tenant, "Bob")
    run = start_new_workflow(tenant, 'a [type=delegate, task="Draw"]; start -> a -> done', agent=agent)
    fleet.run()
    step = latest_step(run, "a")
    with tenant_transaction(tenant.id):
        percept = agent.percepts.get(detail__workflow_step=str(step.id))
        assert "complete_step" in percept.content
        assert percept.urgent
        with pytest.raises(NotFound, match="is delegated to you"):
            complete_delegated_step(
                step_id=step.id, agent_id=other.id, output="x", failed=False, actor="agent:x"
            )
        complete_delegated_step(
            step_id=step.id, agent_id=agent.id, output="I have no pencil", failed=True, actor="agent:x"
        )
    fleet.run()
    assert reload(run).error.startswith("a: I have no pencil")
    with tenant_transaction(tenant.id):
        assert step.goal_id
        assert Goal.objects.get(id=step.goal_id).state == GoalState.ABANDONED


def test_a_canceled_run_ends_with_its_step_and_its_call(
    tenant: Tenant, agent: Agent, fleet: Fleet, scripted: Script
) -> None:
    scripted("never used")
    run = start_new_workflow(tenant, 'a [type=prompt, prompt="x"]; start -> a -> done', agent=agent)
    fleet.step()
    with tenant_transaction(tenant.id):
        cancel_run(run_id=run.id, actor="user:eve", reason="wrong topic")
        with pytest.raises(TransitionIllegal, match="canceled already"):
            cancel_run(run_id=run.id, actor="user:eve")
        assert ExternalCall.objects.get(subject__attempt=1).status == CallStatus.FAILED
    fleet.run()
    assert (reload(run).status, latest_step(run, "a").status) == ("canceled", "canceled")
    assert reload(run).error == "canceled by user:eve: wrong topic"


def test_a_canceled_run_with_a_goal_is_read_once(tenant: Tenant, agent: Agent, fleet: Fleet) -> None:
    run = start_new_workflow(tenant, 'a [type=delegate, task="Draw"]; start -> a -> done', agent=agent)
    fleet.run()
    with tenant_transaction(tenant.id):
        with CaptureQueriesContext(connection) as queries:
            cancel_run(run_id=run.id, actor="user:eve")
        assert Goal.objects.filter(state=GoalState.ABANDONED).count() == 1
    assert sum('FROM "workflows_workflowrun"' in query["sql"] for query in queries) == 1


def test_rows_of_another_tenant_are_not_found(tenant: Tenant, other_tenant: Tenant, fleet: Fleet) -> None:
    run = start_new_workflow(tenant, 'a [type=approval, question="x"]; start -> a -> done')
    fleet.run()
    step = latest_step(run, "a")
    assert not advance_run(run_id=run.id, tenant_id=other_tenant.id)
    with tenant_transaction(other_tenant.id):
        assert not waiting_approvals().exists()
        with pytest.raises(NotFound):
            decide_step(step_id=step.id, approved=True, actor="user:mallory")
        with pytest.raises(NotFound):
            cancel_run(run_id=run.id, actor="user:mallory")
        assert not steps_with("x")


def test_json_outputs_are_stored_as_data(
    tenant: Tenant, agent: Agent, fleet: Fleet, scripted: Script
) -> None:
    scripted(json.dumps({"points": 5}))
    workflow = define_workflow(
        tenant,
        "a [type=prompt, prompt=x, format=json]; choice [shape=diamond]; start -> a -> choice;"
        'choice -> done [condition="context.steps.a.data.points >= 3"]; choice -> lost',
        agent=agent,
    )
    run = start_workflow(workflow)
    fleet.run()
    assert (reload(run).exit, latest_step(run, "a").data) == ("done", {"points": 5})


def test_a_cut_output_is_audited(tenant: Tenant, agent: Agent, fleet: Fleet, scripted: Script) -> None:
    scripted("x" * (OUTPUT_LENGTH + 7))
    run = start_new_workflow(tenant, 'a [type=prompt, prompt="x"]; start -> a -> done', agent=agent)
    fleet.run()
    step = latest_step(run, "a")
    assert (reload(run).status, len(step.output)) == ("succeeded", OUTPUT_LENGTH)
    with tenant_transaction(tenant.id):
        event = AuditEvent.objects.get(action=AuditAction.TRUNCATED, detail__step_id=str(step.id))
    assert event.message == "cut 7 characters of the step a of report"
    assert event.detail["characters"] == 7
