"""Prompts of agents with a long history, for models with small windows."""

from __future__ import annotations

import json
import re
from typing import Any
from uuid import UUID

import pytest

from arbor.goals.plans import PlanStatus, StepStatus
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.needs import Question
from arbor.heartbeat.prompts.fitting import is_small, with_fewer_actions
from arbor.heartbeat.prompts.instructions import COMPACT_FORMAT, COMPACT_RULES, RESPONSE_FORMAT
from arbor.heartbeat.prompts.prompt import build_prompt
from arbor.heartbeat.prompts.questions import request_of
from arbor.heartbeat.replay import RecordedHeartbeat, prompt_of, replay
from arbor.heartbeat.replies.reply import COMMON_KEYS, Reply
from arbor.heartbeat.results import RoundTripRecord
from arbor.heartbeat.situation import Environment, LastHeartbeat, Mode, Notice, NoticeKind, Situation
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.steps.round_trips import Think, build_the_prompt, follow_up
from arbor.heartbeat.views import (
    AspectView,
    BeliefView,
    ContradictionView,
    DriveView,
    MatchedBoundary,
    PlanView,
    PreferenceView,
    StepView,
)
from arbor.heartbeat.working_memory import WorkingMemory
from arbor.models.token_estimates import estimate_tokens
from arbor.pipeline.engine import NodeOutcome
from arbor.selves.boundaries import BoundaryResponse
from arbor.selves.drives import Drive
from arbor.selves.values import AspectKind, BeliefCategory
from arbor.values import replace
from arbor.workflows.delegation import delegation_text
from tests.unit.heartbeat.builders import NONCE, NOW, goal, intent, memory, percept, proposal, situation
from tests.unit.heartbeat.state_builders import (
    Answers,
    action_record_of,
    heartbeat_of,
    moment_of,
    rules_of,
)

CHARACTER = "# Character: Mira\n\n" + "You map harbours, and speak plainly of what you saw. " * 40
PERCEPT = str(UUID(int=9))
DELEGATED = delegation_text(workflow="Digest", step="draft", step_id=UUID(int=8), task="Write it.")
DETAIL = "with its piers, cranes, lamps, ferries and what people say about each of them, " * 3


def rich_situation(**changes: Any) -> Situation:
    """Return the situation of an agent with a long history, with entries of usual lengths."""
    values: dict[str, Any] = {
        "mode": Mode.CONVERSATION,
        "environment": Environment(now=NOW, user_waiting=True, user_messages=1, pending_percepts=3),
        "goals": [goal(f"harbour {n}", id=f"goal-{n}", priority=9 - n, description=DETAIL) for n in range(8)],
        "intents": [intent(f"{n}", goal_id=f"goal-{n}", description=DETAIL) for n in range(5)],
        "aspects": [
            AspectView(id=f"aspect-{n}", kind=AspectKind.VALUE, content=f"{n}: {DETAIL}") for n in range(6)
        ],
        "beliefs": [
            BeliefView(id=f"b{n}", category=BeliefCategory.WORLD, statement=DETAIL, confidence=0.9)
            for n in range(8)
        ],
        "preferences": [PreferenceView(key=f"k{n}", value=DETAIL[:80]) for n in range(6)],
        "drives": [DriveView(name=Drive.CURIOSITY, level=0.9, urgent=True)],
        "recent": [memory(f"recent{n}", content=f"{DETAIL}{DETAIL}") for n in range(5)],
        "relevant": [memory(f"relevant{n}", content=f"{DETAIL}{DETAIL}") for n in range(5)],
        "contradictions": [
            ContradictionView(belief_id="b0", statement=DETAIL, memory_id="m", content=DETAIL)
            for _ in range(3)
        ],
        "proposals": [proposal(f"maps {n}") for n in range(4)],
        "plans": [
            PlanView(
                id="plan-1",
                goal_id="goal-0",
                status=PlanStatus.ACTIVE,
                steps=[
                    StepView(
                        position=n,
                        action="inquire_deep" if n == 4 else "recall",
                        description=DETAIL,
                        status=StepStatus.WAITING,
                    )
                    for n in range(1, 5)
                ],
            )
        ],
        "notices": [Notice(kind=NoticeKind.HOARDING, text="You hardly use your energy")],
        "boundary_matches": [
            MatchedBoundary(
                boundary="no_harm",
                response=BoundaryResponse.REFUSE,
                description="I do not hurt anybody",
                why="it says hurt",
                about=PERCEPT,
            )
        ],
        "percepts": [
            percept(f"When does the ferry leave? {DETAIL}", id=PERCEPT),
            *(percept(DETAIL, id=str(UUID(int=n)), kind="environment") for n in range(2)),
        ],
        "working_memory": WorkingMemory(concerns=[DETAIL] * 3, curiosity=[DETAIL] * 3),
        "last_heartbeat": LastHeartbeat(
            number=2, mode=Mode.REFLECTION, narrative=DETAIL, outcomes=[DETAIL * 2] * 4
        ),
    }
    return situation(**(values | changes))


def ask_model(window: int, view: Situation | None = None, **changes: Any) -> tuple[HeartbeatState, Question]:
    """Build the prompt, and return the heartbeat with its question to the model."""
    moment = moment_of(rules=rules_of(model_context=window, reply_tokens=4_096, default_model="ollama/small"))
    values: dict[str, Any] = {"situation": view or rich_situation(), "character": CHARACTER, "moment": moment}
    answers = Answers()
    heartbeat = answers.run(build_the_prompt(heartbeat_of(**(values | changes)))).state
    result = answers.run(Think()(heartbeat))
    assert result.suspend is not None
    return result.state, result.suspend.payload


def prompt_text(question: Question) -> str:
    request = request_of(question.request)
    return "\n\n".join([request.system, *(message.content for message in request.messages)])


@pytest.mark.parametrize(
    ("window", "memories", "goals"), [(8_192, 6, 2), (4_096, 2, 1)], ids=["8192", "4096"]
)
def test_a_small_window_shows_what_an_agent_needs(window: int, memories: int, goals: int) -> None:
    _, question = ask_model(window)
    request, text = request_of(question.request), prompt_text(question)
    tokens = sum(section["tokens"] for section in question.sections)

    assert tokens + request.max_tokens <= window
    assert request.max_tokens >= window // 6
    assert window == 4_096 or tokens <= window - window // 4
    assert "You map harbours" in text
    assert "[aspect-0]" in text
    assert "no_harm (refuse): I do not hurt anybody" in text
    assert "When does the ferry leave?" in text
    assert "[goal-0] Map the harbour 0" in text
    assert len(re.findall(r"\[goal-\d\] Map", text)) >= goals
    assert len(re.findall(r"\[memory-", text)) >= memories
    assert "curiosity (0.90 of 1)" in text
    assert ("You hardly use your energy" in text) is (window == 8_192)
    assert all(f'"{key}"' in text for key in COMMON_KEYS)
    assert "Answer with the JSON object only." in text


def test_the_prompt_of_a_small_window_is_replayed_equally() -> None:
    heartbeat, question = ask_model(8_192)
    situation = Situation.model_validate(heartbeat.situation.model_dump(mode="json"))
    assert situation.terms is not None
    recorded = RecordedHeartbeat(
        situation=situation,
        sections=[(section["name"], section["text"]) for section in question.sections],
        replies=[],
        actions=[],
        dropped=[],
        repairs=[],
        window=situation.terms.window or 0,
        reply_tokens=situation.terms.reply_tokens or 0,
    )
    prompt = prompt_of(recorded)

    assert prompt is not None
    assert f"{prompt.system}\n\n{prompt.user}" == prompt_text(question)
    assert replay(recorded).differences == []


def test_a_large_window_offers_all_actions_and_the_full_rules() -> None:
    _, question = ask_model(16_384)
    request = request_of(question.request)

    assert request.max_tokens == 4_096
    assert all(f"- {offer.name} " in request.system for offer in situation().actions)
    assert COMPACT_RULES not in request.system


# --- Instructions and actions --------------------------------------------------------------------------


def test_both_reply_formats_ask_for_the_same_keys_and_words() -> None:
    def words(text: str) -> set[str]:
        return {word for word in re.findall(r"[a-z_]+", text) if "_" in word or f'"{word}"' in text}

    assert words(COMPACT_FORMAT) >= words(RESPONSE_FORMAT) - {"brainstorm_goals"}
    for word in ("aspiration", "objective", "task", "abandoned", "backburner", "survival", "opportunity"):
        assert word in COMPACT_FORMAT
    assert all("those of rules" in text for text in (COMPACT_FORMAT, RESPONSE_FORMAT))
    assert estimate_tokens(COMPACT_RULES) < 180


@pytest.mark.parametrize(
    ("changes", "offered", "left_out"),
    [
        ({"mode": Mode.CONVERSATION}, {"recall", "remember", "reach_out_user", "rest"}, {"maintain"}),
        ({"mode": Mode.CONSOLIDATION}, {"connect", "maintain", "reflect"}, {"reach_out_user"}),
        ({"mode": Mode.REFLECTION}, {"reflect", "connect"}, {"brainstorm_goals", "inquire_deep"}),
        ({"intents": [intent(action="reach_out_public")]}, {"reach_out_public"}, {"inquire_deep"}),
        ({"percepts": [percept(kind="peer_message")]}, {"reach_out_agent"}, {"reprioritize"}),
        ({"contradictions": rich_situation().contradictions}, {"maintain"}, {"observe"}),
        ({"plans": rich_situation().plans}, {"inquire_deep"}, {"reach_out_public"}),
        ({"percepts": [percept(DELEGATED, kind="environment")]}, {"complete_step"}, {"start_workflow"}),
        ({"goals": [goal(description=DELEGATED)]}, {"complete_step"}, {"start_workflow"}),
    ],
)
def test_the_situation_chooses_the_actions_of_a_small_window(
    changes: dict[str, Any], offered: set[str], left_out: set[str]
) -> None:
    view = situation(actions=ACTIONS.offers(tuple(ACTIONS)), **changes)
    names = {offer.name for offer in with_fewer_actions(view).actions}

    assert offered <= names
    assert not left_out & names
    assert len(names) <= 11


def test_an_action_that_is_not_permitted_is_not_offered() -> None:
    view = with_fewer_actions(situation(actions=ACTIONS.offers(("rest", "recall"))))
    assert [offer.name for offer in view.actions] == ["recall", "rest"]


def test_prompt_and_schema_offer_the_same_actions() -> None:
    _, question = ask_model(8_192)
    request = request_of(question.request)
    listed = set(re.findall(r"^- (\w+) \(\d+\)", request.system, re.MULTILINE))
    schema = json.dumps(request.schema)

    assert listed == {name for name in ACTIONS if f'"enum": ["{name}"]' in schema}
    # A step of the plan needs this action.
    assert "inquire_deep" in listed


def test_the_reflex_policy_is_offered_all_actions() -> None:
    moment = moment_of(rules=rules_of(model_context=8_192, default_model="reflex/default"))
    heartbeat = Answers().run(build_the_prompt(heartbeat_of(situation=rich_situation(), moment=moment))).state
    assert len(heartbeat.situation.actions) == len(rich_situation().actions)


@pytest.mark.parametrize(
    ("window", "reply", "small"),
    [(4_096, 4_096, True), (8_192, 4_096, True), (8_192, 512, False), (16_384, 4_096, False)],
)
def test_a_window_without_room_for_a_full_prompt_is_small(window: int, reply: int, small: bool) -> None:
    assert is_small(window=window, reply=reply) is small


# --- Further round trips and retries -------------------------------------------------------------------


def test_a_small_window_has_room_for_a_further_round_trip() -> None:
    heartbeat, _ = ask_model(8_192, round_trips_allowed=3)
    found = "\n".join(DETAIL for _ in range(20))
    result = Answers().run(follow_up(after_recall(heartbeat, found)))

    assert result.state.goes_on
    assert "with its piers" in result.state.follow_up


def after_recall(heartbeat: HeartbeatState, brought: str) -> HeartbeatState:
    """Return the heartbeat after a recall that brought this text."""
    return replace(
        heartbeat,
        reply=Reply(thinking="hm"),
        reply_text='{"thinking": "hm"}',
        present=RoundTripRecord(action_records=[action_record_of("recall", brought=brought)]),
    )


def test_a_long_unreadable_reply_is_quoted_in_part() -> None:
    heartbeat, _ = ask_model(8_192)
    view = rich_situation()
    moment = heartbeat.moment
    again, question = ask_model(
        8_192, view, reply_text="tide " * 1_600, unreadable="it breaks off", moment=moment
    )
    request = request_of(question.request)
    quoted = request.messages[1].content

    assert 400 <= len(quoted) < 8_000
    assert "it breaks off" in request.messages[2].content
    tokens = again.asked_tokens + sum(estimate_tokens(message.content) for message in request.messages[1:])
    assert tokens <= 8_192 - 2_048


def test_a_prompt_without_room_fails_and_names_the_setting() -> None:
    moment = moment_of(rules=rules_of(model_context=2_048, default_model="ollama/small"))
    heartbeat = heartbeat_of(situation=rich_situation(), character=CHARACTER * 3, moment=moment)
    result = Answers().run(Think()(Answers().run(build_the_prompt(heartbeat)).state))

    assert result.outcome is NodeOutcome.FAILURE
    assert result.suspend is None
    assert "the window of ollama/small has about 2048 tokens" in result.state.failure
    assert "ARBOR_MODEL_CONTEXT" in result.state.failure


def test_the_prompt_of_a_long_history_fits_4096_tokens() -> None:
    prompt = build_prompt(rich_situation(), CHARACTER, NONCE, window=4_096)
    assert sum(section.tokens for section in prompt.sections) < 4_096 - 256
