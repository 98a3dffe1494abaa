"""Chat Completions: requests, replies and usage."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import httpx
import pytest

from arbor.models.ports import CallPurpose, ModelReply, ModelRequest, PromptMessage
from arbor.models.usage import Usage
from tests.unit.adapters.openai_server import (
    KEY,
    SCHEMA,
    Recorder,
    error,
    formats,
    model_on,
    request_with,
    success,
)


def test_the_request_contains_prompt_limits_and_schema() -> None:
    server = Recorder(httpx.Response(200, json=success()))

    model_on(server).complete(request_with(), deadline_s=10)

    assert server.bodies == [
        {
            "model": "gpt-4o-mini",
            "max_tokens": 500,
            "temperature": 0.4,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "heartbeat_reply", "schema": SCHEMA, "strict": True},
            },
            "messages": [
                {"role": "system", "content": "You are Scout."},
                {"role": "user", "content": "What now?"},
            ],
        }
    ]
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert server.requests[0].headers["openai-project"] == "garden"


def test_the_reply_contains_text_tokens_and_cost() -> None:
    reply = model_on(Recorder(httpx.Response(200, json=success()))).complete(request_with(), deadline_s=10)

    assert reply.latency_ms > 0
    assert reply == ModelReply(
        text='{"thinking": "hm"}',
        provider="openai",
        model="gpt-4o-mini-2024-07-18",
        usage=Usage(input_tokens=1000, output_tokens=200, cached_tokens=400),
        cost_usd=Decimal("0.00024"),
        latency_ms=reply.latency_ms,
        attempts=1,
        finish_reason="stop",
    )


@pytest.mark.parametrize(
    ("changes", "text", "finish_reason"),
    [
        ({"choices": [{"message": {"content": "{cut"}, "finish_reason": "length"}]}, "{cut", "length"),
        ({"choices": [{"message": {"content": None}, "finish_reason": "length"}]}, "", "length"),
        (
            {"choices": [{"message": {"content": [{"type": "text", "text": "a"}, {"text": "b"}]}}]},
            "ab",
            "stop",
        ),
    ],
)
def test_odd_replies_are_parsed_leniently(changes: dict[str, Any], text: str, finish_reason: str) -> None:
    reply = model_on(Recorder(httpx.Response(200, json=success(**changes)))).complete(
        request_with(), deadline_s=10
    )

    assert (reply.text, reply.finish_reason) == (text, finish_reason)


def test_usage_that_a_server_does_not_count_is_estimated() -> None:
    odd = {"prompt_tokens": "many", "completion_tokens": None, "prompt_tokens_details": None}
    server = Recorder(
        httpx.Response(200, json=success(usage=odd)), httpx.Response(200, json=success(usage=None))
    )
    model = model_on(server, handle="llamacpp/gemma")

    for _ in range(2):
        reply = model.complete(request_with(), deadline_s=10)
        assert (reply.usage, reply.cost_usd) == (Usage(input_tokens=7, output_tokens=6), None)


def test_the_cost_that_the_provider_states_wins() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "cost": 0.00014}
    server = Recorder(httpx.Response(200, json=success(usage=usage)))

    reply = model_on(server, handle="openrouter/some/model").complete(request_with(), deadline_s=10)

    assert reply.cost_usd == Decimal("0.00014")


def test_refused_parameters_are_replaced_and_not_sent_again() -> None:
    server = Recorder(
        error(
            400,
            "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
            param="max_tokens",
        ),
        error(
            400, "Unsupported value: 'temperature' does not support 0.4 with this model.", param="temperature"
        ),
        httpx.Response(200, json=success()),
    )
    model = model_on(server)

    model.complete(request_with(), deadline_s=10)
    model.complete(request_with(), deadline_s=10)

    assert formats(server) == ["json_schema"] * 4
    for body in server.bodies[2:]:
        assert body["max_completion_tokens"] == 500
        assert not {"temperature", "max_tokens"} & set(body)


def test_a_model_without_reasoning_gets_no_reasoning_effort() -> None:
    server = Recorder(
        error(400, "Unrecognized request argument supplied: reasoning_effort"),
        httpx.Response(200, json=success()),
    )

    model_on(server, quiet=True).complete(request_with(), deadline_s=10)

    assert [body.get("reasoning_effort") for body in server.bodies] == ["low", None]
    assert formats(server) == ["json_schema"] * 2


def test_text_with_a_lone_surrogate_does_not_break_the_call() -> None:
    server = Recorder(httpx.Response(200, json=success()))
    request = ModelRequest(
        purpose=CallPurpose.THINK, system="", messages=(PromptMessage(role="user", content="a\ud800b"),)
    )

    model_on(server).complete(request, deadline_s=10)

    assert server.bodies[0]["messages"] == [{"role": "user", "content": "a?b"}]
