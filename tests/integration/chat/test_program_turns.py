"""Conversations that a program answers with a model of its own, and memories that it stores, by the runtime."""

from __future__ import annotations

from dataclasses import replace

import pytest

from apps.agents.models import Agent
from apps.contacts.models import ChatMessage
from apps.contacts.services.program_turns import UNNAMED_MODEL
from apps.fleet.identities import suspend_identity
from apps.memories.models import Memory
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.errors import IdentityRefused, Invalid, NotFound, ReplyInvalid, TransitionIllegal
from arbor.runtime import AgentRuntime
from config.runtime import open_runtime


@pytest.fixture
def runtime(tenant: Tenant, agent: Agent) -> AgentRuntime:
    """Return the tenant's runtime."""
    return open_runtime(tenant=tenant.slug, actor="program:pilot")


def test_a_conversation_is_prepared_and_finalized(runtime: AgentRuntime, agent: Agent) -> None:
    memory_id = runtime.remember("Ada", "The ferry leaves at noon.")
    prompt = runtime.prepare_conversation("Ada", "When does the ferry leave?", person="nora")
    assert "The ferry leaves at noon." in prompt.user
    assert str(memory_id) in [memory["id"] for memory in prompt.recalled]
    answer = runtime.finalize_conversation(prompt, '{"reply": "At noon."}', model="mine/model")
    assert (answer.text, answer.boundaries) == ("At noon.", [])
    with tenant_transaction(agent.tenant_id):
        turns = ChatMessage.objects.order_by("at").values_list("speaker", "content", "model")
        assert list(turns) == [
            ("user", "When does the ferry leave?", ""),
            ("agent", "At noon.", "mine/model"),
        ]
        assert Memory.objects.filter(content="At noon.", role="agent").exists()
    assert "At noon." in runtime.prepare_conversation("Ada", "Thanks.", person="nora").user


def test_a_turn_is_finalized_once(runtime: AgentRuntime) -> None:
    prompt = runtime.prepare_conversation("Ada", "Hello.", person="nora")
    with pytest.raises(TransitionIllegal, match="not answered yet"):
        runtime.prepare_conversation("Ada", "Hello again.", person="nora")
    with pytest.raises(ReplyInvalid):
        runtime.finalize_conversation(prompt, "")
    runtime.finalize_conversation(prompt, "Hello, Nora.")
    with pytest.raises(TransitionIllegal, match="is answered already"):
        runtime.finalize_conversation(prompt, "Hello, Nora.")


def test_a_suspended_agent_answers_no_prepared_turn(runtime: AgentRuntime, agent: Agent) -> None:
    prompt = runtime.prepare_conversation("Ada", "Hello.", person="nora")
    with tenant_transaction(agent.tenant_id):
        suspend_identity(agent_id=agent.id, reason="it was talked into something", actor="test")
    with pytest.raises(IdentityRefused, match="talked into something"):
        runtime.finalize_conversation(prompt, "Hello, Nora.")


def test_only_a_persons_turn_is_finalized(runtime: AgentRuntime, agent: Agent) -> None:
    prompt = runtime.prepare_conversation("Ada", "Hello.", person="nora")
    runtime.finalize_conversation(prompt, "Hello, Nora.")
    with tenant_transaction(agent.tenant_id):
        answer = ChatMessage.objects.get(speaker="agent")
    with pytest.raises(NotFound):
        runtime.finalize_conversation(replace(prompt, turn_id=answer.id), "Hello again.")
    with tenant_transaction(agent.tenant_id):
        assert ChatMessage.objects.count() == 2


@pytest.mark.parametrize("model", ["m" * 201, "mine\0"])
def test_a_name_of_a_model_that_no_row_stores_is_refused(runtime: AgentRuntime, model: str) -> None:
    prompt = runtime.prepare_conversation("Ada", "Hello.", person="nora")
    with pytest.raises(Invalid, match="model must"):
        runtime.finalize_conversation(prompt, "Hello, Nora.", model=model)
    assert runtime.finalize_conversation(prompt, "Hello, Nora.", model=model[:1]).text == "Hello, Nora."


def test_a_blank_name_of_a_model_is_none(runtime: AgentRuntime, agent: Agent) -> None:
    prompt = runtime.prepare_conversation("Ada", "Hello.", person="nora")
    runtime.finalize_conversation(prompt, "Hello, Nora.", model=" ")
    with tenant_transaction(agent.tenant_id):
        assert ChatMessage.objects.get(speaker="agent").model == UNNAMED_MODEL


def test_a_turn_of_another_tenant_is_unknown(
    runtime: AgentRuntime, other_tenant: Tenant, agent: Agent
) -> None:
    prompt = runtime.prepare_conversation("Ada", "Hello.", person="nora")
    with pytest.raises(NotFound):
        open_runtime(tenant=other_tenant.slug).finalize_conversation(prompt, "Hello.")


def test_memories_are_stored_and_recalled(runtime: AgentRuntime) -> None:
    first = runtime.remember("Ada", "The ferry leaves at noon.", importance=0.8)
    assert runtime.remember("Ada", "The ferry leaves at noon.") == first
    (memory,) = runtime.recall("Ada", "When does the ferry leave?", limit=1)
    assert memory.id == first
    assert memory.importance == pytest.approx(0.8)
    with pytest.raises(Invalid, match="memory's type is one of"):
        runtime.remember("Ada", "x", type="fact")  # type: ignore[arg-type]
