"""Conversations with agents, and scripted models."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from apps.agents.models import Agent, AgentState
from apps.calls.models import ExternalCall
from apps.contacts.models import ChatMessage, ChatSession
from apps.contacts.services.chat import exchange_turns, open_session
from apps.goals.models import Goal
from apps.goals.services.goals import create_goal
from apps.heartbeats.services.calls.calls import execute_call
from apps.memories.services.store.remember import remember
from apps.memories.services.store.snippets import store_agent_code
from apps.selves.models import IdentityAspect, Preference
from apps.tenants.scope import tenant_transaction
from arbor.contacts.values import Speaker
from arbor.goals.values import GoalState
from arbor.memory.values import MemoryType, NewMemory
from arbor.models.ports import ScriptedModel
from tests.factories.selves import BeliefFactory, IdentityAspectFactory
from tests.integration.heartbeats.conftest import agent, fleet, new_agent, scripted

__all__ = ["agent", "fleet", "new_agent", "scripted"]

PERSON = "cli:nora"

type Talk = Callable[..., ChatMessage]


def model_answer(reply: str, thinking: str = "") -> str:
    """Return a model's answer in a conversation, as JSON."""
    return json.dumps({"thinking": thinking, "reply": reply})


def open_chat(agent: Agent, person: str = PERSON) -> ChatSession:
    """Return this person's open conversation with the agent."""
    with tenant_transaction(agent.tenant_id):
        return open_session(agent_id=agent.id, person=person)


def last_question(agent: Agent) -> ChatMessage:
    """Return the latest turn of a person in the agent's conversations."""
    with tenant_transaction(agent.tenant_id):
        return ChatMessage.objects.filter(session__agent_id=agent.id, speaker=Speaker.USER).latest("at")


@pytest.fixture
def talk(agent: Agent) -> Talk:
    """Return a function that sends a message to the agent, executes its model call here, and returns the answer."""

    def send(text: str, *, person: str = PERSON) -> ChatMessage:
        return exchange_turns(
            tenant_id=agent.tenant_id,
            session_id=open_chat(agent, person).id,
            text=text,
            execute=execute_call,
        )

    return send


def calls_of(agent: Agent) -> list[ExternalCall]:
    """Return the agent's calls about conversations, the oldest first."""
    with tenant_transaction(agent.tenant_id):
        return list(ExternalCall.objects.filter(agent_id=agent.id, purpose="chat").order_by("id"))


def prompt_of(agent: Agent) -> dict[str, str]:
    """Return the sections of the agent's latest prompt, by name."""
    sections: list[dict[str, Any]] = calls_of(agent)[-1].sections
    return {section["name"]: section["text"] for section in sections}


type Script = Callable[..., ScriptedModel]

CODE = "Tide in metres:\n\n```python\ndef tide(hour):\n    return 3.2\n```"


@pytest.fixture
def populated_agent(agent: Agent) -> Agent:
    """Return an agent that has a row in each table that a turn reads."""
    remember(
        tenant_id=agent.tenant_id,
        agent_id=agent.id,
        memories=[
            NewMemory(
                content="The harbour bridge opens at nine.",
                occurred_at=datetime(2026, 1, 2, tzinfo=UTC),
                type=MemoryType.SEMANTIC,
                detail={"confidence": 0.7},
            )
        ],
    )
    with tenant_transaction(agent.tenant_id):
        IdentityAspect.objects.filter(agent_id=agent.id).delete()
        IdentityAspectFactory(agent=agent, content="I am a keeper of tides.")
        Goal.objects.filter(agent_id=agent.id).delete()
        create_goal(agent_id=agent.id, title="Chart the harbour", state=GoalState.ACTIVE)
        BeliefFactory(agent=agent, statement="Tables can be trusted.", stability=1.0, confidence=1.0)
        Preference.objects.create(
            tenant_id=agent.tenant_id, agent=agent, key="tone", value="short and dry", source="operator"
        )
        AgentState.objects.filter(agent_id=agent.id).update(
            mood={"valence": 0.4, "arousal": 0.3, "at": datetime.now(UTC).isoformat()},
            working_memory={
                "version": 3,
                "thoughts": [{"text": "The moon is full.", "at": "2026-01-02T00:00:00Z"}],
                "concerns": ["the gauge is broken"],
                "engagement": 0.5,
            },
        )
        store_agent_code(agent_id=agent.id, texts=[CODE], source="test")
    return agent
