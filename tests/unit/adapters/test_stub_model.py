"""The stub model server: valid, varied and deterministic replies."""

from __future__ import annotations

import json
from typing import Any

from arbor.goals.values import GoalState
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.prompts.prompt import build_prompt
from arbor.heartbeat.replies.parsing import ParsedReply, parse_reply
from arbor.heartbeat.situation import Mode, Situation
from arbor.heartbeat.views import GoalView
from bench.support.stub_model import Mode as StubMode
from bench.support.stub_model import Stub
from bench.support.stub_reply import reply_to
from tests.unit.heartbeat import builders


def a_goal(number: int, state: GoalState) -> GoalView:
    title = f"Learn what Ada's (new) project {number} is"
    return builders.goal(str(number), title=title, state=state, fraction=0.3)


def situation(**changes: Any) -> Situation:
    values: dict[str, Any] = {
        "mode": Mode.GOAL_PURSUIT,
        "actions": ACTIONS.offers(tuple(ACTIONS)),
        "goals": [a_goal(1, GoalState.ACTIVE), a_goal(2, GoalState.QUEUED)],
        "recent": [builders.memory(str(number), content="Hi [x] 1") for number in range(5)],
    }
    return builders.situation(**(values | changes))


def answer(view: Situation, *, nonce: str = builders.NONCE) -> ParsedReply:
    """Return the stub's parsed reply to this situation; fail on repairs and dropped items."""
    prompt = build_prompt(view, "You are Scout.", nonce)
    parsed = parse_reply(json.dumps(reply_to(f"{prompt.system}\n{prompt.user}")))
    assert (parsed.dropped, parsed.repairs) == ((), ())
    return parsed


def test_the_stub_progresses_the_active_goal_with_offered_actions() -> None:
    reply = answer(situation()).reply

    assert [(update.goal_id, update.progress) for update in reply.goal_updates] == [("goal-1", 0.45)]
    assert {action.goal_id for action in reply.actions} == {"goal-1"}
    assert {action.action for action in reply.actions} <= set(ACTIONS)


def test_the_stub_executes_the_next_intent() -> None:
    intent = builders.intent("1", goal_id="goal-1", description="look (once)")

    (action,) = answer(situation(intents=[intent])).reply.actions

    assert (action.action, action.intent_id, action.goal_id) == ("recall", "intent-1", "goal-1")


def test_the_stub_completes_a_goal_that_is_nearly_done() -> None:
    nearly = a_goal(1, GoalState.ACTIVE).model_copy(update={"fraction": 0.9})

    (update,) = answer(situation(goals=[nearly])).reply.goal_updates

    assert (update.progress, update.state) == (1.0, GoalState.COMPLETED)


def test_the_stub_plans_a_goal_or_creates_one_by_mode() -> None:
    planned = answer(situation(mode=Mode.PLAN_EXECUTION)).reply
    wanted = answer(situation(goals=[], mode=Mode.REFLECTION)).reply

    assert [part.goal_id for part in planned.decompositions] == ["goal-1"]
    assert len(wanted.new_goals) == 1


def test_equal_prompts_get_equal_replies_and_others_differ() -> None:
    replies = [answer(situation(heartbeat_number=number)).reply for number in range(1, 200)]
    actions = {action.action for reply in replies for action in reply.actions}

    assert answer(situation()) == answer(situation())
    assert len({reply.model_dump_json() for reply in replies}) > 190
    assert actions == {"recall", "remember", "reflect", "connect", "reprioritize", "rest"}


def test_the_stub_messages_users_within_its_energy() -> None:
    written = 0
    for number in range(1, 60):
        prompt = build_prompt(situation(heartbeat_number=number, energy=6), "You are Scout.", builders.NONCE)
        parsed = parse_reply(json.dumps(reply_to(f"{prompt.system}\n{prompt.user}", writes=True)))
        assert (parsed.dropped, parsed.repairs) == ((), ())
        named = [action.action for action in parsed.reply.actions]
        assert named.count("reach_out_user") <= 1
        assert sum(ACTIONS[name].cost for name in named) <= 6
        written += "reach_out_user" in named
    assert 10 <= written <= 30


def test_the_stub_never_spends_more_than_its_energy() -> None:
    for number in range(50):
        reply = answer(situation(energy=1, heartbeat_number=number)).reply
        assert sum(ACTIONS[action.action].cost for action in reply.actions) <= 1


def test_a_prompt_of_no_heartbeat_still_gets_a_valid_reply() -> None:
    assert parse_reply(json.dumps(reply_to("Hello?"))).dropped == ()


def test_failures_are_spread_evenly_or_requested_by_model_name() -> None:
    stub = Stub(latency_s=0, mode=StubMode.ERROR, share=0.25, retry_after_s=1)

    modes = [stub.mode_for("any") for _ in range(100)]

    assert modes.count(StubMode.ERROR) == 25
    assert modes[:4].count(StubMode.ERROR) == 1
    assert stub.mode_for("stub-drip") is StubMode.DRIP
