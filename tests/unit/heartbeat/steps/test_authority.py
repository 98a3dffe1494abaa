"""Actions between decision and execution: what was signed runs once, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from arbor.authority.constraints import Constraints
from arbor.authority.grants import ACTION_PREFIX
from arbor.errors import SealBroken
from arbor.heartbeat.replies.reply import ProposedAction, Reply
from arbor.heartbeat.results import RoundTripRecord
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.steps.actions import act
from arbor.heartbeat.steps.decisions import decide
from tests.support.authority import OTHER_KEY, authority_of, grant_of, grants_of
from tests.unit.heartbeat.state_builders import (
    Answers,
    action_record_of,
    heartbeat_of,
    moment_of,
    permitting,
)

REST = ACTION_PREFIX + "rest"


def heartbeat_after_decide(*actions: str, **changes: Any) -> HeartbeatState:
    """Return a heartbeat that has decided to do these actions."""
    reply = Reply(actions=[ProposedAction(action=name) for name in actions])
    values: dict[str, Any] = {"moment": permitting("rest"), "reply": reply, "round_trip": 1}
    return Answers().run(decide(heartbeat_of(**(values | changes)))).state


def run_act(heartbeat: HeartbeatState) -> HeartbeatState:
    return Answers().run(act(heartbeat)).state


def test_a_decided_action_is_signed_and_runs_under_its_grant() -> None:
    heartbeat = heartbeat_after_decide("rest", "recall")
    assert heartbeat.signed is not None
    (request,) = heartbeat.signed.requests
    assert (request.resource, request.nonce.round_trip, request.nonce.index) == (REST, 1, 0)
    heartbeat = run_act(heartbeat)
    assert [record.decision.verdict for record in heartbeat.action_records] == ["run", "not_authorized"]
    assert heartbeat.action_records[0].decision.capability_id == grants_of("rest")[0].id
    # The signature is used once, and not stored with what follows.
    assert heartbeat.signed is None


def _other_params(heartbeat: HeartbeatState) -> HeartbeatState:
    (decision,) = heartbeat.decisions
    return replace(heartbeat, decisions=[decision.model_copy(update={"params": {"reason": "changed"}})])


def _other_action(heartbeat: HeartbeatState) -> HeartbeatState:
    (decision,) = heartbeat.decisions
    return replace(heartbeat, decisions=[decision.model_copy(update={"action": "observe"})])


def _with_grants(*actions: str) -> Callable[[HeartbeatState], HeartbeatState]:
    return lambda heartbeat: replace(heartbeat, moment=permitting(*actions))


@pytest.mark.parametrize(
    ("tamper", "audited", "code"),
    [
        (_other_params, "request.refused", "body_changed"),
        (_other_action, "request.refused", "body_changed"),
        (lambda heartbeat: replace(heartbeat, signed=None), "request.refused", "bad_signature"),
        (lambda heartbeat: replace(heartbeat, heartbeat_id=UUID(int=9)), "request.refused", "replayed"),
        (lambda heartbeat: replace(heartbeat, round_trip=2), "request.refused", "replayed"),
        (
            lambda heartbeat: replace(
                heartbeat, earlier=RoundTripRecord(action_records=[action_record_of("rest")])
            ),
            "request.refused",
            "replayed",
        ),
        (
            lambda heartbeat: replace(
                heartbeat, moment=moment_of(authority=authority_of(grant_of(REST, by=OTHER_KEY)))
            ),
            "request.refused",
            "bad_signature",
        ),
        # The grant is revoked between decision and execution, which may be legs apart.
        (_with_grants("recall"), "denied", "no_grant"),
        (
            lambda heartbeat: replace(heartbeat, moment=moment_of(authority=None)),
            "request.refused",
            "other_agent",
        ),
    ],
)
def test_an_action_that_is_not_what_was_signed_is_refused(
    tamper: Callable[[HeartbeatState], HeartbeatState], audited: str, code: str
) -> None:
    heartbeat = run_act(tamper(heartbeat_after_decide("rest")))
    (record,) = heartbeat.action_records
    assert (record.decision.verdict, record.result.outcome, record.result.cost) == (
        "not_authorized",
        "blocked",
        0,
    )
    assert record.decision.why is not None
    assert record.decision.why.code == code
    (note,) = heartbeat.effects.audit
    assert (note.action, note.detail["code"]) == (audited, code)
    assert heartbeat.rests == 0


def test_an_agent_that_cannot_sign_does_nothing() -> None:
    class Broken:
        def sign_requests(self, requests: Any) -> Any:
            raise SealBroken("the key does not open")

    for signer in (None, Broken()):
        heartbeat = run_act(heartbeat_after_decide("rest", moment=replace(permitting("rest"), signer=signer)))
        assert [record.decision.verdict for record in heartbeat.action_records] == ["not_authorized"]


def test_uses_of_a_grant_are_limited_and_recorded() -> None:
    grant = grant_of(REST, constraints=Constraints(max_uses=2))
    heartbeat = run_act(
        heartbeat_after_decide("rest", "rest", "rest", moment=moment_of(authority=authority_of(grant)))
    )
    verdicts = [record.decision.verdict for record in heartbeat.action_records]
    assert verdicts == ["run", "run", "not_authorized"]
    assert "uses" in heartbeat.action_records[2].decision.reason
    assert heartbeat.effects.capability_uses == (grant.id, grant.id)


def test_a_grant_without_limits_writes_nothing_when_used() -> None:
    assert run_act(heartbeat_after_decide("rest")).effects.capability_uses == ()


def test_a_denial_names_the_resource_and_the_possible_actions() -> None:
    (refused,) = run_act(heartbeat_after_decide("recall")).action_records
    assert refused.decision.reason == (
        "no grant of yours covers arbor://actions/execute/recall; possible: observe, review_goals,"
        " recall, search_my_memories, search_knowledge, remember, connect, maintain, reflect, inquire_shallow, inquire_deep, synthesize,"
        " brainstorm_goals, reprioritize, reach_out_user, reach_out_agent, reach_out_public, start_workflow, complete_step, rest"
    )
    # The possible actions change, so the agent remembers the reason alone.
    assert refused.result.summary == "not done: no grant of yours covers arbor://actions/execute/recall"
