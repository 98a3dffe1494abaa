"""Errors of OpenAI-compatible servers, without keys in their messages."""

from __future__ import annotations

import httpx
import pytest
from pydantic import SecretStr

from arbor.adapters.exchange import MAX_REPLY_BYTES, ApiEndpoint, KeyAuth, post_json
from arbor.adapters.transport import DeadlineTransport, DirectClient
from arbor.errors import ModelError, ModelRefused, ModelRejected, ModelTimeout, ModelUnavailable
from arbor.models.usage import Usage
from tests.unit.adapters.openai_server import (
    KEY,
    error,
    failure_of,
    model_on,
    request_with,
    success,
)


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(200, json=success(choices=[{"message": {"content": None, "refusal": "I cannot."}}])),
        httpx.Response(
            200, json=success(choices=[{"message": {"content": ""}, "finish_reason": "content_filter"}])
        ),
    ],
)
def test_a_refused_reply_raises_model_refused_with_its_tokens(answer: httpx.Response) -> None:
    failure = failure_of(answer)

    assert isinstance(failure, ModelRefused)
    assert failure.usage == Usage(input_tokens=1000, output_tokens=200, cached_tokens=400)
    assert failure.cost_usd


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (error(400, "filtered", code="content_filter"), ModelRefused, "declined the content"),
        (error(401, "bad key"), ModelRejected, "401 bad key; check OPENAI_API_KEY and OPENAI_BASE_URL"),
        (error(404, "no such model"), ModelRejected, "openai rejected gpt-4o-mini: 404 no such model"),
        (error(429, "pay first", code="insufficient_quota"), ModelRejected, "pay first"),
        (error(429, "slow"), ModelUnavailable, "limits the rate of calls: 429 slow"),
        (error(500, "oops"), ModelUnavailable, "openai failed: 500 oops"),
        (error(503), ModelUnavailable, "503"),
        (error(408), ModelUnavailable, "408"),
        (httpx.Response(307, headers={"location": "/v2"}), ModelRejected, "307 Temporary Redirect"),
        (httpx.Response(502, text="<html>Bad gateway</html>"), ModelUnavailable, "Bad gateway"),
        (httpx.Response(400, json={"detail": "missing field"}), ModelRejected, "missing field"),
        (httpx.Response(400, json={"error": "plain words"}), ModelRejected, "plain words"),
        (
            httpx.Response(200, json={"error": {"code": 429, "message": "upstream is busy"}}),
            ModelUnavailable,
            "busy",
        ),
        (
            httpx.Response(200, json={"error": {"message": "upstream died"}}),
            ModelUnavailable,
            "502 upstream died",
        ),
        (
            httpx.Response(200, html="<h1>Hello</h1>"),
            ModelRejected,
            "is not a model's server.*OPENAI_BASE_URL",
        ),
        (
            httpx.Response(200, headers={"content-type": "application/json"}, content=b'{"ch'),
            ModelUnavailable,
            "read",
        ),
        (httpx.Response(200, json={"choices": []}), ModelUnavailable, "cannot be read"),
        (httpx.Response(200, json=[1]), ModelUnavailable, "cannot be read"),
        (
            httpx.Response(200, content=b"x" * (MAX_REPLY_BYTES + 1)),
            ModelUnavailable,
            "sent more than 4000000 bytes",
        ),
    ],
)
def test_each_failure_raises_its_model_error(
    answer: httpx.Response, kind: type[ModelError], words: str
) -> None:
    failure = failure_of(answer)

    assert type(failure) is kind
    with pytest.raises(kind, match=words):
        raise failure


@pytest.mark.parametrize(
    ("status", "headers", "retry_after_s", "provider_fault"),
    [
        (429, {"retry-after": "7"}, 7.0, False),
        (429, {"retry-after-ms": "1500", "retry-after": "2"}, 1.5, False),
        (429, {}, None, False),
        (503, {"retry-after": "9"}, 9.0, True),
    ],
)
def test_retry_after_is_preserved_and_a_rate_limit_is_no_fault(
    status: int, headers: dict[str, str], retry_after_s: float | None, provider_fault: bool
) -> None:
    failure = failure_of(error(status, headers=headers))

    assert isinstance(failure, ModelUnavailable)
    assert (failure.retry_after_s, failure.provider_fault) == (retry_after_s, provider_fault)


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (httpx.ConnectError("refused"), ModelUnavailable),
        (httpx.ReadError("reset"), ModelUnavailable),
        (httpx.RemoteProtocolError("cut"), ModelUnavailable),
        (httpx.ConnectTimeout("slow"), ModelUnavailable),
        (httpx.ReadTimeout("slow"), ModelTimeout),
        (httpx.WriteTimeout("slow"), ModelUnavailable),
        (httpx.PoolTimeout("full"), ModelUnavailable),
        (httpx.UnsupportedProtocol("ftp"), ModelRejected),
    ],
)
def test_each_network_failure_raises_its_model_error(raised: Exception, kind: type[ModelError]) -> None:
    def server(_: httpx.Request) -> httpx.Response:
        raise raised

    with pytest.raises(ModelError) as failure:
        model_on(server).complete(request_with(), deadline_s=10)

    assert type(failure.value) is kind
    if isinstance(raised, httpx.PoolTimeout):
        assert isinstance(failure.value, ModelUnavailable)
        assert not failure.value.provider_fault


@pytest.mark.parametrize("address", ["http://model.test:port/v1", "http://xn--a/v1"])
def test_an_address_that_cannot_be_asked_is_rejected(address: str) -> None:
    endpoint = ApiEndpoint(provider="openai", url=address)
    with DirectClient(DeadlineTransport()) as client, pytest.raises(ModelRejected, match="cannot be asked"):
        post_json(client, endpoint, {}, deadline_s=5)


@pytest.mark.parametrize("status", [400, 401, 429, 500])
def test_no_key_is_in_an_error_and_its_length_is_bounded(status: int) -> None:
    text = f"Incorrect API key provided: {KEY}. Or sk-other*****9876, Bearer abc.def.ghi\n" + "blah " * 500
    failure = failure_of(error(status, text))

    for secret in (KEY, "sk-other", "abc.def"):
        assert secret not in str(failure)
    assert "***" in str(failure)
    assert len(str(failure)) < 500
    assert "\n" not in str(failure)


def test_no_key_is_in_any_repr() -> None:
    auth = KeyAuth(SecretStr(KEY))
    endpoint = ApiEndpoint(provider="openai", url="http://model.test", auth=auth)

    assert KEY not in f"{auth!r} {endpoint!r} {vars(auth)!r}"
