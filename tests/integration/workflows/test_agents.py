"""Actions of heartbeats by which agents start workflows and answer steps that are delegated to them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from apps.agents.models import Agent, AgentEndorsement
from apps.audit.models import AuditAction, AuditEvent
from apps.authority.services.approvals import approvals, approve
from apps.authority.services.grants import grant_capability, revoke_actions
from apps.fleet.identities import reinstate_identity, revoke_identity, suspend_identity
from apps.goals.models import Goal
from apps.heartbeats.models import Heartbeat
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from apps.workflows.models import WorkflowRun
from apps.workflows.services.sweep import advance_due_runs
from arbor.agents.endorsement import EndorsementStatus
from arbor.authority.constraints import Constraints
from tests.integration.heartbeats.conftest import run_heartbeat
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import HeartbeatRunner, Script, action_of, reply_of
from tests.integration.workflows.workflow_setup import (
    define_workflow,
    latest_step,
    make_due,
    outputs_of,
    start_new_workflow,
    start_workflow,
)
from tests.support.rows import reload

NOTE = 'a [type=note, text="About {input.topic}"]; start -> a -> done'


def grant(agent: Agent, resource: str, not_before: datetime | None = None) -> None:
    constraints = Constraints(not_before=not_before)
    with tenant_transaction(agent.tenant_id):
        grant_capability(agent_id=agent.id, resource=resource, actor="cli:eve", constraints=constraints)


def last_heartbeat_of(agent: Agent) -> Heartbeat:
    with tenant_transaction(agent.tenant_id):
        return Heartbeat.objects.filter(agent_id=agent.id).latest("started_at")


def test_an_agent_starts_the_workflow_of_its_capability_and_no_other(
    tenant: Tenant, agent: Agent, fleet: Fleet, heartbeats: HeartbeatRunner
) -> None:
    define_workflow(tenant, NOTE, name="report")
    define_workflow(tenant, NOTE, name="secret")
    assert "start_workflow" not in heartbeats.run(reply_of())
    grant(agent, "arbor://workflows/execute/report")
    actions = [
        action_of("start_workflow", workflow="report", input='{"topic": "rain"}'),
        action_of("start_workflow", workflow="secret", input={"topic": "x"}),
        action_of("start_workflow", workflow="*"),
    ]
    prompt = heartbeats.run(reply_of(actions=actions))
    assert "its name: report" in prompt
    with tenant_transaction(tenant.id):
        # A new agent has a low trust tier, so a person approves the start.
        assert not WorkflowRun.objects.exists()
        (asked,) = approvals(agent_id=agent.id)
        assert asked.resource == "arbor://workflows/execute/report"
        approve(approval_id=asked.id, actor="user:eve")
    heartbeats.run(reply_of())
    with tenant_transaction(tenant.id):
        (run,) = WorkflowRun.objects.select_related("workflow")
        assert (run.workflow.name, run.trigger, run.agent_id) == ("report", "agent", agent.id)
        assert run.started_by == f"agent:{agent.public_id}"
        denials = AuditEvent.objects.filter(action=AuditAction.DENIED).order_by("id")
        assert [event.detail["resource"] for event in denials] == [
            "arbor://workflows/execute/secret",
            "arbor://workflows/execute/*",
        ]
    assert (reload(run).status, outputs_of(run)) == ("succeeded", {"a": "About rain"})


def test_a_workflow_is_not_offered_before_its_grant_begins(
    tenant: Tenant, agent: Agent, heartbeats: HeartbeatRunner
) -> None:
    define_workflow(tenant, NOTE, name="report")
    grant(agent, "arbor://workflows/execute/report", not_before=datetime.now(UTC) + timedelta(days=1))
    assert "start_workflow" not in heartbeats.run(reply_of())


def test_an_agent_reads_its_step_and_answers_it(
    tenant: Tenant, agent: Agent, fleet: Fleet, heartbeats: HeartbeatRunner
) -> None:
    workflow = define_workflow(
        tenant, 'a [type=delegate, task="Draw {input.topic}"]; start -> a -> done', agent=agent
    )
    run = start_workflow(workflow, topic="a cloud")
    fleet.run()
    step = latest_step(run, "a")
    answer = action_of("complete_step", step=str(step.id), output="It is drawn.")
    prompt = heartbeats.run(reply_of(actions=[answer]))
    assert f"complete_step, step {step.id}" in prompt
    assert "Draw a cloud" in prompt
    fleet.run()
    assert (reload(run).status, outputs_of(run)) == ("succeeded", {"a": "It is drawn."})
    assert latest_step(run, "a").decided_by == f"agent:{agent.public_id}"


def test_two_runs_wait_for_the_same_step_of_an_agent(
    tenant: Tenant, agent: Agent, fleet: Fleet, heartbeats: HeartbeatRunner
) -> None:
    workflow = define_workflow(tenant, 'a [type=delegate, task="Draw"]; start -> a -> done', agent=agent)
    runs = [start_workflow(workflow), start_workflow(workflow)]
    fleet.run()
    steps = [latest_step(run, "a") for run in runs]
    with tenant_transaction(tenant.id):
        names = dict(Goal.objects.values_list("id", "title"))
    titles = [names[step.goal_id] for step in steps if step.goal_id]
    assert titles[1] == f"{titles[0]} ({str(steps[1].id)[-6:]})"
    answers = [action_of("complete_step", step=str(step.id), output="Drawn.") for step in steps]
    heartbeats.run(reply_of(actions=answers))
    fleet.run()
    assert [reload(run).status for run in runs] == ["succeeded", "succeeded"]


def test_only_an_agent_with_a_waiting_step_is_offered_to_answer(
    tenant: Tenant, agent: Agent, fleet: Fleet, heartbeats: HeartbeatRunner
) -> None:
    run = start_new_workflow(tenant, 'a [type=delegate, task="Draw"]; start -> a -> done', agent=agent)
    fleet.run()
    answer = action_of("complete_step", step=str(latest_step(run, "a").id), output="Drawn.")
    assert "- complete_step (" in heartbeats.run(reply_of(actions=[answer]))
    fleet.run()
    assert reload(run).status == "succeeded"
    assert "- complete_step (" not in heartbeats.run(reply_of(actions=[answer]))
    assert "no step of a workflow that is delegated to you waits" in json.dumps(
        last_heartbeat_of(agent).actions
    )


def test_an_answer_to_a_step_of_somebody_else_changes_nothing(
    tenant: Tenant, agent: Agent, fleet: Fleet, heartbeats: HeartbeatRunner
) -> None:
    run = start_new_workflow(tenant, 'a [type=approval, question="x"]; start -> a -> done')
    start_new_workflow(tenant, 'b [type=delegate, task="Draw"]; start -> b -> done', name="own", agent=agent)
    fleet.run()
    step = latest_step(run, "a")
    heartbeats.run(reply_of(actions=[action_of("complete_step", step=str(step.id), output="approved")]))
    assert latest_step(run, "a").status == "waiting"
    assert "is delegated to you" in json.dumps(last_heartbeat_of(agent).actions)


def test_the_reflex_policy_answers_a_delegated_step(tenant: Tenant, agent: Agent, fleet: Fleet) -> None:
    run = start_new_workflow(tenant, 'a [type=delegate, task="Draw"]; start -> a -> done', agent=agent)
    fleet.run()
    run_heartbeat(fleet, agent)
    fleet.run()
    assert reload(run).status == "succeeded"
    assert outputs_of(run)["a"].startswith("Draw\nWhat I know:")


def test_a_revoked_right_to_answer_fails_the_step(tenant: Tenant, agent: Agent, fleet: Fleet) -> None:
    grant(agent, "arbor://actions/execute/complete_step")
    with tenant_transaction(tenant.id):
        revoke_actions(action="complete_step", agent_ids=[agent.id], reason="no", actor="cli:eve")
    run = start_new_workflow(tenant, 'a [type=delegate, task="Draw"]; start -> a -> done', agent=agent)
    fleet.run()
    assert "may not complete_step any more" in reload(run).error


def set_status(agent: Agent, status: str) -> None:
    """Set the status of the agent, or suspend or revoke its identity; `active` undoes a suspension too."""
    with tenant_transaction(agent.tenant_id):
        if status in EndorsementStatus and status != "active":
            change = suspend_identity if status == "suspended" else revoke_identity
            change(agent_id=agent.id, reason="a test", actor="cli:eve")
        elif (
            status == "active"
            and AgentEndorsement.objects.get(agent_id=agent.id).status == EndorsementStatus.SUSPENDED
        ):
            reinstate_identity(agent_id=agent.id, actor="cli:eve")
        else:
            Agent.objects.filter(id=agent.id).update(status=status)


@pytest.mark.parametrize("status", ["paused", "dormant", "suspended"])
@pytest.mark.parametrize("step", ['prompt, prompt="x"', 'delegate, task="x"'])
def test_a_step_waits_while_its_agent_may_not_act(
    tenant: Tenant, agent: Agent, fleet: Fleet, scripted: Script, status: str, step: str
) -> None:
    model = scripted("fine")
    run = start_new_workflow(tenant, f"a [type={step}]; start -> a -> done", agent=agent)
    set_status(agent, status)
    fleet.run()
    waiting = latest_step(run, "a")
    assert (waiting.status, waiting.attempts, model.requests) == ("retrying", 0, [])
    assert "Ada" in waiting.error
    assert status in waiting.error
    set_status(agent, "active")
    make_due(run, waiting.id)
    assert advance_due_runs(tenant.id) == 1
    asked = latest_step(run, "a")
    assert (asked.status, asked.attempts) == ("waiting", 1)


@pytest.mark.parametrize(
    ("status", "reason"),
    [("stopped", "Ada is stopped"), ("created", "Ada is created"), ("revoked", "revoked"), ("", "no agent")],
)
def test_a_step_of_a_stopped_new_or_missing_agent_fails(
    tenant: Tenant, agent: Agent, fleet: Fleet, status: str, reason: str
) -> None:
    run = start_new_workflow(
        tenant, 'a [type=prompt, prompt="x", agent="Ada", retries=0]; start -> a -> done'
    )
    if status:
        set_status(agent, status)
    else:
        with tenant_transaction(tenant.id):
            Agent.objects.filter(id=agent.id).update(name="Bob")
    fleet.run()
    assert (reload(run).status, latest_step(run, "a").status) == ("failed", "failed")
    assert reason in reload(run).error
