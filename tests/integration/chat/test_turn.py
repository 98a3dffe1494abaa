"""Turns of a conversation: their calls, their rows, and their failures."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connections

from apps.agents.models import Agent, AgentState
from apps.calls.models import CallStatus, DailyUsage, LedgerEntry
from apps.contacts.models import ChatMessage
from apps.contacts.services import chat
from apps.contacts.services.chat import answer_turn, exchange_turns, receive_turn
from apps.heartbeats.services.calls.calls import execute_call
from apps.maintenance.services.recovery import failed_maintenance_calls, recover_maintenance_calls
from apps.memories.models import CodeSnippet, Memory
from apps.queues import Task
from apps.tenants.models import Tenant
from apps.tenants.scope import APP, tenant_transaction
from arbor.adapters.reflex import ReflexModel
from arbor.contacts.values import Speaker
from arbor.errors import Invalid, ModelRejected, ModelTimeout, ModelUnavailable, NotFound, TransitionIllegal
from arbor.heartbeat.usage import renewed_at
from arbor.models.handles import REFLEX_HANDLE
from arbor.models.ports import CallPurpose, ModelRequest
from tests.factories.agents import AgentPolicyFactory
from tests.integration.chat.conftest import (
    CODE,
    PERSON,
    Script,
    Talk,
    calls_of,
    model_answer,
    open_chat,
    prompt_of,
)
from tests.integration.heartbeats.conftest import schedule_of
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.maintenance.maintenance_setup import move_into_past


def test_a_turn_is_stored_with_its_memories_code_and_cost(talk: Talk, agent: Agent, scripted: Script) -> None:
    scripted(model_answer(f"Like this.\n{CODE}", thinking="She wants the tide."))

    answer = talk("How do I compute the tide for the Heron?")

    assert (answer.speaker, answer.model, answer.error) == (Speaker.AGENT, "scripted/model", "")
    assert answer.detail["thinking"] == "She wants the tide."
    with tenant_transaction(agent.tenant_id):
        question = ChatMessage.objects.get(speaker=Speaker.USER)
        memories = list(
            Memory.objects.filter(agent_id=agent.id, session=f"chat:{question.session_id}").order_by(
                "position"
            )
        )
        assert [(memory.role, memory.content) for memory in memories] == [
            ("user", "How do I compute the tide for the Heron?"),
            ("agent", answer.content),
        ]
        assert memories[0].episode_id == memories[1].episode_id is not None
        assert all(memory.embedding is not None for memory in memories)
        state = AgentState.objects.get(agent_id=agent.id)
        assert state.working_memory["thoughts"][-1]["text"] == "She wants the tide."
        assert state.working_memory["current_human"] == "nora"
        assert state.working_memory["current_conversation"] == str(question.session_id)
        assert state.working_memory["engagement"] == pytest.approx(0.7)
        assert state.last_user_contact_at is not None
        snippet = CodeSnippet.objects.get(agent_id=agent.id)
        assert (snippet.language, snippet.title, snippet.source) == (
            "python",
            "Tide in metres",
            f"chat:{question.session_id}",
        )
        (paid,) = LedgerEntry.objects.filter(agent_id=agent.id)
        assert (paid.purpose, paid.call.subject["turn"]) == ("chat", str(question.id))


def test_no_transaction_is_open_while_the_model_is_asked(talk: Talk, scripted: Script) -> None:
    in_transaction: list[bool] = []

    def answer(_: ModelRequest) -> str:
        in_transaction.append(connections[APP].in_atomic_block)
        return model_answer("Yes.")

    scripted(answer)
    talk("Are you there?")

    assert in_transaction == [False]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (ModelTimeout("it took too long"), "ModelTimeout: it took too long"),
        ("", "ReplyInvalid: the model said nothing"),
        ('{"answer": 1}', "ReplyInvalid: the answer is JSON without"),
        ('{"thinking": "x", "reply": ', "ReplyInvalid: the answer's JSON cannot be read"),
    ],
)
def test_a_failed_call_stores_the_persons_turn_and_the_reason(
    talk: Talk, agent: Agent, scripted: Script, line: Any, reason: str
) -> None:
    scripted(line, repeat=True)

    answer = talk("Are you there, dear Ada of the harbour?")

    assert answer.content == ""
    assert answer.error.startswith(reason)
    assert calls_of(agent)[0].status == CallStatus.FAILED
    with tenant_transaction(agent.tenant_id):
        question = ChatMessage.objects.get(speaker=Speaker.USER)
        memories = Memory.objects.filter(agent_id=agent.id, session=f"chat:{question.session_id}")
        assert [memory.role for memory in memories] == ["user"]
        assert failed_maintenance_calls() == [], "it is no maintenance call"


def test_a_conversation_continues_after_a_failed_turn(talk: Talk, scripted: Script, agent: Agent) -> None:
    scripted(ModelTimeout("slow"), model_answer("Here."))

    assert talk("Are you there?").error
    assert talk("And now?").content == "Here."
    assert "Are you there?" in prompt_of(agent)["conversation"]


def test_an_unreadable_answer_is_asked_for_three_times_at_most(
    talk: Talk, scripted: Script, agent: Agent
) -> None:
    model = scripted('{"thinking": "x", "reply": ', "{}", model_answer("Here."))
    assert talk("Are you there?").content == "Here."
    assert len(model.requests) == 3
    assert "could not be used: the answer's JSON cannot be read" in model.requests[1].messages[-1].content
    (call,) = calls_of(agent)
    assert (call.status, call.attempts) == (CallStatus.COMPLETE, 3)

    model = scripted("{}", repeat=True)
    assert talk("And now?").error.startswith("ReplyInvalid: ")
    assert len(model.requests) == 3


def test_workers_retry_the_call_of_a_process_that_died(agent: Agent, fleet: Fleet, scripted: Script) -> None:
    model = scripted("{}", ModelUnavailable("busy"), "{}", model_answer("Here."))
    with tenant_transaction(agent.tenant_id):
        AgentPolicyFactory(agent=agent, tier_models={"standard": ["scripted/a", "scripted/b"]})

    def killed(**_: Any) -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        exchange_turns(
            tenant_id=agent.tenant_id, session_id=open_chat(agent).id, text="Are you there?", execute=killed
        )
    assert fleet.messages == []
    move_into_past(agent, timedelta(minutes=10))
    recover_maintenance_calls()
    fleet.run()
    (call,) = calls_of(agent)
    assert (call.status, call.attempts, len(model.requests)) == (CallStatus.COMPLETE, 4, 4)
    with tenant_transaction(agent.tenant_id):
        assert ChatMessage.objects.get(speaker=Speaker.AGENT).content == "Here."


def test_a_retrying_process_enqueues_no_message(talk: Talk, scripted: Script, fleet: Fleet) -> None:
    scripted("{}", "{}", model_answer("Here."))
    assert talk("Are you there?").content == "Here."
    assert fleet.messages == []


def test_a_chat_falls_back_to_the_next_model_of_the_standard_tier(
    talk: Talk, scripted: Script, agent: Agent
) -> None:
    with tenant_transaction(agent.tenant_id):
        AgentPolicyFactory(
            agent=agent,
            tier_models={"standard": ["scripted/a", "scripted/b", "scripted/c"], "strategic": ["scripted/x"]},
        )
    model = scripted(ModelTimeout("slow"), ModelUnavailable("busy"), model_answer("Here."))
    answer = talk("Are you there?")
    assert (answer.content, answer.model) == ("Here.", "scripted/c")
    assert len(model.requests) == 3
    scripted(ModelRejected("no"), model_answer("Here."))
    assert talk("And now?").error == "ModelRejected: no", "another model would reject it too"


def test_a_used_up_daily_limit_is_reported_without_a_model_call(
    talk: Talk, scripted: Script, agent: Agent
) -> None:
    model = scripted(model_answer("Here."), repeat=True)
    with tenant_transaction(agent.tenant_id):
        AgentPolicyFactory(
            agent=agent,
            daily_tokens=100,
            tier_models={"standard": ["scripted/dear"], "reflex": ["scripted/cheap"]},
        )
        today = datetime.now(UTC).date()
        used = DailyUsage.objects.create(tenant_id=agent.tenant_id, agent=agent, day=today, tokens=95)
    answer = talk("Are you there?")
    assert (answer.content, answer.model) == ("Here.", "scripted/cheap"), (
        "near the daily limit a cheaper model answers"
    )

    with tenant_transaction(agent.tenant_id):
        DailyUsage.objects.filter(id=used.id).update(tokens=100)
    requests = len(model.requests)
    answer = talk("And now, dear Ada of the harbour?")
    renewed = renewed_at(datetime.now(UTC))
    assert answer.content == ""
    assert (
        answer.error
        == f"no model is asked: the day's budget is used up; it goes on at {renewed:%Y-%m-%d %H:%M} UTC"
    )
    assert len(model.requests) == requests
    with tenant_transaction(agent.tenant_id):
        assert ChatMessage.objects.filter(content__startswith="And now, dear").exists()
        assert Memory.objects.filter(agent_id=agent.id, content__startswith="And now, dear").exists()


def test_a_used_up_daily_limit_allows_answers_by_rule(populated_agent: Agent, talk: Talk) -> None:
    with tenant_transaction(populated_agent.tenant_id):
        AgentPolicyFactory(
            agent=populated_agent, daily_tokens=0, tier_models={"reflex": ["openai/cheap", "reflex/policy"]}
        )

    answer = talk("When does the harbour bridge open?")

    assert (answer.error, answer.model) == ("", "reflex/policy")
    assert "The harbour bridge opens at nine." in answer.content


def test_omitted_parts_of_an_answer_are_listed(talk: Talk, agent: Agent, scripted: Script) -> None:
    blocks = "\n".join(f"```\nx = {number}\n```" for number in range(22))
    scripted(model_answer(blocks), model_answer("long " * 5_000))

    assert talk("Show me.").detail["left_out"] == ["code: 2 block(s) not stored; the limit is 20 of one text"]
    answer = talk("Tell me.")
    cut = "the answer is cut: it had 24,999 characters, of which 20,000 are kept"
    assert answer.detail["left_out"] == [cut]
    assert len(answer.content) <= 20_000
    assert cut in calls_of(agent)[-1].dropped


def test_plain_text_is_an_answer(talk: Talk, scripted: Script) -> None:
    scripted("Just so.")

    assert talk("Is that so?").content == "Just so."


def test_the_reflex_policy_names_itself_and_answers_from_memory(populated_agent: Agent, talk: Talk) -> None:
    answer = talk("When does the harbour bridge open?")
    again = talk("When does the harbour bridge open?")

    assert answer.model.startswith("reflex/")
    assert answer.content.startswith("No language model is in use here")
    assert "The harbour bridge opens at nine." in answer.content
    assert again.content.startswith("No language model is in use here")


def test_an_answer_by_rule_is_not_remembered(populated_agent: Agent, talk: Talk) -> None:
    for _ in range(2):
        talk("When does the harbour bridge open?")
    quoted = talk("When does the harbour bridge open?").content

    with tenant_transaction(populated_agent.tenant_id):
        memories = Memory.objects.filter(agent_id=populated_agent.id, session__startswith="chat:")
        assert {memory.role for memory in memories} == {"user"}
    assert quoted.count("No language model is in use here") == 1


@pytest.mark.parametrize("text", ["", "   ", "a\0b", "x" * 8_001, "\ud800"])
def test_an_invalid_turn_is_refused(agent: Agent, text: str) -> None:
    session = open_chat(agent)

    with tenant_transaction(agent.tenant_id), pytest.raises(Invalid):
        receive_turn(session_id=session.id, text=text)


def test_a_turn_is_refused_before_the_answer_to_the_last(agent: Agent, fleet: Fleet) -> None:
    session = open_chat(agent)
    with tenant_transaction(agent.tenant_id):
        receive_turn(session_id=session.id, text="One.")

    with tenant_transaction(agent.tenant_id), pytest.raises(TransitionIllegal, match="has not answered yet"):
        receive_turn(session_id=session.id, text="Two.")


def test_a_worker_answers_a_turn_once_despite_doubled_messages(
    agent: Agent, fleet: Fleet, scripted: Script
) -> None:
    model = scripted(model_answer("Yes."), repeat=True)
    session = open_chat(agent)
    with tenant_transaction(agent.tenant_id):
        receive_turn(session_id=session.id, text="Are you there?")
    message = fleet.pop_message()
    assert message.task is Task.ANSWER

    assert fleet.deliver(message)
    assert not fleet.deliver(message)

    assert len(model.requests) == 1
    assert fleet.messages == []


def test_an_error_before_the_model_call_is_reported(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: Any) -> Any:
        raise ValueError("the character cannot be read")

    monkeypatch.setattr(chat, "prepare", fail)

    answer = exchange_turns(
        tenant_id=agent.tenant_id, session_id=open_chat(agent).id, text="Hello?", execute=execute_call
    )

    assert answer.error == "ValueError: the character cannot be read"


def test_a_conversation_of_another_tenant_is_not_found(agent: Agent, other_tenant: Tenant) -> None:
    session = open_chat(agent)
    with tenant_transaction(agent.tenant_id):
        turn = receive_turn(session_id=session.id, text="Are you there?", enqueued=False)

    with tenant_transaction(other_tenant.id), pytest.raises(NotFound):
        receive_turn(session_id=session.id, text="Hello?")
    assert not answer_turn(tenant_id=other_tenant.id, turn_id=turn.id, execute=execute_call)


def test_the_reflex_model_answers_from_the_request_alone() -> None:
    request = ModelRequest(
        purpose=CallPurpose.CHAT,
        system="",
        messages=(),
        context={"name": "Ada", "person": PERSON, "message": "hi", "now": "2026-01-02T00:00:00Z"},
    )
    first = ReflexModel(REFLEX_HANDLE).complete(request, deadline_s=1).text

    assert first == ReflexModel(REFLEX_HANDLE).complete(request, deadline_s=1).text
    assert "About this I remember nothing." in first


def test_the_first_turn_pauses_the_schedule(agent: Agent, talk: Talk, scripted: Script) -> None:
    scripted(model_answer("Yes."))
    assert schedule_of(agent).paused_until is None

    talk("Are you there?")

    paused_until = schedule_of(agent).paused_until
    assert paused_until is not None
    assert paused_until > datetime.now(UTC)


def test_turns_are_counted_for_the_next_consolidation(agent: Agent, talk: Talk, scripted: Script) -> None:
    scripted(model_answer("Yes."), repeat=True)
    for turn in range(10):
        talk(f"Is {turn} a number?")

    with tenant_transaction(agent.tenant_id):
        assert AgentState.objects.get(agent_id=agent.id).working_memory["talked"] == 10
