"""The Messages API: requests, replies and errors."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from arbor.adapters.anthropic import VERSION, MessagesModel
from arbor.adapters.dialect import DialectCache
from arbor.adapters.exchange import ApiEndpoint, KeyAuth
from arbor.errors import ModelError, ModelRefused, ModelRejected, ModelUnavailable
from arbor.models.handles import Handle
from arbor.models.ports import ModelReply
from arbor.models.usage import Usage
from tests.unit.adapters.openai_server import SCHEMA, Recorder, request_with

KEY = "sk-ant-verySecret0123456789"


def model_on(server: Recorder) -> MessagesModel:
    endpoint = ApiEndpoint(
        provider="anthropic",
        url="http://model.test/v1/messages",
        auth=KeyAuth(SecretStr(KEY), header="x-api-key", prefix=""),
        headers={"anthropic-version": VERSION},
    )
    return MessagesModel(
        Handle.parse("anthropic/claude-haiku-4-5"),
        endpoint=endpoint,
        client=httpx.Client(transport=httpx.MockTransport(server)),
        dialects=DialectCache(),
    )


def success(*blocks: dict[str, Any], **changes: Any) -> httpx.Response:
    return httpx.Response(
        200,
        json={
            "model": "claude-haiku-4-5-20251001",
            "content": blocks
            or [{"type": "tool_use", "name": "heartbeat_reply", "input": {"thinking": "é"}}],
            "stop_reason": "tool_use",
            "usage": {
                "input_tokens": 100,
                "output_tokens": 50,
                "cache_read_input_tokens": 1000,
                "cache_creation_input_tokens": 200,
            },
        }
        | changes,
    )


def error(status: int, kind: str, message: str) -> httpx.Response:
    return httpx.Response(status, json={"type": "error", "error": {"type": kind, "message": message}})


def test_the_request_forces_the_tool_and_caches_the_static_part() -> None:
    server = Recorder(success())

    model_on(server).complete(request_with(), deadline_s=10)

    assert server.bodies == [
        {
            "model": "claude-haiku-4-5",
            "max_tokens": 500,
            "temperature": 0.4,
            "thinking": {"type": "disabled"},
            "system": [{"type": "text", "text": "You are Scout.", "cache_control": {"type": "ephemeral"}}],
            "messages": [{"role": "user", "content": "What now?"}],
            "tools": [{"name": "heartbeat_reply", "description": "Give the reply.", "input_schema": SCHEMA}],
            "tool_choice": {"type": "tool", "name": "heartbeat_reply"},
        }
    ]
    headers = server.requests[0].headers
    assert (headers["x-api-key"], headers["anthropic-version"]) == (KEY, VERSION)
    assert "authorization" not in headers


def test_the_reply_is_the_tools_input_and_the_tokens_count_the_cache() -> None:
    reply = model_on(Recorder(success())).complete(request_with(), deadline_s=10)

    assert reply == ModelReply(
        text='{"thinking": "é"}',
        provider="anthropic",
        model="claude-haiku-4-5-20251001",
        usage=Usage(input_tokens=1300, output_tokens=50, cached_tokens=1000, cache_write_tokens=200),
        # 100 fresh at 1, 1000 read at 0.10, 200 written at 1.25 and 50 out at 5, per million.
        cost_usd=Decimal("0.0007"),
        latency_ms=reply.latency_ms,
        finish_reason="stop",
    )


def test_without_a_schema_the_reply_is_the_text_and_not_the_thought() -> None:
    server = Recorder(success({"type": "thinking", "thinking": "…"}, {"type": "text", "text": "In short."}))

    reply = model_on(server).complete(request_with(None), deadline_s=10)

    assert reply.text == "In short."
    assert not {"tools", "tool_choice"} & set(server.bodies[0])


@pytest.mark.parametrize(
    ("stop_reason", "finish_reason"),
    [("end_turn", "stop"), ("max_tokens", "length"), ("pause_turn", "pause_turn")],
)
def test_stop_reasons_are_mapped_to_one_vocabulary(stop_reason: str, finish_reason: str) -> None:
    server = Recorder(success({"type": "text", "text": "x"}, stop_reason=stop_reason))

    assert model_on(server).complete(request_with(None), deadline_s=10).finish_reason == finish_reason


def test_options_that_a_model_refuses_are_omitted_from_then_on() -> None:
    server = Recorder(
        error(400, "invalid_request_error", "`temperature` is not supported for this model"),
        error(400, "invalid_request_error", "thinking cannot be disabled for this model"),
        error(400, "invalid_request_error", "Thinking may not be enabled when tool_choice forces tool use."),
        success({"type": "text", "text": '{"thinking": "hm"}'}),
    )
    model = model_on(server)

    model.complete(request_with(), deadline_s=10)
    reply = model.complete(request_with(), deadline_s=10)

    assert reply.text == '{"thinking": "hm"}'
    assert ["tools" in body for body in server.bodies] == [True, True, True, False, False]
    assert ["temperature" in body for body in server.bodies] == [True, False, False, False, False]
    assert ["thinking" in body for body in server.bodies] == [True, True, False, False, False]
    assert json.dumps(SCHEMA) in server.bodies[4]["system"][0]["text"]


def test_a_refused_reply_raises_model_refused_with_its_tokens() -> None:
    server = Recorder(success({"type": "text", "text": ""}, stop_reason="refusal"))

    with pytest.raises(ModelRefused) as failure:
        model_on(server).complete(request_with(), deadline_s=10)

    assert failure.value.usage is not None
    assert failure.value.usage.output_tokens == 50
    assert failure.value.cost_usd


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (
            error(401, "authentication_error", f"invalid x-api-key {KEY}"),
            ModelRejected,
            r"invalid x-api-key \*\*\*",
        ),
        (error(404, "not_found_error", "model: claude-x"), ModelRejected, "model: claude-x"),
        (error(429, "rate_limit_error", "slow"), ModelUnavailable, "limits the rate of calls"),
        (error(529, "overloaded_error", "Overloaded"), ModelUnavailable, "529 Overloaded"),
        (error(500, "api_error", "oops"), ModelUnavailable, "oops"),
        (httpx.Response(200, json={"content": "?"}), ModelUnavailable, "cannot be read"),
    ],
)
def test_each_failure_raises_its_model_error(
    answer: httpx.Response, kind: type[ModelError], words: str
) -> None:
    with pytest.raises(kind, match=words) as failure:
        model_on(Recorder(answer)).complete(request_with(None), deadline_s=10)

    assert KEY not in str(failure.value)
