"""Streams of the Chat Completions protocol: pieces, usage, errors and breaks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import httpx
import pytest

from arbor.adapters import event_stream
from arbor.adapters.dialect import DialectCache
from arbor.adapters.exchange import ApiEndpoint
from arbor.adapters.openai import ChatCompletionsModel
from arbor.adapters.transport import DeadlineTransport, DirectClient
from arbor.errors import ModelError, ModelRefused, ModelRejected, ModelTimeout, ModelUnavailable
from arbor.models.handles import Handle
from arbor.models.ports import ModelReply
from arbor.models.usage import Usage
from tests.unit.adapters.openai_server import Recorder, Server, error, model_on, request_with, success
from tests.unit.adapters.stream_server import USAGE_CHUNK, chunk, events, raw_server, stream

TEXT = '{"thinking": "hm"}'
WHOLE = events(chunk(""), chunk('{"thinking"'), chunk(': "hm"}'), chunk(finish="stop"), USAGE_CHUNK)


def streamed(server: Server) -> tuple[ModelReply, list[str]]:
    pieces: list[str] = []
    return model_on(server).complete(request_with(), deadline_s=10, on_text=pieces.append), pieces


def failure_of(*answers: httpx.Response) -> tuple[ModelError, list[str]]:
    pieces: list[str] = []
    with pytest.raises(ModelError) as failure:
        model_on(Recorder(*answers)).complete(request_with(None), deadline_s=10, on_text=pieces.append)
    return failure.value, pieces


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
def test_a_stream_gives_its_pieces_and_the_same_reply(line_end: bytes) -> None:
    server = Recorder(stream(WHOLE.replace(b"\n", line_end)))

    reply, pieces = streamed(server)

    assert pieces == ['{"thinking"', ': "hm"}']
    assert (reply.text, reply.model, reply.finish_reason) == (TEXT, "gpt-4o-mini-2024-07-18", "stop")
    assert reply.usage == Usage(input_tokens=1000, output_tokens=200, cached_tokens=400)
    assert (
        reply.cost_usd
        == model_on(Recorder(httpx.Response(200, json=success())))
        .complete(request_with(), deadline_s=10)
        .cost_usd
    )
    assert server.bodies[0]["stream"] is True
    assert server.bodies[0]["stream_options"] == {"include_usage": True}


def test_a_call_without_a_receiver_asks_for_no_stream() -> None:
    server = Recorder(httpx.Response(200, json=success()))

    model_on(server).complete(request_with(), deadline_s=10)

    assert "stream" not in server.bodies[0]


def test_line_ends_comments_and_reasoning_do_not_matter() -> None:
    body = (
        b": OPENROUTER PROCESSING\r\n\r\n"
        b'data: {"choices": [{"delta": {"reasoning_content": "secret"}}]}\r\n\r\n'
        b'event: message\r\ndata: {"choices": [{"delta": {"content": "Good \xe2\x80\xa8day"}}]}\r\n\r\n'
        b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\r\n\r\n'
    )

    reply, pieces = streamed(Recorder(stream(body)))

    assert (reply.text, pieces) == ("Good \u2028day", ["Good \u2028day"])


def test_a_server_that_does_not_stream_replies_at_once() -> None:
    reply, pieces = streamed(Recorder(httpx.Response(200, json=success())))

    assert (reply.text, pieces) == (TEXT, [])


@pytest.mark.parametrize(
    ("message", "left_out"),
    [
        ("Unknown parameter: stream_options", ["stream_options"]),
        ("Your organization must be verified to stream this model.", ["stream", "stream_options"]),
    ],
)
def test_refused_options_of_a_stream_are_omitted(message: str, left_out: Sequence[str]) -> None:
    server = Recorder(error(400, message), httpx.Response(200, json=success()))

    reply, _ = streamed(server)

    assert reply.text == TEXT
    assert [name for name in ("stream", "stream_options") if name not in server.bodies[1]] == left_out


def test_an_upstream_error_is_no_refusal_to_stream() -> None:
    failure, _ = failure_of(error(400, "the upstream says no"), httpx.Response(200, json=success()))

    assert isinstance(failure, ModelRejected)


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (events(chunk("Good "), done=False), ModelUnavailable, "broke off its stream"),
        (b"", ModelUnavailable, "broke off its stream"),
        (events(chunk("Good ")).replace(b'"model"', b"model"), ModelUnavailable, "cannot be read"),
        (b"data: 7\n\n", ModelUnavailable, "cannot be read"),
        (events(chunk("a"), {"error": {"message": "no room", "code": 503}}), ModelUnavailable, "503 no room"),
        (
            events({"error": {"message": "too fast", "code": 429}}),
            ModelUnavailable,
            "limits the rate of calls",
        ),
        (events(chunk("Half", finish="content_filter")), ModelRefused, "content filter"),
        (events({"choices": [{"delta": {"refusal": "I will not"}}]}), ModelRefused, "I will not"),
    ],
)
def test_a_broken_stream_is_one_of_arbors_errors(body: bytes, kind: type[ModelError], words: str) -> None:
    failure, _ = failure_of(stream(body))

    assert isinstance(failure, kind)
    assert words in str(failure)


def test_a_call_that_fails_after_its_first_piece_is_not_repeated() -> None:
    fault: Any = {"error": {"message": "the grammar does not fit the schema", "code": 400}}
    server = Recorder(stream(events(chunk("Good "), fault)))
    pieces: list[str] = []

    with pytest.raises(ModelRejected):
        model_on(server).complete(request_with(), deadline_s=10, on_text=pieces.append)

    assert (len(server.requests), pieces) == (1, ["Good "])


def complete_on_socket(base_url: str, deadline_s: float) -> tuple[ModelReply | ModelError, list[str]]:
    """Call a model at a real address; return its reply or error, and the pieces before."""
    pieces: list[str] = []
    with DirectClient(DeadlineTransport()) as client:
        model = ChatCompletionsModel(
            Handle.parse("openai/stub"),
            endpoint=ApiEndpoint(provider="openai", url=f"{base_url}/chat/completions"),
            client=client,
            dialects=DialectCache(),
        )
        try:
            return model.complete(request_with(None), deadline_s=deadline_s, on_text=pieces.append), pieces
        except ModelError as failure:
            return failure, pieces


def test_a_cut_connection_makes_the_provider_unavailable() -> None:
    with raw_server(events(chunk("Good "), done=False), b'data: {"choi') as base_url:
        failure, pieces = complete_on_socket(base_url, 10)

    assert isinstance(failure, ModelUnavailable)
    assert pieces == ["Good "]


def test_a_silent_stream_meets_the_deadline() -> None:
    with raw_server(events(chunk("Good "), done=False), stays_open=True) as base_url:
        failure, pieces = complete_on_socket(base_url, 2)

    assert isinstance(failure, ModelTimeout)
    assert pieces == ["Good "]


def test_a_finished_stream_does_not_wait_for_the_server() -> None:
    with raw_server(WHOLE[:90], WHOLE[90:], stays_open=True) as base_url:
        reply, pieces = complete_on_socket(base_url, 25)

    assert isinstance(reply, ModelReply)
    assert "".join(pieces) == reply.text == TEXT


def test_a_stream_without_an_end_of_line_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "MAX_STREAM_BYTES", 1000)

    failure, _ = failure_of(stream(b"data: " + b"x" * 2000))

    assert isinstance(failure, ModelUnavailable)
    assert "more than" in str(failure)


def test_a_streamed_reply_has_the_limit_of_a_complete_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "MAX_REPLY_BYTES", 1000)

    failure, _ = failure_of(stream(events(*[chunk("x" * 100) for _ in range(12)], chunk("", finish="stop"))))

    assert isinstance(failure, ModelUnavailable)
    assert "sent more than 1000 bytes" in str(failure)


def in_parts(body: bytes, size: int) -> Server:
    """Return a server that sends a stream in parts of `size` bytes."""
    headers = {"content-type": "text/event-stream"}
    parts = (body[at : at + size] for at in range(0, len(body), size))
    return lambda _: httpx.Response(200, headers=headers, content=parts)


class CountingPattern:
    """A pattern that counts the bytes in which it is searched."""

    def __init__(self, pattern: re.Pattern[bytes]) -> None:
        self._pattern = pattern
        self.searched = 0

    def split(self, text: bytes) -> list[bytes]:
        self.searched += len(text)
        return self._pattern.split(text)


def test_a_long_line_is_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = CountingPattern(event_stream._LINE_END)
    monkeypatch.setattr(event_stream, "_LINE_END", pattern)
    body = events(chunk("Good " * 1_000), chunk(finish="stop"))

    reply, _ = streamed(in_parts(body, 50))

    assert reply.text == "Good " * 1_000
    assert pattern.searched <= len(body)


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
def test_lines_are_the_same_wherever_they_are_cut(line_end: bytes) -> None:
    reply, pieces = streamed(in_parts(WHOLE.replace(b"\n", line_end), 1))

    assert (reply.text, pieces) == (TEXT, ['{"thinking"', ': "hm"}'])
