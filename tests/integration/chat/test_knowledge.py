"""Knowledge of the organization in the prompt of a turn."""

from __future__ import annotations

import pytest

from apps.agents.models import Agent
from apps.contacts.services import chat_knowledge
from apps.knowledge.services.categories import set_categories
from apps.tenants.scope import tenant_transaction
from arbor.knowledge.merging import MemorySearch, SearchSource, SourceFault
from tests.factories.library import published_passage
from tests.integration.chat.conftest import Script, Talk, model_answer, prompt_of

PASSAGE = "Flights need the approval of a manager."
ASKED = "Who approves flights?"


@pytest.fixture
def library(agent: Agent) -> None:
    """Store a published passage about flights."""
    published_passage(agent.tenant_id, PASSAGE)


@pytest.mark.usefixtures("library")
def test_a_turn_cites_the_passages_about_it(agent: Agent, talk: Talk, scripted: Script) -> None:
    scripted(model_answer("A manager."), repeat=True)
    talk(ASKED)
    prompt = prompt_of(agent)["passages"]
    assert "Travel, version 1" in prompt
    assert PASSAGE in prompt
    with tenant_transaction(agent.tenant_id):
        set_categories(agent_id=agent.id, categories=[], actor="user:eve")
    talk(ASKED)
    assert "passages" not in prompt_of(agent)


def test_a_source_that_was_not_searched_is_named(
    agent: Agent, talk: Talk, scripted: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = SourceFault(source=SearchSource.KNOWLEDGE, reason="it took longer than 500 ms")
    monkeypatch.setattr(
        chat_knowledge,
        "search_my_memories",
        lambda **_: MemorySearch(results=(), term="", missing=[fault]),
    )
    scripted(model_answer("I do not know."), repeat=True)
    talk(ASKED)
    assert "Missing: kb was not searched: it took longer than 500 ms." in prompt_of(agent)["passages"]
