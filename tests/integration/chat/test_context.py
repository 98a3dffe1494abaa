"""The context of a conversation: its summary, its cuts with their audit, and its tokenizer."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.agents.models import Agent
from apps.audit.models import AuditAction, AuditEvent
from apps.contacts.models import ChatMessage, ChatSession
from apps.contacts.services.chat_turns import turns_before
from apps.memories.models import Episode
from apps.memories.services.store.remember import remember
from apps.tenants.scope import tenant_transaction
from arbor.contacts.values import Speaker
from arbor.memory.values import NewMemory
from arbor.models.ports import ModelRequest
from tests.integration.chat.conftest import (
    Script,
    Talk,
    calls_of,
    last_question,
    model_answer,
    open_chat,
    prompt_of,
)
from tests.unit.models.test_token_counts import WORDS

FACT = "My boat is called Heron, and she lies at pier seven."
BEGAN = datetime.now(UTC) - timedelta(hours=4)


def store_turns(agent: Agent, count: int, *, text: str = "The gulls were loud today") -> ChatSession:
    """Store earlier turns with their memories, one a minute; the third turn states the fact."""
    session = open_chat(agent)
    texts = [FACT if n == 2 else f"{text}, as on day {n}." for n in range(count)]
    rows = [
        ChatMessage(
            tenant_id=agent.tenant_id,
            session=session,
            speaker=Speaker.AGENT if n % 2 else Speaker.USER,
            content=content,
            at=BEGAN + timedelta(minutes=n),
        )
        for n, content in enumerate(texts)
    ]
    with tenant_transaction(agent.tenant_id):
        ChatMessage.objects.bulk_create(rows)
    memories = [
        NewMemory(
            content=row.content,
            role=row.speaker,
            occurred_at=row.at,
            session=f"chat:{session.id}",
            position=n,
        )
        for n, row in enumerate(rows)
    ]
    remember(tenant_id=agent.tenant_id, agent_id=agent.id, memories=memories)
    return session


def cuts_of(agent: Agent) -> list[AuditEvent]:
    with tenant_transaction(agent.tenant_id):
        return list(AuditEvent.objects.filter(agent_id=agent.id, action=AuditAction.TRUNCATED))


def answer_from_prompt(request: ModelRequest) -> str:
    """Answer from the prompt alone, as a model would."""
    known = re.search(r"boat is called (\w+)", request.messages[0].content)
    return model_answer(known[1] if known else "I do not know.")


def test_a_fact_of_turn_3_is_answered_at_turn_200(agent: Agent, talk: Talk, scripted: Script) -> None:
    store_turns(agent, 198)
    scripted(answer_from_prompt, repeat=True)

    answer = talk("What is the name of my boat?")

    assert answer.content == "Heron"
    assert FACT in prompt_of(agent)["relevant"]
    conversation = prompt_of(agent)["conversation"]
    assert conversation.count(", they: ") + conversation.count(", you: ") == 20
    assert "summary of 178 earlier turns" in conversation
    assert "Earlier turns not shown: 178." in conversation
    (origin,) = last_question(agent).detail["summarized"]
    assert (origin["turns"], origin["by"], origin["episode_id"]) == (178, "rule", "")
    with tenant_transaction(agent.tenant_id):
        turns = ChatMessage.objects.order_by("at")
        assert [origin["first_id"], origin["last_id"]] == [str(turns[0].id), str(turns[177].id)]
    (cut,) = cuts_of(agent)
    assert cut.detail["sources"]["conversation"]["entries"] == 178
    assert cut.detail["tokens"] > 1_000
    assert cut.detail["turn"] == str(last_question(agent).id)


def test_the_reflex_policy_answers_from_an_early_turn(agent: Agent, talk: Talk) -> None:
    store_turns(agent, 60)

    assert FACT in talk("What is the name of my boat?").content
    assert cuts_of(agent) == [], "the reflex policy reads no prompt"


def test_the_summary_of_an_episode_is_reused(agent: Agent, talk: Talk, scripted: Script) -> None:
    store_turns(agent, 60)
    with tenant_transaction(agent.tenant_id):
        episode = Episode.objects.get(agent_id=agent.id)
        Episode.objects.filter(id=episode.id).update(
            last_at=BEGAN + timedelta(minutes=3),
            ended_at=BEGAN + timedelta(minutes=35),
            summary="They told me of their boat.",
            summarized_by="openai/summarizer",
        )
    scripted(model_answer("Heron."))

    talk("What is the name of my boat?")

    conversation = prompt_of(agent)["conversation"]
    assert "They told me of their boat." in conversation
    first, second = last_question(agent).detail["summarized"]
    assert (first["episode_id"], first["by"]) == (str(episode.id), "openai/summarizer")
    # The episode covers the turns up to half an hour after its last memory.
    assert (first["turns"], second["turns"], second["by"]) == (33, 7, "rule")
    assert first["last_id"] != second["first_id"]


def test_a_prompt_of_ten_windows_is_cut_to_one_and_audited(
    agent: Agent, talk: Talk, scripted: Script, settings: Any
) -> None:
    settings.ARBOR_MODEL_CONTEXT = 4_096
    store_turns(agent, 150, text="The gulls were loud today " * 90)
    model = scripted(model_answer("Heron."))

    talk("What is the name of my boat? " + "Tell me all of it. " * 300)

    call = calls_of(agent)[-1]
    tokens = {section["name"]: section["tokens"] for section in call.sections}
    request = model.requests[0]
    assert sum(tokens.values()) + request.max_tokens <= 4_096
    order = [
        "rules",
        "format",
        "character",
        "mark",
        "timing",
        "relevant",
        "conversation",
        "message",
        "closing",
    ]
    assert [name for name in tokens if name in order] == order
    (cut,) = cuts_of(agent)
    assert cut.message.startswith("the prompt of an answer was cut to the window of scripted/model: ")
    assert cut.detail["window"] == 4_096
    assert cut.detail["tokens"] > 4_096 * 9
    sources = cut.detail["sources"]
    assert sources["conversation"]["entries"] > 70
    assert sources["relevant"]["entries"] >= 2
    for name, source in sources.items():
        assert source["after"] == tokens[name]
        assert source["before"] - source["after"] == source["tokens"] > 0
    # 130 turns of some 590 tokens precede the latest 20, which are cut too.
    assert sources["conversation"]["before"] > 145 * 590


def test_a_context_without_room_names_its_largest_part(
    agent: Agent, talk: Talk, scripted: Script, settings: Any
) -> None:
    settings.ARBOR_MODEL_CONTEXT = 900
    model = scripted(model_answer("Heron."))

    answer = talk("Tell me all of it. " * 300)

    assert model.requests == []
    assert answer.error.startswith("no model is asked: the window of scripted/model has about 900 tokens")
    assert re.search(r"its largest part is \w+ with \d+", answer.error)


def test_a_tokenizer_counts_the_tokens_of_a_prompt(
    agent: Agent, talk: Talk, scripted: Script, settings: Any, tmp_path: Path
) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps(WORDS))
    settings.ARBOR_TOKENIZERS = {"scripted": file}
    scripted(model_answer("Heron."))

    talk("one two three four")

    call = calls_of(agent)[-1]
    closing = next(section for section in call.sections if section["name"] == "closing")
    assert closing["text"] == "Answer the person. Answer with the JSON object only."
    assert closing["tokens"] == 11


def store_equal_turns(agent: Agent, count: int, content: str) -> ChatMessage:
    """Store turns of the person with one content, one a minute; return the last of them."""
    session = open_chat(agent)
    rows = [
        ChatMessage(
            tenant_id=agent.tenant_id,
            session=session,
            speaker=Speaker.USER,
            content=content,
            at=BEGAN + timedelta(minutes=n),
        )
        for n in range(count)
    ]
    with tenant_transaction(agent.tenant_id):
        return ChatMessage.objects.bulk_create(rows)[-1]


@pytest.mark.parametrize(("count", "statements"), [(0, 1), (6, 1), (20, 2), (60, 3), (240, 4)])
def test_earlier_turns_are_read_in_few_statements(agent: Agent, count: int, statements: int) -> None:
    with tenant_transaction(agent.tenant_id):
        turn = store_equal_turns(agent, count + 1, "Hello.")
        with CaptureQueriesContext(connection) as queries:
            earlier = turns_before(turn, count=len)

    assert len(queries) == statements
    assert (len(earlier.shown), earlier.not_shown) == (min(count, 20), max(count - 20, 0))
    assert sum(summary.turns for summary in earlier.summaries) == min(earlier.not_shown, 200)


@pytest.mark.parametrize("count", [30, 240])
def test_all_earlier_turns_are_counted_in_full(agent: Agent, count: int) -> None:
    """Count characters as tokens: neither the length limit of shown turns nor the number of read turns limits the count."""
    turn = store_equal_turns(agent, count + 1, "gull " * 600)
    with tenant_transaction(agent.tenant_id):
        earlier = turns_before(turn, count=len)

    assert earlier.not_shown == count - len(earlier.shown)
    assert earlier.not_shown_tokens == earlier.not_shown * 3_000


@pytest.mark.parametrize("count", [0, 6, 20])
def test_a_short_conversation_is_shown_whole(agent: Agent, talk: Talk, scripted: Script, count: int) -> None:
    store_turns(agent, count)
    scripted(model_answer("Heron."))

    talk("What is the name of my boat?")

    conversation = prompt_of(agent)["conversation"]
    assert conversation.count(", they: ") + conversation.count(", you: ") == count
    assert "summary" not in conversation
    assert "summarized" not in last_question(agent).detail
    assert cuts_of(agent) == []
