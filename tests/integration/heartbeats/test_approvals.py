"""Actions that people approve: from the question to the execution, once, with the same parameters."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from apps.agents.models import Agent, Trigger
from apps.audit.models import AuditEvent
from apps.authority.models import ActionApproval
from apps.authority.services.approvals import approve, deny, expire_approvals
from apps.authority.services.explanations import explain_authorization
from apps.authority.services.modes import set_mode, suggestions_of, trust_of
from apps.goals.models import Goal, Intent
from apps.heartbeats.services.legs import committing
from apps.memories.models import Memory
from apps.tenants.scope import tenant_transaction
from arbor.authority.approvals import OUTWARD_STREAK, ApprovalStatus
from arbor.authority.grants import action_resource
from arbor.authority.modes import TrustMode, TrustPreset
from arbor.errors import Invalid, TransitionIllegal
from arbor.goals.intents import IntentStatus
from tests.factories.goals import IntentFactory
from tests.integration.heartbeats.conftest import REST, heartbeats_of, lose_lease, schedule_of
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import HeartbeatRunner, action_of, reply_of

TEXT = "The reef is two fathoms deep."
REMEMBER = reply_of(actions=[action_of("remember", content=TEXT)])
PERSON = "user:nora"


@pytest.fixture
def asking(agent: Agent) -> Agent:
    """Return an agent that has to ask before it remembers."""
    with tenant_transaction(agent.tenant_id):
        set_mode(agent_id=agent.id, prefix=action_resource("remember"), mode=TrustMode.ASK, actor=PERSON)
    return agent


@pytest.fixture
def ask(asking: Agent, heartbeats: HeartbeatRunner) -> Callable[..., ActionApproval]:
    """Return a function that runs a heartbeat which asks, and returns the request."""

    def run(reply: str = REMEMBER) -> ActionApproval:
        heartbeats.run(reply)
        return latest_request(asking)

    return run


def latest_request(agent: Agent) -> ActionApproval:
    """Return the agent's latest request for approval."""
    with tenant_transaction(agent.tenant_id):
        return ActionApproval.objects.filter(agent_id=agent.id).latest("asked_at")


def count_remembered(agent: Agent) -> int:
    """Count the memories that the action of `REMEMBER` has stored."""
    with tenant_transaction(agent.tenant_id):
        return Memory.objects.filter(agent_id=agent.id, content=TEXT).count()


def decide(decision: Any, request: ActionApproval, **options: Any) -> ActionApproval:
    """Approve or deny a request as a person; return its row."""
    with tenant_transaction(request.tenant_id):
        row: ActionApproval = decision(approval_id=request.id, actor=PERSON, **options)
    return row


def audited_actions(agent: Agent) -> list[str]:
    with tenant_transaction(agent.tenant_id):
        rows = AuditEvent.objects.filter(agent_id=agent.id, action__startswith="approval.").order_by(
            "at", "id"
        )
        return list(rows.values_list("action", flat=True))


def test_an_action_is_asked_approved_and_executed_once(
    ask: Callable[..., ActionApproval], asking: Agent, heartbeats: HeartbeatRunner
) -> None:
    request = ask()
    assert (request.status, request.action, request.params["content"]) == ("pending", "remember", TEXT)
    assert count_remembered(asking) == 0
    (asked,) = heartbeats_of(asking)
    assert asked.energy_end == asked.energy_start
    (entry,) = asked.actions
    assert (entry["verdict"], entry["cost"], entry["approval_id"]) == ("awaits_approval", 0, str(request.id))
    assert "remember “The reef is two fathoms deep.”: waits for a person" in heartbeats.run(REST)

    decide(approve, request, reason="fine")
    schedule = schedule_of(asking)
    assert schedule.next_trigger == Trigger.EVENT
    assert schedule.next_due_at <= datetime.now(UTC) + timedelta(seconds=1)
    prompt = heartbeats.run(REST)

    assert "approved, executed before your actions as soon as" in prompt
    assert count_remembered(asking) == 1
    executed = latest_request(asking)
    executing = heartbeats_of(asking)[-1]
    assert (executed.status, executed.executed_by) == ("executed", executing.id)
    (first, rest) = executing.actions
    assert (first["params"], first["by_approval"], first["outcome"]) == (request.params, True, "success")
    assert rest["action"] == "rest"
    assert "remember" not in heartbeats.run(REST).partition("## Requests for approval")[2][:200]
    assert count_remembered(asking) == 1
    assert audited_actions(asking) == ["approval.asked", "approval.decided", "approval.executed"]


def test_an_approved_action_of_a_killed_worker_is_executed_once(
    ask: Callable[..., ActionApproval],
    asking: Agent,
    fleet: Fleet,
    heartbeats: HeartbeatRunner,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decide(approve, ask())

    class Killed(BaseException):
        """Simulates the end of a process."""

    write = committing.write_approvals

    def die(heartbeats: Any) -> None:
        write(heartbeats)
        if any(heartbeat.effects.approvals_used for heartbeat in heartbeats):
            raise Killed

    monkeypatch.setattr(committing, "write_approvals", die)
    with pytest.raises(Killed):
        heartbeats.run(REST)
    # Nothing of the leg was written: neither the memory nor the use.
    assert (count_remembered(asking), latest_request(asking).status) == (0, "approved")

    monkeypatch.setattr(committing, "write_approvals", write)
    lose_lease(asking)
    fleet.dispatch()
    fleet.run()
    heartbeats.run(REST)
    assert (count_remembered(asking), latest_request(asking).status) == (1, "executed")


def test_an_approval_that_expires_before_its_use_fails_the_heartbeat(
    ask: Callable[..., ActionApproval],
    asking: Agent,
    heartbeats: HeartbeatRunner,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    request = ask()
    decide(approve, request)
    write = committing.write_approvals

    def expire(heartbeats: Any) -> None:
        if any(heartbeat.effects.approvals_used for heartbeat in heartbeats):
            late = datetime.now(UTC) - timedelta(hours=1)
            ActionApproval.objects.filter(id=request.id).update(expires_at=late)
        write(heartbeats)

    monkeypatch.setattr(committing, "write_approvals", expire)
    heartbeats.run(REST)

    assert heartbeats_of(asking)[-1].status == "failed"
    assert "ApprovalLost" in heartbeats_of(asking)[-1].reason
    assert count_remembered(asking) == 0


def test_a_denied_request_is_refused_with_its_reason(
    ask: Callable[..., ActionApproval], asking: Agent, heartbeats: HeartbeatRunner
) -> None:
    decide(deny, ask(), reason="measure it first")

    prompt = heartbeats.run(REMEMBER)

    assert "denied: measure it first" in prompt
    (entry,) = heartbeats_of(asking)[-1].actions
    assert entry["verdict"] == "not_authorized"
    assert count_remembered(asking) == 0
    with tenant_transaction(asking.tenant_id):
        assert ActionApproval.objects.filter(agent_id=asking.id).count() == 1


def test_an_expired_request_is_asked_again(ask: Callable[..., ActionApproval], asking: Agent) -> None:
    first = ask()
    with tenant_transaction(asking.tenant_id):
        later = first.expires_at + timedelta(seconds=1)
        assert expire_approvals(agent_id=asking.id, now=later) == 1
        assert expire_approvals(agent_id=asking.id, now=later) == 0
    assert latest_request(asking).status == "expired"
    with pytest.raises(TransitionIllegal):
        decide(approve, first)

    assert ask().id != first.id
    assert audited_actions(asking) == ["approval.asked", "approval.expired", "approval.asked"]


def test_an_action_that_is_approved_for_always_asks_no_more(
    ask: Callable[..., ActionApproval], asking: Agent, heartbeats: HeartbeatRunner
) -> None:
    decide(approve, ask(), always=True)
    heartbeats.run(REST)
    heartbeats.run(reply_of(actions=[action_of("remember", content="The tide turns at six.")]))

    (entry,) = heartbeats_of(asking)[-1].actions
    assert (entry["verdict"], entry["outcome"]) == ("run", "success")
    with tenant_transaction(asking.tenant_id):
        (rule,) = trust_of(asking.id).rules
    assert rule.mode is TrustMode.ALLOW


def test_an_approval_can_be_denied_before_its_use(
    ask: Callable[..., ActionApproval], asking: Agent, heartbeats: HeartbeatRunner
) -> None:
    request = ask()
    decide(approve, request)
    decide(deny, request, reason="on second thoughts")
    heartbeats.run(REST)

    assert (count_remembered(asking), latest_request(asking).status) == (0, "denied")
    with pytest.raises(TransitionIllegal, match="denied already"):
        decide(approve, request)


def test_an_approval_whose_parameters_were_changed_is_withdrawn(
    ask: Callable[..., ActionApproval], asking: Agent, heartbeats: HeartbeatRunner
) -> None:
    request = ask()
    decide(approve, request)
    with tenant_transaction(asking.tenant_id):
        ActionApproval.objects.filter(id=request.id).update(body=request.body.replace("two", "ten"))
    heartbeats.run(REST)

    withdrawn = latest_request(asking)
    assert (withdrawn.status, withdrawn.executed_by) == ("withdrawn", None)
    with tenant_transaction(asking.tenant_id):
        assert not Memory.objects.filter(agent_id=asking.id, content__contains="ten fathoms").exists()


def test_an_intent_waits_for_its_approval_without_an_attempt(
    asking: Agent, goal: Goal, heartbeats: HeartbeatRunner
) -> None:
    with tenant_transaction(asking.tenant_id):
        intent = IntentFactory.create(agent=asking, goal=goal, action="remember")
    reply = reply_of(actions=[action_of("remember", str(intent.id), content=TEXT)])
    heartbeats.run(reply)
    with tenant_transaction(asking.tenant_id):
        waiting = Intent.objects.get(id=intent.id)
    assert (waiting.status, waiting.attempts) == (IntentStatus.PENDING, 0)

    decide(approve, latest_request(asking))
    heartbeats.run(REST)
    with tenant_transaction(asking.tenant_id):
        done = Intent.objects.get(id=intent.id)
    assert done.status == IntentStatus.COMPLETED


def add_executed_request(agent: Agent, resource: str, *, number: int, decided_at: datetime | None) -> None:
    """Add an executed request, without a decision if a rule allowed its action."""
    ActionApproval.objects.create(
        tenant_id=agent.tenant_id,
        agent_id=agent.id,
        action="reach_out_public",
        resource=resource,
        body="{}",
        body_hash=f"{number:064}",
        why="by test",
        status=ApprovalStatus.EXECUTED,
        asked_at=datetime.now(UTC),
        expires_at=datetime.now(UTC),
        decided_at=decided_at,
        executed_by=UUID(int=1),
    )


def test_a_streak_of_approvals_suggests_a_rule(asking: Agent) -> None:
    resource = action_resource("reach_out_public")
    with tenant_transaction(asking.tenant_id):
        set_mode(agent_id=asking.id, prefix=resource, mode=TrustMode.ASK, actor=PERSON)
        for number in range(OUTWARD_STREAK):
            assert suggestions_of(asking.id) == []
            add_executed_request(asking, resource, number=number, decided_at=datetime.now(UTC))
        (suggestion,) = suggestions_of(asking.id)
    assert (suggestion.resource, suggestion.approvals) == (resource, OUTWARD_STREAK)


def test_requests_executed_without_a_decision_are_no_streak(asking: Agent) -> None:
    resource = action_resource("reach_out_public")
    with tenant_transaction(asking.tenant_id):
        set_mode(agent_id=asking.id, prefix=resource, mode=TrustMode.ASK, actor=PERSON)
        for number in range(OUTWARD_STREAK):
            add_executed_request(asking, resource, number=number, decided_at=None)
        assert suggestions_of(asking.id) == []


def test_a_rule_above_a_ceiling_is_refused(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id), pytest.raises(Invalid, match="never above ask"):
        set_mode(agent_id=agent.id, prefix="arbor://shell/exec", mode=TrustMode.ALLOW, actor=PERSON)


def test_a_rule_of_the_tenant_applies_to_its_agents(agent: Agent, heartbeats: HeartbeatRunner) -> None:
    with tenant_transaction(agent.tenant_id):
        set_mode(agent_id=None, prefix="arbor://actions/execute/remember", mode=TrustMode.BLOCK, actor=PERSON)
    heartbeats.run(REMEMBER)

    (entry,) = heartbeats_of(agent)[-1].actions
    assert (entry["verdict"], count_remembered(agent)) == ("not_authorized", 0)


def test_a_model_limits_the_trust_in_its_agent(
    agent: Agent, heartbeats: HeartbeatRunner, settings: Any
) -> None:
    settings.ARBOR_MODEL_TRUST = {"scripted": TrustPreset.CAUTIOUS}
    heartbeats.run(
        reply_of(actions=[action_of("reach_out_user", intent="they asked for it", content="Hello.")])
    )

    (entry,) = heartbeats_of(agent)[-1].actions
    assert entry["verdict"] == "awaits_approval"


def test_a_blocked_action_is_neither_offered_nor_executed(agent: Agent, heartbeats: HeartbeatRunner) -> None:
    offer = "\n- remember"
    assert offer in heartbeats.run(REST)
    with tenant_transaction(agent.tenant_id):
        set_mode(agent_id=agent.id, prefix=action_resource("remember"), mode=TrustMode.BLOCK, actor=PERSON)
        explained = explain_authorization(agent_id=agent.id, resource="remember").authorization
    assert (explained.granted, explained.code) == (False, "blocked")
    assert offer not in heartbeats.run(REMEMBER)
    (entry,) = heartbeats_of(agent)[-1].actions
    assert (entry["verdict"], count_remembered(agent)) == ("not_authorized", 0)
    with tenant_transaction(agent.tenant_id):
        denied = AuditEvent.objects.get(agent_id=agent.id, action="denied")
    assert denied.detail["code"] == "blocked"
