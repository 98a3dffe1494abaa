"""People who talk to agents, and models that answer what the test wants."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from apps.agents.models import Agent
from apps.contacts.models import ChatMessage, ChatSession
from apps.contacts.services.chat import open_session, say
from apps.heartbeats.models import ExternalCall
from apps.tenants.scope import tenant_transaction
from tests.integration.heartbeats.conftest import agent, fleet, new_agent, scripted

__all__ = ["agent", "fleet", "new_agent", "scripted"]

PERSON = "cli:nora"

type Talk = Callable[..., ChatMessage]


def answering(reply: str, thinking: str = "") -> str:
    """Return what a model says in a conversation."""
    return json.dumps({"thinking": thinking, "reply": reply})


def begin(agent: Agent, person: str = PERSON) -> ChatSession:
    """Return this person's open conversation with the agent."""
    with tenant_transaction(agent.tenant_id):
        return open_session(agent_id=agent.id, person=person)


@pytest.fixture
def talk(agent: Agent) -> Talk:
    """Return a way to say something to the agent and have it answered in this process."""

    def speak(text: str, *, person: str = PERSON) -> ChatMessage:
        return say(tenant_id=agent.tenant_id, session_id=begin(agent, person).id, text=text)

    return speak


def calls_of(agent: Agent) -> list[ExternalCall]:
    """Return the agent's calls about conversations, the oldest first."""
    with tenant_transaction(agent.tenant_id):
        return list(ExternalCall.objects.filter(agent_id=agent.id, purpose="chat").order_by("id"))


def prompt_of(agent: Agent) -> dict[str, str]:
    """Return the sections of the agent's latest prompt, by name."""
    sections: list[dict[str, Any]] = calls_of(agent)[-1].sections
    return {each["name"]: each["text"] for each in sections}
