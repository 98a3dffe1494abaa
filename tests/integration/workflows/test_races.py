"""Answers that come while a leg runs, and the locks of a leg."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from apps.agents.models import Agent
from apps.agents.services.locks import lock_schedule
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from apps.workflows.models import WorkflowStep
from apps.workflows.services import legs, runs
from apps.workflows.services.answers import answer_prompt, decide_step
from apps.workflows.services.definitions import check_input, delete_workflow
from apps.workflows.services.step_requests import request_answer
from apps.workflows.services.sweep import advance_due_runs
from arbor.errors import NotFound, TransitionIllegal
from arbor.workflows.traversal import answer_after_timeout
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.workflows.workflow_setup import (
    current_steps,
    define_workflow,
    latest_step,
    make_due,
    outputs_of,
    start_new_workflow,
    start_workflow,
)
from tests.support.races import in_tenant
from tests.support.rows import reload
from tests.support.threads import in_own_connection, start_blocked

APPROVAL = 'ask [type=approval, question="?", timeout="2d"]; start -> ask -> done'


def approve_elsewhere(step_id: Any, tenant: Tenant) -> None:
    """Approve a step in another connection, and wait for its commit."""
    approval = {"step_id": step_id, "approved": True, "actor": "user:eve", "reason": "in time"}
    in_own_connection(in_tenant(tenant.id, decide_step, **approval)).join(20)


def test_an_approval_that_commits_within_a_leg_counts(
    tenant: Tenant, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start_new_workflow(tenant, APPROVAL)
    fleet.run()
    step = latest_step(run, "ask")
    make_due(run, step.id)

    def approve_meanwhile(*args: Any) -> Any:
        # The leg has read that the time is over, and has not written it yet.
        approve_elsewhere(step.id, tenant)
        return answer_after_timeout(*args)

    monkeypatch.setattr(legs, "answer_after_timeout", approve_meanwhile)
    assert advance_due_runs(tenant.id) == 1
    assert (reload(run).status, outputs_of(run)) == ("succeeded", {"ask": "in time"})
    assert latest_step(run, "ask").decided_by == "user:eve"


def test_a_decision_that_waits_for_another_names_the_present_status(tenant: Tenant, fleet: Fleet) -> None:
    run = start_new_workflow(tenant, APPROVAL)
    fleet.run()
    step = latest_step(run, "ask")
    refusals: list[str] = []

    def deny() -> None:
        try:
            with tenant_transaction(tenant.id):
                decide_step(step_id=step.id, approved=False, actor="user:bob")
        except TransitionIllegal as refusal:
            refusals.append(str(refusal))

    with tenant_transaction(tenant.id):
        decide_step(step_id=step.id, approved=True, actor="user:eve")
        start_blocked(deny)
    assert refusals == ["the step ask is answered, so it cannot be decided any more"]


def test_a_reply_that_waits_for_the_next_try_is_not_used(tenant: Tenant, agent: Agent, fleet: Fleet) -> None:
    run = start_new_workflow(tenant, 'a [type=prompt, prompt="x"]; start -> a -> done', agent=agent)
    fleet.step()
    step = latest_step(run, "a")
    stored: list[bool] = []

    def answer() -> None:
        with tenant_transaction(tenant.id):
            stored.append(answer_prompt(step_id=step.id, attempt=1, output="late"))

    with tenant_transaction(tenant.id):
        # As a leg does once the time for the first answer is over.
        WorkflowStep.objects.filter(id=step.id).update(attempts=2)
        start_blocked(answer)
    assert (stored, latest_step(run, "a").status) == ([False], "waiting")


def test_a_start_of_a_workflow_that_is_being_deleted_finds_none(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow = define_workflow(tenant, 'a [type=note, text="x"]; start -> a -> done')

    delete = in_tenant(tenant.id, delete_workflow, workflow_id=workflow.id, actor="user:eve")

    def delete_meanwhile(*args: Any) -> Any:
        in_own_connection(delete).join(20)
        return check_input(*args)

    monkeypatch.setattr(runs, "check_input", delete_meanwhile)
    with pytest.raises(NotFound, match="there is no workflow report"):
        start_workflow(workflow)


def test_a_leg_writes_what_it_changes_in_few_statements(
    tenant: Tenant, fleet: Fleet, statements: list[str]
) -> None:
    run = start_new_workflow(tenant, APPROVAL)
    fleet.run()
    make_due(run, latest_step(run, "ask").id)
    statements.clear()
    advance_due_runs(tenant.id)
    (written,) = (text for text in statements if text.startswith('UPDATE "workflows_workflowstep"'))
    # The statements of the sweep included.
    assert len(statements) == 10
    assert '"status"' in written
    assert not any(f'"{name}" =' in written for name in ("number", "kind", "input", "started_at"))


def test_a_leg_locks_all_agents_that_it_may_hand_a_step(
    tenant: Tenant,
    new_agent: Callable[..., Agent],
    fleet: Fleet,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A step that cannot be handed over leads to a step of another agent in the same leg.
    first, second = sorted((new_agent(tenant, name) for name in ("Bob", "Cleo")), key=lambda agent: agent.id)
    with tenant_transaction(tenant.id):
        Agent.objects.filter(id=second.id).update(status="stopped")
    run = start_new_workflow(
        tenant,
        f'a [type=delegate, task="x", agent="{second.name}"]; b [type=delegate, task="y", agent="{first.name}"];'
        'start -> a -> done; a -> b [condition="outcome=failure"]; b -> done',
    )
    events: list[Any] = []

    def record_lock(agent_id: Any) -> None:
        events.append(agent_id)
        lock_schedule(agent_id)

    def record_ask(*args: Any, **options: Any) -> Any:
        events.append("ask")
        return request_answer(*args, **options)

    monkeypatch.setattr(legs, "lock_schedule", record_lock)
    monkeypatch.setattr(legs, "request_answer", record_ask)
    fleet.step()
    assert [(step.name, step.status) for step in current_steps(run)] == [("a", "failed"), ("b", "waiting")]
    assert events == [first.id, second.id, "ask", "ask"]
