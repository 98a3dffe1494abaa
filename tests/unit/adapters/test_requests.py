"""Requests of the direct client, which are those of httpx, and the bodies of responses."""

from __future__ import annotations

import math
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from arbor.adapters.exchange import ApiEndpoint, HttpReply, KeyAuth, post_json
from arbor.adapters.transport import TIMEOUT, DeadlineTransport, DirectClient
from bench.support.stub_process import RunningStub


class RecordingTransport(DeadlineTransport):
    """A transport that records the requests that it sends."""

    def __init__(self, sent: list[httpx.Request]) -> None:
        super().__init__()
        self._sent = sent

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self._sent.append(request)
        return super().handle_request(request)


def test_a_direct_client_sends_the_same_request_as_httpx(stub: RunningStub) -> None:
    sent: list[httpx.Request] = []
    endpoint = ApiEndpoint(
        provider="openai",
        url=f"{stub.base_url}/chat/completions",
        auth=KeyAuth(SecretStr("a key")),
        headers={"X-Title": "Arbor"},
    )
    with (
        DirectClient(RecordingTransport(sent)) as direct,
        httpx.Client(transport=RecordingTransport(sent), timeout=TIMEOUT) as plain,
    ):
        for client in (direct, plain):
            answer = post_json(client, endpoint, {"model": "stub", "messages": []}, deadline_s=5)
            assert answer.json() is not None
    by_direct, by_httpx = sent
    assert dict(by_direct.headers) == dict(by_httpx.headers)
    assert by_direct.headers.get_list("Accept-Encoding") == ["identity"]
    assert (by_direct.method, by_direct.url, by_direct.read()) == (
        by_httpx.method,
        by_httpx.url,
        by_httpx.read(),
    )
    assert by_direct.extensions["timeout"] == by_httpx.extensions["timeout"]


def test_a_user_in_the_address_is_still_sent(stub: RunningStub) -> None:
    sent: list[httpx.Request] = []
    url = f"{stub.base_url}/chat/completions".replace("://", "://somebody:secret@")
    with DirectClient(RecordingTransport(sent)) as client:
        post_json(client, ApiEndpoint(provider="openai", url=url), {"model": "stub"}, deadline_s=5)
    assert sent[0].headers["Authorization"].startswith("Basic ")


@pytest.mark.parametrize(
    ("content", "read"),
    [
        (b'{"a": [1, null]}', {"a": [1, None]}),
        (b"18446744073709551615", 2**64 - 1),
        (b"18446744073709551616", float(2**64)),
        (b"1e999", math.inf),
        (b'"\\ud800"', "\ud800"),
        (b"not JSON", None),
        (b'"\xff"', None),
    ],
)
def test_a_response_body_is_parsed_as_json(content: bytes, read: Any) -> None:
    value = HttpReply(status=200, headers=httpx.Headers(), content=content).json()
    assert (value, type(value)) == (read, type(read))
