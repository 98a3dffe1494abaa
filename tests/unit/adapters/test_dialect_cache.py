"""The dialects that a process stores."""

from __future__ import annotations

import json

import httpx
import pytest
from pydantic import SecretStr

from arbor.adapters import dialect
from arbor.adapters.dialect import Dialect, DialectCache, Form
from arbor.adapters.exchange import ApiEndpoint, KeyAuth
from arbor.adapters.openai import ChatCompletionsModel
from arbor.models.handles import Handle
from tests.unit.adapters.openai_server import request_with, success


def test_the_dialect_stored_longest_ago_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialect, "_MOST_DIALECTS", 2)
    cache, default, stored = DialectCache(), Dialect(forms=(Form.SCHEMA,)), Dialect(forms=(Form.PLAIN,))
    for key in ("first", "second", "first", "third"):
        cache.put(key, stored)
    assert [cache.get(key, default) is stored for key in ("first", "second", "third")] == [True, False, True]


def test_a_refusal_to_stream_holds_for_one_account_only() -> None:
    cache, streamed = DialectCache(), []

    def serve(request: httpx.Request) -> httpx.Response:
        streams = json.loads(request.content).get("stream", False)
        streamed.append((request.headers["authorization"], streams))
        if streams:
            return httpx.Response(400, json={"error": {"message": "this account may not stream"}})
        return httpx.Response(200, json=success())

    for key in ("first", "first", "second"):
        model = ChatCompletionsModel(
            Handle.parse("openai/gpt-4o-mini"),
            endpoint=ApiEndpoint(provider="openai", url="http://model.test/v1", auth=KeyAuth(SecretStr(key))),
            client=httpx.Client(transport=httpx.MockTransport(serve)),
            dialects=cache,
        )
        model.complete(request_with(), deadline_s=5, on_text=lambda _: None)

    first, second = "Bearer first", "Bearer second"
    assert streamed == [(first, True), (first, False), (first, False), (second, True), (second, False)]
