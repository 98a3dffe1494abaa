"""Streams of the Messages API: pieces, usage, errors and breaks."""

from __future__ import annotations

from typing import Any

import pytest

from arbor.errors import ModelError, ModelRefused, ModelRejected, ModelUnavailable
from arbor.models.ports import ModelReply
from arbor.models.usage import Usage
from tests.unit.adapters.openai_server import Recorder, request_with
from tests.unit.adapters.stream_server import stream, typed_events
from tests.unit.adapters.test_anthropic import model_on

START = {
    "type": "message_start",
    "message": {
        "model": "claude-haiku-4-5-20251001",
        "usage": {
            "input_tokens": 100,
            "output_tokens": 1,
            "cache_read_input_tokens": 1000,
            "cache_creation_input_tokens": 200,
        },
    },
}
STOP = {"type": "message_stop"}


def delta(kind: str, text: str) -> dict[str, Any]:
    field = {"text_delta": "text", "input_json_delta": "partial_json", "thinking_delta": "thinking"}[kind]
    return {"type": "content_block_delta", "index": 0, "delta": {"type": kind, field: text}}


def end(reason: str) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 50}}


def streamed(*events: dict[str, Any], schema: bool = True) -> tuple[ModelReply, list[str], Recorder]:
    server, pieces = Recorder(stream(typed_events(*events))), list[str]()
    request = request_with() if schema else request_with(None)
    reply = model_on(server).complete(request, deadline_s=10, on_text=pieces.append)
    return reply, pieces, server


def test_a_tools_input_is_streamed_as_the_reply() -> None:
    reply, pieces, server = streamed(
        START,
        {"type": "ping"},
        delta("thinking_delta", "secret"),
        delta("input_json_delta", '{"thinking":'),
        delta("input_json_delta", ' "é"}'),
        end("tool_use"),
        STOP,
    )

    assert pieces == ['{"thinking":', ' "é"}']
    assert (reply.text, reply.finish_reason) == ('{"thinking": "é"}', "stop")
    assert reply.model == "claude-haiku-4-5-20251001"
    assert reply.usage == Usage(
        input_tokens=1300, output_tokens=50, cached_tokens=1000, cache_write_tokens=200
    )
    assert server.bodies[0]["stream"] is True


def test_text_is_streamed_where_no_tool_is_asked_for() -> None:
    reply, pieces, _ = streamed(
        START, delta("text_delta", "Good "), delta("text_delta", "day."), end("end_turn"), STOP, schema=False
    )

    assert (reply.text, pieces) == ("Good day.", ["Good ", "day."])


def test_text_beside_a_tool_is_not_streamed() -> None:
    reply, pieces, _ = streamed(
        START, delta("text_delta", "Well:"), delta("input_json_delta", '{"thinking": "x"}'), end("tool_use")
    )

    assert (reply.text, pieces) == ('{"thinking": "x"}', ['{"thinking": "x"}'])


def test_a_tools_input_cut_at_the_limit_stays_as_it_is() -> None:
    reply, _, _ = streamed(START, delta("input_json_delta", '{"thinking": "x'), end("max_tokens"), STOP)

    assert (reply.text, reply.finish_reason) == ('{"thinking": "x', "length")


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("overloaded_error", ModelUnavailable),
        ("rate_limit_error", ModelUnavailable),
        ("api_error", ModelUnavailable),
        ("timeout_error", ModelUnavailable),
        ("authentication_error", ModelRejected),
        ("something_new", ModelUnavailable),
    ],
)
def test_an_error_event_is_one_of_arbors_errors(kind: str, error: type[ModelError]) -> None:
    fault = {"type": "error", "error": {"type": kind, "message": "Overloaded"}}

    with pytest.raises(error, match="Overloaded"):
        streamed(START, delta("input_json_delta", "{"), fault)


def test_a_refusal_has_its_usage() -> None:
    with pytest.raises(ModelRefused) as failure:
        streamed(START, delta("text_delta", "I"), end("refusal"), STOP)

    assert failure.value.usage == Usage(
        input_tokens=1300, output_tokens=50, cached_tokens=1000, cache_write_tokens=200
    )


def test_a_message_without_its_end_is_broken_off() -> None:
    with pytest.raises(ModelUnavailable, match="broke off"):
        streamed(START, delta("input_json_delta", '{"thinking": "x"}'))


@pytest.mark.parametrize("kind", [[], {}, None, 1])
def test_deltas_of_no_type_are_left_out(kind: object) -> None:
    odd = {"type": "content_block_delta", "delta": {"type": kind, "text": "x"}}

    reply, pieces, _ = streamed(START, odd, delta("text_delta", "Hi"), end("end_turn"), STOP, schema=False)

    assert (reply.text, pieces) == ("Hi", ["Hi"])
