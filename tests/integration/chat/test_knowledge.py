"""Knowledge of the organization in the prompt of a turn."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from apps.agents.models import Agent
from apps.knowledge.services.categories import set_categories
from apps.memories.services.store.remember import remember
from apps.tenants.scope import tenant_transaction
from arbor.memory.values import NewMemory
from tests.factories.knowledge import published_passage
from tests.integration.chat.conftest import Script, Talk, model_answer, prompt_of
from tests.support.embedders import RemoteEmbedder

PASSAGE = "Flights need the approval of a manager."
QUESTION = "Who approves flights?"


@pytest.fixture
def library(agent: Agent) -> None:
    """Store a published passage about flights."""
    published_passage(agent.tenant_id, PASSAGE)


@pytest.mark.usefixtures("library")
def test_a_turn_cites_the_passages_about_it(agent: Agent, talk: Talk, scripted: Script) -> None:
    scripted(model_answer("A manager."), repeat=True)
    talk(QUESTION)
    prompt = prompt_of(agent)["passages"]
    assert "Travel, version 1" in prompt
    assert PASSAGE in prompt
    with tenant_transaction(agent.tenant_id):
        set_categories(agent_id=agent.id, categories=[], actor="user:eve")
    talk(QUESTION)
    assert "passages" not in prompt_of(agent)


def test_a_recalled_text_is_not_shown_again_as_a_passage(agent: Agent, talk: Talk, scripted: Script) -> None:
    texts = [f"Flights to port {number} need the approval of a manager." for number in range(6)]
    for text in texts:
        published_passage(agent.tenant_id, text)
    memory = NewMemory(content=texts[0].replace("need", "need "), occurred_at=datetime.now(UTC))
    remember(tenant_id=agent.tenant_id, agent_id=agent.id, memories=[memory])
    scripted(model_answer("A manager."), repeat=True)
    talk("Who approves flights to port 0?")
    prompt = prompt_of(agent)
    assert texts[0] in " ".join(prompt["relevant"].split())
    assert texts[0] not in prompt["passages"]
    # The five other passages are shown.
    assert all(text in prompt["passages"] for text in texts[1:])


@pytest.mark.usefixtures("library")
def test_a_turn_embeds_each_text_once(
    agent: Agent, talk: Talk, scripted: Script, remote: RemoteEmbedder, settings: Any
) -> None:
    settings.ARBOR_EMBED_AT_STORAGE = "always"
    scripted(model_answer("A manager."), repeat=True)
    talk(QUESTION)
    assert remote.asked.count(QUESTION) == 1
    assert len(remote.asked) == len(set(remote.asked))


@pytest.mark.usefixtures("library")
def test_a_search_by_words_alone_is_named(
    agent: Agent, talk: Talk, scripted: Script, remote: RemoteEmbedder
) -> None:
    remote.away = True
    scripted(model_answer("A manager."), repeat=True)
    talk(QUESTION)
    prompt = prompt_of(agent)["passages"]
    assert "\nIncomplete: documents were searched by words alone: the embedder did not answer" in prompt
    assert PASSAGE in prompt


def test_a_source_that_was_not_searched_is_named(
    agent: Agent, talk: Talk, scripted: Script, superuser: psycopg.Connection[Any], settings: Any
) -> None:
    settings.ARBOR_SEARCH_SOURCE_MS = 50
    scripted(model_answer("I do not know."), repeat=True)
    with superuser.transaction():
        superuser.execute("LOCK TABLE knowledge_passage IN ACCESS EXCLUSIVE MODE")
        talk(QUESTION)
    assert (
        "Incomplete: documents were not searched: it took longer than 50 ms." in prompt_of(agent)["passages"]
    )
