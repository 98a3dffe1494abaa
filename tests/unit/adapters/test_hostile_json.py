"""Hostile JSON of servers: read as a reply that the database can store, or refused with a documented error."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import httpx
import pytest

from arbor.adapters.embedding_http import openai_embedder, tei_embedder
from arbor.adapters.exchange import ApiEndpoint, HttpReply
from arbor.adapters.web_search import SearxngSearch
from arbor.errors import EmbeddingFailed, ModelError, ModelUnavailable, WebFailed
from arbor.models.ports import Model
from arbor.models.retry import parse_retry_after
from tests.unit.adapters import openai_server, test_anthropic

#: JSON texts by what is wrong with them; each takes the place of one value of a reply.
HOSTILE = {
    "deep list": "[" * 100_000 + "]" * 100_000,
    "deep object": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "list of 900 levels": "[" * 900 + "]" * 900,
    "list of 3,000 levels beside NaN": "[NaN," + "[" * 3000 + "]" * 3000 + "]",
    "NaN": "NaN",
    "Infinity": "Infinity",
    "beyond floats": "1e999",
    "negative": "-1",
    "integer of 30 digits": "9" * 30,
    "integer of 400 digits": "9" * 400,
    "integer of 5,000 digits": "9" * 5000,
    "text of 5,000 digits": f'"{"9" * 5000}"',
    "half a character": '"\\ud800"',
    "truth": "true",
    "null": "null",
    "empty object": "{}",
}
LARGEST_COUNT = 2**31 - 1

MODEL_REPLIES = {
    "body": "%s",
    "choices": '{"choices": %s}',
    "message": '{"choices": [{"message": %s}]}',
    "content": '{"choices": [{"message": {"content": %s}}]}',
    "refusal": '{"choices": [{"message": {"refusal": %s}}]}',
    "finish": '{"choices": [{"message": {"content": "x"}, "finish_reason": %s}]}',
    "model": '{"model": %s, "choices": [{"message": {"content": "x"}}]}',
    "tokens": '{"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": %s}}',
    "cost": '{"choices": [{"message": {"content": "x"}}], "usage": {"cost": %s}}',
    "error": '{"error": {"code": %s, "message": %s}}',
}
MESSAGES_REPLIES = {
    "body": "%s",
    "content": '{"content": %s}',
    "block": '{"content": [%s]}',
    "text": '{"content": [{"type": "text", "text": %s}]}',
    "input": '{"content": [{"type": "tool_use", "input": %s}]}',
    "tokens": '{"content": [], "usage": {"input_tokens": %s, "cache_read_input_tokens": %s}}',
    "stop": '{"content": [], "stop_reason": %s}',
    "error": '{"error": {"type": %s, "message": %s}}',
}
VECTOR_REPLIES = {
    "body": "%s",
    "data": '{"data": %s}',
    "index": '{"data": [{"index": %s, "embedding": [1, 0]}]}',
    "vector": '{"data": [{"embedding": %s}]}',
    "number": '{"data": [{"embedding": [%s, 1]}]}',
}
SEARCH_REPLIES = {
    "body": "%s",
    "results": '{"results": %s}',
    "result": '{"results": [%s]}',
    "title": '{"results": [{"url": "https://a.example/", "title": %s, "content": %s}]}',
}

hostile = pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)


def answering(template: str, value: str, status: int = 200) -> Callable[[httpx.Request], httpx.Response]:
    content = template.replace("%s", value).encode()
    return lambda _request: httpx.Response(
        status, stream=httpx.ByteStream(content), headers={"content-type": "application/json"}
    )


def assert_usable_or_refused(model: Model) -> None:
    """Fail unless the model raises a documented error, or its reply can be stored."""
    try:
        reply = model.complete(openai_server.request_with(), deadline_s=10)
    except ModelError:
        return
    assert all(0 <= count <= LARGEST_COUNT for count in vars(reply.usage).values())
    assert reply.cost_usd is None or Decimal(0) <= reply.cost_usd < Decimal(100_000)
    assert isinstance(reply.text, str)


@hostile
@pytest.mark.parametrize("place", MODEL_REPLIES)
@pytest.mark.parametrize("status", [200, 400])
def test_chat_completions_raise_documented_errors_only(place: str, value: str, status: int) -> None:
    server = answering(MODEL_REPLIES[place], value, status)
    assert_usable_or_refused(openai_server.model_on(server))


@hostile
@pytest.mark.parametrize("place", MESSAGES_REPLIES)
@pytest.mark.parametrize("status", [200, 400])
def test_the_messages_api_raises_documented_errors_only(place: str, value: str, status: int) -> None:
    server: Any = answering(MESSAGES_REPLIES[place], value, status)
    assert_usable_or_refused(test_anthropic.model_on(server))


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
def test_a_body_compressed_twice_is_never_expanded(kind: str) -> None:
    bomb = gzip.compress(gzip.compress(b" " * 5_000_000))
    headers = {"content-type": kind, "content-encoding": "gzip, gzip"}
    model = openai_server.model_on(
        lambda _: httpx.Response(200, headers=headers, stream=httpx.ByteStream(bomb))
    )

    with pytest.raises(ModelUnavailable, match="compressed more than once"):
        model.complete(openai_server.request_with(), deadline_s=10, on_text=lambda _: None)


@hostile
@pytest.mark.parametrize("place", VECTOR_REPLIES)
def test_embedders_raise_documented_errors_only(place: str, value: str) -> None:
    for create in (openai_embedder, tei_embedder):
        client = httpx.Client(transport=httpx.MockTransport(answering(VECTOR_REPLIES[place], value)))
        endpoint = ApiEndpoint(provider="openai", url="http://model.test/v1")
        embedder = create(name="m", dimension=2, endpoint=endpoint, client=client)
        try:
            assert embedder.embed(["a text"]).shape == (1, 2)
        except EmbeddingFailed:
            continue


@hostile
@pytest.mark.parametrize("place", SEARCH_REPLIES)
def test_searches_raise_documented_errors_only(
    place: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = SearxngSearch("http://search.test")
    search.close()
    client = httpx.Client(transport=httpx.MockTransport(answering(SEARCH_REPLIES[place], value)))
    monkeypatch.setattr(search, "_client", client)
    try:
        found = search.search("q", 3, deadline_s=5)
    except WebFailed:
        return
    assert all(isinstance(text, str) for result in found for text in (result.title, result.snippet))


def test_a_deep_body_is_no_json() -> None:
    for content in (b"[" * 100_000, b"[NaN," + b"[" * 3000 + b"]" * 3001):
        assert HttpReply(status=200, headers=httpx.Headers(), content=content).json() is None


@pytest.mark.parametrize("header", ["9" * 5000, "9" * 400, "Mon, 99 Jan 99999 99:99:99 GMT"])
def test_an_absurd_retry_after_header_is_ignored(header: str) -> None:
    assert parse_retry_after(header, now=datetime.now(UTC)) is None
