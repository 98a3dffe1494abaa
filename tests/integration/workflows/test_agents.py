"""Agents start workflows and answer steps that are delegated to them, by actions of their heartbeats."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from apps.agents.models import Agent, AgentEndorsement
from apps.audit.models import AuditAction, AuditEvent
from apps.authority.services.approvals import approvals, approve
from apps.authority.services.grants import grant_capability, revoke_actions
from apps.fleet.identities import reinstate_identity, revoke_identity, suspend_identity
from apps.heartbeats.models import Heartbeat
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from apps.workflows.models import WorkflowRun
from apps.workflows.services.sweep import advance_due_runs
from arbor.agents.endorsement import EndorsementStatus
from arbor.authority.constraints import Constraints
from arbor.models.ports import ScriptedModel
from tests.integration.heartbeats.conftest import run_heartbeat
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import HeartbeatRunner, action_of, reply_of
from tests.integration.workflows.workflow_setup import (
    defined,
    make_due,
    outputs,
    run_now,
    started,
    step_now,
)

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
    defined(tenant, NOTE, name="report")
    defined(tenant, NOTE, name="secret")
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
        # A new agent is little trusted: a person approves what it starts.
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
    assert (run_now(run).status, outputs(run)) == ("succeeded", {"a": "About rain"})


def test_a_workflow_is_not_offered_before_its_grant_begins(
    tenant: Tenant, agent: Agent, heartbeats: HeartbeatRunner
) -> None:
    defined(tenant, NOTE, name="report")
    grant(agent, "arbor://workflows/execute/report", not_before=datetime.now(UTC) + timedelta(days=1))
    assert "start_workflow" not in heartbeats.run(reply_of())


def test_an_agent_reads_its_step_and_answers_it(
    tenant: Tenant, agent: Agent, fleet: Fleet, heartbeats: HeartbeatRunner
) -> None:
    workflow = defined(
        tenant, 'a [type=delegate, task="Draw {input.topic}"]; start -> a -> done', agent=agent
    )
    run = started(workflow, topic="a cloud")
    fleet.run()
    step = step_now(run, "a")
    answer = action_of("complete_step", step=str(step.id), output="It is drawn.")
    prompt = heartbeats.run(reply_of(actions=[answer]))
    assert f"complete_step, step {step.id}" in prompt
    assert "Draw a cloud" in prompt
    fleet.run()
    assert (run_now(run).status, outputs(run)) == ("succeeded", {"a": "It is drawn."})
    assert step_now(run, "a").decided_by == f"agent:{agent.public_id}"


def test_an_answer_to_a_step_of_somebody_else_changes_nothing(
    tenant: Tenant, agent: Agent, fleet: Fleet, heartbeats: HeartbeatRunner
) -> None:
    run = started(defined(tenant, 'a [type=approval, question="x"]; start -> a -> done'))
    fleet.run()
    step = step_now(run, "a")
    grant(agent, "arbor://actions/execute/complete_step")
    heartbeats.run(reply_of(actions=[action_of("complete_step", step=str(step.id), output="approved")]))
    assert step_now(run, "a").status == "waiting"
    assert "is delegated to you" in json.dumps(last_heartbeat_of(agent).actions)


def test_the_rules_answer_a_delegated_step_where_no_model_is_in_use(
    tenant: Tenant, agent: Agent, fleet: Fleet
) -> None:
    run = started(defined(tenant, 'a [type=delegate, task="Draw"]; start -> a -> done', agent=agent))
    fleet.run()
    run_heartbeat(fleet, agent)
    fleet.run()
    assert run_now(run).status == "succeeded"
    assert outputs(run)["a"].startswith("Draw\nWhat I know:")


def test_a_revoked_right_to_answer_fails_the_step(tenant: Tenant, agent: Agent, fleet: Fleet) -> None:
    grant(agent, "arbor://actions/execute/complete_step")
    with tenant_transaction(tenant.id):
        revoke_actions(action="complete_step", agent_ids=[agent.id], reason="no", actor="cli:eve")
    run = started(defined(tenant, 'a [type=delegate, task="Draw"]; start -> a -> done', agent=agent))
    fleet.run()
    assert "may not complete_step any more" in run_now(run).error


def rest(agent: Agent, how: str) -> None:
    """Pause, stop, … the agent, or suspend or revoke its identity; `active` ends that."""
    with tenant_transaction(agent.tenant_id):
        if how in EndorsementStatus and how != "active":
            change = suspend_identity if how == "suspended" else revoke_identity
            change(agent_id=agent.id, reason="a test", actor="cli:eve")
        elif (
            how == "active"
            and AgentEndorsement.objects.get(agent_id=agent.id).status == EndorsementStatus.SUSPENDED
        ):
            reinstate_identity(agent_id=agent.id, actor="cli:eve")
        else:
            Agent.objects.filter(id=agent.id).update(status=how)


@pytest.mark.parametrize("how", ["paused", "dormant", "suspended"])
@pytest.mark.parametrize("step", ['prompt, prompt="x"', 'delegate, task="x"'])
def test_a_step_waits_while_its_agent_rests(
    tenant: Tenant, agent: Agent, fleet: Fleet, scripted: Callable[..., ScriptedModel], how: str, step: str
) -> None:
    model = scripted("fine")
    run = started(defined(tenant, f"a [type={step}]; start -> a -> done", agent=agent))
    rest(agent, how)
    fleet.run()
    waiting = step_now(run, "a")
    assert (waiting.status, waiting.attempts, model.requests) == ("retrying", 0, [])
    assert "Ada" in waiting.error
    assert how in waiting.error
    rest(agent, "active")
    make_due(run, waiting.id)
    assert advance_due_runs(tenant.id) == 1
    asked = step_now(run, "a")
    assert (asked.status, asked.attempts) == ("waiting", 1)


@pytest.mark.parametrize(
    ("how", "why"),
    [("stopped", "Ada is stopped"), ("created", "Ada is created"), ("revoked", "revoked"), ("", "no agent")],
)
def test_a_step_of_an_agent_that_has_ended_fails(
    tenant: Tenant, agent: Agent, fleet: Fleet, how: str, why: str
) -> None:
    run = started(defined(tenant, 'a [type=prompt, prompt="x", agent="Ada", retries=0]; start -> a -> done'))
    if how:
        rest(agent, how)
    else:
        with tenant_transaction(tenant.id):
            Agent.objects.filter(id=agent.id).update(name="Bob")
    fleet.run()
    assert (run_now(run).status, step_now(run, "a").status) == ("failed", "failed")
    assert why in run_now(run).error
