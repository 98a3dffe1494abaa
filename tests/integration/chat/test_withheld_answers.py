"""Answers that boundaries and reflexes withhold or flag."""

from __future__ import annotations

import json
from uuid import UUID

from apps.agents.models import Agent
from apps.audit.models import AuditAction, AuditEvent
from apps.contacts.models import ChatMessage
from apps.contacts.services.chat import exchange_turns
from apps.fleet.identities import suspend_identity
from apps.heartbeats.services.calls.calls import execute_call
from apps.memories.models import Memory
from apps.selves.models import Boundary
from apps.tenants.scope import tenant_transaction
from arbor.contacts.values import Speaker
from tests.integration.chat.conftest import (
    Script,
    Talk,
    calls_of,
    model_answer,
    open_chat,
    prompt_of,
)


def test_a_refusing_boundary_enters_the_prompt_and_withholds(
    talk: Talk, agent: Agent, scripted: Script
) -> None:
    scripted(model_answer("Here is how to build a bomb: you take soap."))

    answer = talk("Tell me how to build a bomb.")

    assert "no_harm (refuse)" in prompt_of(agent)["boundaries"]
    assert "soap" not in answer.content
    assert "I do not help to hurt anybody." in answer.content
    (match,) = answer.detail["boundaries"]
    assert (match["name"], match["withheld"]) == ("no_harm", True)
    with tenant_transaction(agent.tenant_id):
        question = ChatMessage.objects.get(speaker=Speaker.USER)
        assert question.detail["boundaries"][0]["name"] == "no_harm"
        assert not Memory.objects.filter(agent_id=agent.id, content__contains="soap").exists()
    assert "withheld by the boundary no_harm" in calls_of(agent)[0].dropped[0]


def test_a_reflex_withholds_an_answer_with_a_secret(talk: Talk, agent: Agent, scripted: Script) -> None:
    key = f"ghp_{'a' * 36}"
    scripted(model_answer(f"The key of the harbour is {key}.", thinking=f"I have {key}."))

    answer = talk("What is the key?")

    assert answer.content == "I do not say what I was about to say: the text contains a token of GitHub."
    assert answer.detail["reflex"] == "secret"
    with tenant_transaction(agent.tenant_id):
        assert key not in json.dumps(answer.detail)
        assert not Memory.objects.filter(agent_id=agent.id, content__contains=key).exists()
        event = AuditEvent.objects.get(agent_id=agent.id, action=AuditAction.REFLEX)
    assert (event.actor, event.detail["turn"]) == (f"agent:{agent.public_id}", answer.detail["to"])
    assert key not in event.message


def test_an_agent_suspended_meanwhile_does_not_answer(agent: Agent, scripted: Script) -> None:
    scripted(model_answer("The ferry leaves at noon."))

    def execute(*, call_id: UUID, tenant_id: UUID) -> bool:
        with tenant_transaction(tenant_id):
            suspend_identity(agent_id=agent.id, reason="it was talked into something", actor="test")
        return execute_call(call_id=call_id, tenant_id=tenant_id)

    answer = exchange_turns(
        tenant_id=agent.tenant_id,
        session_id=open_chat(agent).id,
        text="When does the ferry leave?",
        execute=execute,
    )

    assert answer.content == ""
    assert "talked into something" in answer.error
    with tenant_transaction(agent.tenant_id):
        assert not Memory.objects.filter(agent_id=agent.id, content__contains="noon").exists()
    assert "withheld" in calls_of(agent)[0].dropped[0]


def test_a_flagging_boundary_is_recorded_and_allows_the_answer(
    talk: Talk, agent: Agent, scripted: Script
) -> None:
    scripted(model_answer("The budget is spent."))
    with tenant_transaction(agent.tenant_id):
        Boundary.objects.create(
            tenant_id=agent.tenant_id,
            agent=agent,
            name="money",
            type="resource",
            response="flag",
            patterns=["budget"],
        )

    answer = talk("How is it going?")

    assert answer.content == "The budget is spent."
    assert [(match["name"], match["withheld"]) for match in answer.detail["boundaries"]] == [("money", False)]
