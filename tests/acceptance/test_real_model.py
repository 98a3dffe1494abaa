"""The adapter against a real model server: llama.cpp with a model of 270 million parameters."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest

from arbor.adapters.dialect import DialectCache
from arbor.adapters.exchange import ApiEndpoint
from arbor.adapters.openai import ChatCompletionsModel
from arbor.adapters.transport import TIMEOUT, DeadlineTransport
from arbor.errors import ModelTimeout, ReplyInvalid
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.replies.parsing import parse_reply
from arbor.heartbeat.replies.reply import REPLY_KEYS
from arbor.heartbeat.replies.reply_schema import SCHEMA_NAME, reply_schema
from arbor.models.handles import Handle
from arbor.models.ports import CallPurpose, ModelRequest, PromptMessage
from tests.acceptance.local_model import LocalModel

pytestmark = pytest.mark.acceptance

# A model of this size copies its prompt, so the prompt contains a reply.
EXAMPLE = {
    "thinking": "Ada's last message names a project. I look for it.",
    "actions": [
        {
            "action": "recall",
            "params": {"query": "Ada project", "limit": 5},
            "reasoning": "it serves the goal",
            "goal_id": "g1",
            "intent_id": None,
        }
    ],
    "memory_notes": [],
    "goal_updates": [],
    "new_goals": [],
    "concerns": [],
    "curiosity": [],
    "decompositions": [],
}

PROMPT = f"""Energy: 12 of 20. Mode: goal_pursuit.
Goals:
- g1 "Learn what Ada is working on" (active, 20 % done)
Actions: recall (1), remember (1), reflect (2), rest (0).
What do you do? Be brief: at most one action. For example:
{json.dumps(EXAMPLE)}"""


@pytest.fixture
def model(local_model_server: LocalModel) -> Iterator[ChatCompletionsModel]:
    with httpx.Client(transport=DeadlineTransport(connections=2), timeout=TIMEOUT) as client:
        yield ChatCompletionsModel(
            Handle.parse(local_model_server.handle),
            endpoint=ApiEndpoint(provider="llamacpp", url=f"{local_model_server.base_url}/chat/completions"),
            client=client,
            dialects=DialectCache(),
        )


def heartbeat_request(*, max_tokens: int) -> ModelRequest:
    return ModelRequest(
        purpose=CallPurpose.THINK,
        system="You are Scout, a curious agent. You reply with JSON.",
        messages=(PromptMessage(role="user", content=PROMPT),),
        schema=reply_schema(ACTIONS),
        schema_name=SCHEMA_NAME,
        max_tokens=max_tokens,
        temperature=0.0,
    )


def test_a_reply_fits_the_schema_or_is_known_to_be_invalid(
    model: ChatCompletionsModel,
) -> None:
    reply = model.complete(heartbeat_request(max_tokens=250), deadline_s=55)

    assert reply.usage.input_tokens > 50
    assert 0 < reply.usage.output_tokens <= 250
    assert reply.cost_usd is None
    if reply.finish_reason == "stop":
        parsed = parse_reply(reply.text)
        assert set(json.loads(reply.text)) == set(REPLY_KEYS)
        assert parsed.repairs == ()
        assert all(item.reason for item in parsed.dropped)
    else:
        with pytest.raises(ReplyInvalid):
            parse_reply(reply.text)


def test_a_truncated_reply_is_reported_and_decides_nothing(model: ChatCompletionsModel) -> None:
    reply = model.complete(heartbeat_request(max_tokens=20), deadline_s=55)

    assert (reply.finish_reason, reply.usage.output_tokens) == ("length", 20)
    with pytest.raises(ReplyInvalid):
        parse_reply(reply.text)


def test_a_real_model_that_misses_the_deadline_times_out(model: ChatCompletionsModel) -> None:
    with pytest.raises(ModelTimeout):
        model.complete(heartbeat_request(max_tokens=2000), deadline_s=0.5)
