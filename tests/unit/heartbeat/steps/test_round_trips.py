"""Thinking: prompt, models, calls and parsing."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from arbor.heartbeat.inputs import Routing
from arbor.heartbeat.needs import EndedCall, PastExchange, PastQuestion, Question
from arbor.heartbeat.prompts.questions import request_of
from arbor.heartbeat.replies.items import Dropped
from arbor.heartbeat.replies.reply import ProposedGoal, Reply
from arbor.heartbeat.results import RoundTripRecord
from arbor.heartbeat.situation import Mode
from arbor.heartbeat.state import HeartbeatState, PromptParts
from arbor.heartbeat.steps.round_trips import Think, build_the_prompt, parse, with_next_model
from arbor.heartbeat.tiers import ThinkTier
from arbor.heartbeat.usage import BudgetLevel
from arbor.models.ports import CallPurpose, PromptMessage
from arbor.pipeline.engine import NodeOutcome
from tests.unit.heartbeat.builders import NONCE, goal, percept, situation
from tests.unit.heartbeat.state_builders import CALL, Answers, heartbeat_of, moment_of, opening_of, rules_of

PURSUING: dict[str, Any] = {"mode": Mode.PLAN_EXECUTION, "goals": [goal()]}
PAST_EXCHANGE = PastExchange(
    system="You live.",
    messages=(PromptMessage(role="user", content="Look."),),
    sections=({"name": "moment", "text": "Look.", "tokens": 2, "cut": 0},),
    reply='{"thinking": "hm"}',
)
REPLY = {"thinking": "hm", "actions": [{"action": "rest"}], "memory_notes": [], "goal_updates": []}


# --- The prompt ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("view", "routing", "installed", "tier", "models"),
    [
        (PURSUING, Routing(), {}, "strategic", ["openai/large"]),
        (PURSUING, Routing(own="ollama/own"), {ThinkTier.STRATEGIC: ("a/x",)}, "strategic", ["ollama/own"]),
        (PURSUING, Routing(), {ThinkTier.STRATEGIC: ("a/x", "b/y")}, "strategic", ["a/x", "b/y"]),
        (PURSUING, Routing(own="o/o", tiers={"strategic": ["p/q", "p/r"]}), {}, "strategic", ["p/q", "p/r"]),
        (
            {**PURSUING, "degradation": BudgetLevel.DEGRADATION},
            Routing(tiers={"strategic": ["p/q"]}),
            {},
            None,
            ["openai/large"],
        ),
    ],
)
def test_the_situation_chooses_the_tier_and_the_models(
    view: dict[str, Any],
    routing: Routing,
    installed: dict[ThinkTier, tuple[str, ...]],
    tier: str | None,
    models: list[str],
) -> None:
    moment = moment_of(rules=rules_of(tier_models=installed))
    new = heartbeat_of(situation=situation(**view), routing=routing, moment=moment)
    heartbeat = Answers().run(build_the_prompt(new)).state

    assert [heartbeat.model, *heartbeat.models_left] == models
    assert heartbeat.tier == tier if tier else heartbeat.tier != "strategic"
    assert (heartbeat.round_trip, heartbeat.mark) == (1, NONCE)


def test_the_prompt_contains_the_character_and_the_situation() -> None:
    view = situation(percepts=[percept("The ferry is late")])
    heartbeat = heartbeat_of(
        situation=view, character="You are Mira.", missing={"recall": "no memory"}, opening=opening_of()
    )
    heartbeat = Answers().run(build_the_prompt(heartbeat)).state

    assert heartbeat.prompt is not None
    assert "You are Mira." in heartbeat.prompt.system
    assert "The ferry is late" in heartbeat.prompt.user
    assert NONCE in heartbeat.prompt.user
    assert all(section["tokens"] > 0 for section in heartbeat.prompt.sections)
    assert any("The ferry is late" in section["text"] for section in heartbeat.prompt.sections)
    # The prompt contains the character, which need not be stored.
    assert heartbeat.character == ""
    terms = heartbeat.situation.terms
    assert terms is not None
    assert (terms.missing, terms.window) == ({"recall": "no memory"}, 32_000)


def test_percepts_that_exceed_the_prompt_stay_pending() -> None:
    many = [percept("The ferry is late. " * 200, id=f"percept-{number}") for number in range(40)]
    heartbeat = Answers().run(build_the_prompt(heartbeat_of(situation=situation(percepts=many)))).state

    view = heartbeat.situation
    assert 0 < len(view.percepts) < len(many)
    assert {item.id for item in (*view.percepts, *view.waiting)} == {item.id for item in many}


@pytest.mark.parametrize(("handle", "reflex"), [("reflex/rules", True), ("openai/large", False)])
def test_the_situation_states_whether_a_language_model_is_used(handle: str, reflex: bool) -> None:
    heartbeat = heartbeat_of(situation=situation(model_is_reflex=not reflex), routing=Routing(own=handle))
    heartbeat = Answers().run(build_the_prompt(heartbeat)).state
    assert heartbeat.situation.model_is_reflex is reflex


# --- Asking --------------------------------------------------------------------------------------------


def heartbeat_with_prompt(**changes: Any) -> HeartbeatState:
    sections = ({"name": "moment", "text": "Look.", "tokens": 7, "cut": 0},)
    return heartbeat_of(
        prompt=PromptParts(system="You live.", user="Look.", sections=sections), round_trip=1, **changes
    )


def ask_model(heartbeat: HeartbeatState, answers: Answers | None = None) -> tuple[HeartbeatState, Question]:
    """Run `Think`, and return the heartbeat with its question to the model."""
    result = (answers or Answers()).run(Think()(heartbeat))
    assert result.suspend is not None
    assert result.suspend.kind == CallPurpose.THINK.value
    return result.state, result.suspend.payload


def test_the_first_question_is_the_prompt() -> None:
    answers = Answers()
    heartbeat, question = ask_model(heartbeat_with_prompt(allowed=["recall", "rest"]), answers)

    request = request_of(question.request)
    assert answers.needs == []
    assert (question.model, request.system) == ("openai/large", "You live.")
    assert [(message.role, message.content) for message in request.messages] == [("user", "Look.")]
    assert (request.max_tokens, request.context) == (2_000, {})
    assert "recall" in json.dumps(request.schema)
    assert "inquire_deep" not in json.dumps(request.schema)
    # The call stores the prompt.
    assert (heartbeat.prompt, heartbeat.asked_tokens) == (None, 7)
    assert [section["name"] for section in question.sections] == ["moment"]


def test_the_reflex_policy_gets_the_situation_itself() -> None:
    _, question = ask_model(
        heartbeat_with_prompt(situation=situation(model_is_reflex=True), model="reflex/rules")
    )
    assert question.request["context"]["name"] == "Mira"


def test_a_model_gets_its_unreadable_reply_with_the_error() -> None:
    heartbeat = heartbeat_of(round_trip=1, unreadable="it is no JSON", reply_text="so what")
    answers = Answers({PastQuestion: PAST_EXCHANGE})
    _, question = ask_model(heartbeat, answers)

    messages = request_of(question.request).messages
    assert answers.needs == [PastQuestion(call_id=None)]
    assert [message.role for message in messages] == ["user", "assistant", "user"]
    assert messages[1].content == "so what"
    assert "it is no JSON" in messages[2].content


def test_a_further_round_trip_extends_the_conversation() -> None:
    answered = UUID(int=9)
    heartbeat = heartbeat_of(
        round_trip=2, answered=answered, follow_up="Ines keeps it.", conversation_tokens=50
    )
    answers = Answers({PastQuestion: PAST_EXCHANGE})
    heartbeat, question = ask_model(heartbeat, answers)

    messages = request_of(question.request).messages
    assert answers.needs == [PastQuestion(call_id=answered)]
    assert [message.content for message in messages] == ["Look.", PAST_EXCHANGE.reply, "Ines keeps it."]
    assert [section["name"] for section in question.sections] == ["conversation", "follow_up"]
    assert heartbeat.asked_tokens > 50


# --- The answer ----------------------------------------------------------------------------------------


def failed_call(kind: str) -> EndedCall:
    return EndedCall(call_id=CALL, complete=False, text="", error="it is away", error_kind=kind)


def test_a_reply_is_stored_with_its_call() -> None:
    result = Think().resume(
        heartbeat_with_prompt(failure="before"), EndedCall(call_id=CALL, complete=True, text="{}")
    )
    heartbeat = result.state
    assert (result.outcome, heartbeat.reply_text, heartbeat.call_id, heartbeat.failure) == (
        NodeOutcome.SUCCESS,
        "{}",
        CALL,
        "",
    )


@pytest.mark.parametrize(
    ("kind", "left", "outcome", "model"),
    [
        ("ModelUnavailable", ["b/y", "c/z"], NodeOutcome.RETRY, "b/y"),
        ("ModelTimeout", ["b/y"], NodeOutcome.RETRY, "b/y"),
        ("ModelUnavailable", [], NodeOutcome.FAILURE, "openai/large"),
        ("ModelRefused", ["b/y"], NodeOutcome.FAILURE, "openai/large"),
        ("ZeroDivisionError", ["b/y"], NodeOutcome.FAILURE, "openai/large"),
    ],
)
def test_a_failed_call_asks_the_next_model_or_fails_the_heartbeat(
    kind: str, left: list[str], outcome: NodeOutcome, model: str
) -> None:
    result = Think().resume(heartbeat_with_prompt(models_left=left), failed_call(kind))

    assert (result.outcome, result.state.model) == (outcome, model)
    assert result.state.failure == f"{kind}: it is away"
    assert result.state.reply is None
    if outcome is NodeOutcome.RETRY:
        assert result.state.models_left == left[1:]
        assert "b/y is asked" in result.changed[0]


def test_a_reflex_fallback_is_noted_in_the_situation() -> None:
    heartbeat = with_next_model(heartbeat_of(models_left=["reflex/rules"]))
    assert heartbeat.situation.model_is_reflex


# --- Reading -------------------------------------------------------------------------------------------


def test_a_reply_is_parsed_and_unused_items_are_recorded() -> None:
    text = f"```json\n{json.dumps({**REPLY, 'dreams': 1})}\n```"
    result = parse(
        heartbeat_of(round_trip=1, reply_text=text, invalid_replies=2, failure="x", unreadable="y")
    )

    heartbeat = result.state
    assert result.outcome is NodeOutcome.SUCCESS
    assert [action.action for action in heartbeat.reply_or_empty.actions] == ["rest"]
    assert (heartbeat.failure, heartbeat.unreadable, heartbeat.invalid_replies, heartbeat.round_trips) == (
        "",
        "",
        0,
        1,
    )
    assert heartbeat.present.reasoning == "hm"
    assert [item.path for item in heartbeat.present.dropped] == ["dreams"]
    assert heartbeat.present.repairs != []


def test_an_unreadable_reply_is_requested_again_and_counted() -> None:
    result = parse(heartbeat_of(round_trip=1, reply_text="so what", invalid_replies=1))
    heartbeat = result.state
    assert (result.outcome, heartbeat.invalid_replies, heartbeat.reply) == (NodeOutcome.RETRY, 2, None)
    assert heartbeat.failure == f"no usable reply in 2 tries: {heartbeat.unreadable}"


def test_later_round_trips_share_the_limit_of_new_goals() -> None:
    goals = [{"title": f"goal {number}"} for number in range(2)]
    earlier = Reply(new_goals=[ProposedGoal(title="a"), ProposedGoal(title="b")])
    before = Dropped(path="a", value="", reason="b")
    heartbeat = heartbeat_of(
        round_trip=2,
        reply_text=json.dumps({**REPLY, "new_goals": goals}),
        earlier_reply=earlier,
        present=RoundTripRecord(dropped=[before]),
    )
    heartbeat = parse(heartbeat).state
    assert [item.title for item in heartbeat.reply_or_empty.new_goals] == ["goal 0"]
    assert [item.path for item in heartbeat.present.dropped] == ["a", "new_goals[1]"]
    assert heartbeat.round_trips == 2


def test_a_left_over_goal_keeps_its_place_however_much_is_dropped() -> None:
    earlier = Reply(new_goals=[ProposedGoal(title=title) for title in "abc"])
    unknown = {f"key{number}": 1 for number in range(60)}
    text = json.dumps({**REPLY, **unknown, "new_goals": [7, {"title": "d"}]})
    heartbeat = parse(heartbeat_of(round_trip=2, reply_text=text, earlier_reply=earlier)).state
    assert heartbeat.present.dropped[-1].path == "new_goals[1]"
