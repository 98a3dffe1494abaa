"""Actions that wait for a person: asked, approved, executed once, denied."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from arbor.authority.approvals import APPROVAL_LIFETIME, ApprovalStatus, ApprovalView
from arbor.authority.grants import action_resource
from arbor.authority.modes import TrustMode, TrustPreset, TrustProfile, TrustRule
from arbor.authority.requests import body_hash, canonical_body
from arbor.goals.intents import IntentStatus
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.decision import DecisionVerdict
from arbor.heartbeat.inputs import Rules
from arbor.heartbeat.needs import OpenBacklog
from arbor.heartbeat.replies.reply import ProposedAction, Reply
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.steps.actions import act
from arbor.heartbeat.steps.backlog import goals, store_decompositions
from arbor.heartbeat.steps.decisions import decide
from arbor.memory.recall.recall_request import RecallRequest
from tests.support.authority import EVERYTHING
from tests.unit.heartbeat.builders import NOW, situation
from tests.unit.heartbeat.state_builders import (
    RULES,
    backlog_of,
    goal_row,
    heartbeat_of,
    intent_row,
    moment_of,
    run_step,
)

RECALL = {"query": "ferries"}
#: The parameters as `decide` completes them.
COMPLETE = ACTIONS["recall"].params.model_validate(RECALL).model_dump(mode="json")
APPROVAL = UUID(int=77)


def profile_of(mode: TrustMode) -> TrustProfile:
    return TrustProfile(rules=(TrustRule(prefix=action_resource("recall"), mode=mode),))


ASKING = profile_of(TrustMode.ASK)


def approval_of(status: ApprovalStatus, **changes: Any) -> ApprovalView:
    values: dict[str, Any] = {
        "id": APPROVAL,
        "status": status,
        "action": "recall",
        "resource": action_resource("recall"),
        "body": canonical_body(COMPLETE).decode() if status is ApprovalStatus.APPROVED else "",
        "body_hash": body_hash(COMPLETE),
        "expires_at": NOW + timedelta(days=1),
    }
    return ApprovalView(**(values | changes))


def heartbeat_with(
    *recalls: dict[str, Any],
    profile: TrustProfile = ASKING,
    approvals: tuple[ApprovalView, ...] = (),
    rules: Rules = RULES,
    **changes: Any,
) -> HeartbeatState:
    """Return a heartbeat whose reply proposes a recall with each of these parameters."""
    proposed = [ProposedAction(action="recall", params=params, reasoning="to know") for params in recalls]
    moment = moment_of(rules=rules, authority=replace(EVERYTHING, modes=profile, approvals=approvals))
    return heartbeat_of(moment=moment, reply=Reply(actions=proposed), **({"round_trip": 1} | changes))


def verdicts(heartbeat: HeartbeatState) -> list[str]:
    return [decision.verdict.value for decision in decide(heartbeat).state.decisions]


def decide_and_act(heartbeat: HeartbeatState) -> HeartbeatState:
    """Return the state after `decide` and `act`."""
    return run_step(act(decide(heartbeat).state), {RecallRequest: []}).state


def test_asked_action_waits_and_is_free() -> None:
    heartbeat = decide_and_act(heartbeat_with(RECALL))

    (record,) = heartbeat.action_records
    assert (record.decision.verdict, record.result.cost) == (DecisionVerdict.AWAITS_APPROVAL, 0)
    assert heartbeat.energy == 10
    (request,) = heartbeat.effects.approvals
    assert (str(request.id), request.resource) == (record.decision.approval_id, action_resource("recall"))
    assert (request.body, request.about) == (canonical_body(COMPLETE).decode(), "ferries")
    assert request.expires_at == NOW + APPROVAL_LIFETIME
    (note,) = heartbeat.effects.audit
    assert (note.action, note.detail["approval_id"]) == ("approval.asked", str(request.id))
    assert not heartbeat.effects.approvals_used


def test_same_action_is_asked_once() -> None:
    assert verdicts(heartbeat_with(RECALL, RECALL)) == ["awaits_approval", "too_many"]
    waiting = heartbeat_with(RECALL, approvals=(approval_of(ApprovalStatus.PENDING),))
    heartbeat = decide_and_act(waiting)
    assert heartbeat.action_records[0].decision.approval_id == str(APPROVAL)
    assert not heartbeat.effects.approvals
    assert not heartbeat.effects.audit


def test_request_has_the_same_id_when_decided_again() -> None:
    first, second = (decide(heartbeat_with(RECALL)).state.decisions[0].approval_id for _ in range(2))
    assert first == second


def test_approved_action_runs_before_the_reply() -> None:
    approved = approval_of(ApprovalStatus.APPROVED, reasoning="it matters")
    heartbeat = decide_and_act(heartbeat_with({"query": "tides"}, approvals=(approved,)))

    (record, other) = heartbeat.action_records
    assert (record.decision.params, record.decision.by_approval) == (COMPLETE, True)
    assert record.decision.reasoning == "it matters"
    assert record.decision.runs
    assert other.decision.verdict is DecisionVerdict.AWAITS_APPROVAL
    assert heartbeat.effects.approvals_used == (APPROVAL,)
    assert [note.action for note in heartbeat.effects.audit] == ["approval.executed", "approval.asked"]


def test_approved_action_runs_once() -> None:
    approved = approval_of(ApprovalStatus.APPROVED)
    assert verdicts(heartbeat_with(RECALL, approvals=(approved,))) == ["run", "too_many"]
    # A later round trip executes nothing that is not in its reply.
    assert verdicts(heartbeat_with(approvals=(approved,), round_trip=2)) == []


@pytest.mark.parametrize(
    "changes",
    [
        # The parameters are not those of the hash.
        {"body": canonical_body({**COMPLETE, "query": "gold"}).decode()},
        {"body_hash": body_hash({**COMPLETE, "query": "gold"})},
        {"resource": action_resource("remember")},
    ],
)
def test_approval_with_a_changed_row_is_refused(changes: dict[str, Any]) -> None:
    heartbeat = decide_and_act(heartbeat_with(approvals=(approval_of(ApprovalStatus.APPROVED, **changes),)))

    (record,) = heartbeat.action_records
    assert record.decision.verdict is DecisionVerdict.NOT_AUTHORIZED
    assert not heartbeat.effects.approvals_used
    assert [approval_id for approval_id, _ in heartbeat.effects.approvals_withdrawn] == [APPROVAL]


def test_approval_denied_between_legs_is_not_executed() -> None:
    decided = decide(heartbeat_with(approvals=(approval_of(ApprovalStatus.APPROVED),))).state
    denied = approval_of(ApprovalStatus.DENIED)
    moment = moment_of(authority=replace(EVERYTHING, modes=ASKING, approvals=(denied,)))

    heartbeat = run_step(act(replace(decided, moment=moment))).state

    assert not heartbeat.action_records[0].decision.runs
    assert not heartbeat.effects.approvals_used


def test_rule_that_changes_between_legs_counts() -> None:
    decided = decide(heartbeat_with(RECALL, profile=TrustProfile())).state
    moment = moment_of(authority=replace(EVERYTHING, modes=profile_of(TrustMode.BLOCK)))

    heartbeat = run_step(act(replace(decided, moment=moment))).state

    assert heartbeat.action_records[0].decision.verdict is DecisionVerdict.NOT_AUTHORIZED


def test_denied_action_is_refused_with_the_reason() -> None:
    denied = approval_of(ApprovalStatus.DENIED, reason="not at night")
    (decision,) = decide(heartbeat_with(RECALL, approvals=(denied,))).state.decisions

    assert decision.verdict is DecisionVerdict.NOT_AUTHORIZED
    assert "not at night" in decision.reason


def test_expired_approval_asks_again() -> None:
    expired = approval_of(ApprovalStatus.APPROVED, expires_at=NOW)
    heartbeat = decide_and_act(heartbeat_with(RECALL, approvals=(expired,)))

    assert [record.decision.verdict for record in heartbeat.action_records] == [
        DecisionVerdict.AWAITS_APPROVAL
    ]
    assert heartbeat.effects.approvals


def test_approved_action_waits_for_energy() -> None:
    approved = approval_of(ApprovalStatus.APPROVED)
    heartbeat = decide_and_act(heartbeat_with(approvals=(approved,), situation=situation(energy=0.0)))

    assert heartbeat.action_records[0].decision.verdict is DecisionVerdict.TOO_LITTLE_ENERGY
    assert not heartbeat.effects.approvals_used
    assert not heartbeat.effects.approvals_withdrawn


def test_always_allowed_action_uses_up_its_request() -> None:
    waiting = approval_of(ApprovalStatus.PENDING)
    heartbeat = decide_and_act(heartbeat_with(RECALL, profile=TrustProfile(), approvals=(waiting,)))

    assert heartbeat.action_records[0].decision.runs
    assert heartbeat.effects.approvals_used == (APPROVAL,)


@pytest.mark.parametrize("handle", ["openai", "openai/large"])
def test_model_limits_trust(handle: str) -> None:
    rules = replace(RULES, model_trust={handle: TrustPreset.CAUTIOUS})
    reply = Reply(
        actions=[ProposedAction(action="inquire_shallow", params={"question": "tides", "queries": ["tides"]})]
    )
    heartbeat = heartbeat_of(moment=moment_of(rules=rules), reply=reply, round_trip=1)

    assert verdicts(heartbeat) == ["awaits_approval"]
    assert verdicts(replace(heartbeat, model="anthropic/large")) == ["run"]


def test_intent_of_a_waiting_action_counts_no_attempt() -> None:
    reef = goal_row("reef")
    intent = intent_row(reef)
    backlog = backlog_of(reef, intents=[intent])
    asking = ProposedAction(action="recall", params=RECALL, goal_id=str(reef.id), intent_id=str(intent.id))
    heartbeat = replace(heartbeat_with(), reply=Reply(actions=[asking]))

    decided = run_step(store_decompositions(decide(heartbeat).state), {OpenBacklog: backlog}).state
    ended = run_step(goals(run_step(act(decided)).state), {OpenBacklog: backlog}).state

    assert ended.effects.approvals[0].intent_id == str(intent.id)
    kept = backlog.intent(intent.id)
    assert (kept.status, kept.attempts) == (IntentStatus.PENDING, 0)
