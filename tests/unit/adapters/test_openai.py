"""Chat Completions: what is sent, what is read, and what each refusal becomes."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from arbor.adapters.dialect import DialectMemory
from arbor.adapters.exchange import MAX_REPLY_BYTES, Door, KeyAuth
from arbor.adapters.openai import ChatCompletionsModel, is_closed
from arbor.errors import ModelError, ModelRefused, ModelRejected, ModelTimeout, ModelUnavailable
from arbor.models.handles import Handle
from arbor.models.ports import CallPurpose, Message, ModelReply, ModelRequest, Usage

KEY = "sk-proj-verySecret0123456789"

SCHEMA = {
    "type": "object",
    "properties": {"thinking": {"type": "string"}},
    "required": ["thinking"],
    "additionalProperties": False,
}

type Server = Callable[[httpx.Request], httpx.Response]


def request_with(schema: dict[str, Any] | None = SCHEMA) -> ModelRequest:
    return ModelRequest(
        purpose=CallPurpose.THINK,
        system="You are Scout.",
        messages=(Message(role="user", content="What now?"),),
        schema=schema,
        schema_name="heartbeat_reply",
        max_tokens=500,
        temperature=0.4,
    )


def success(**changes: Any) -> dict[str, Any]:
    return {
        "model": "gpt-4o-mini-2024-07-18",
        "choices": [
            {"message": {"role": "assistant", "content": '{"thinking": "hm"}'}, "finish_reason": "stop"}
        ],
        "usage": {
            "prompt_tokens": 1000,
            "completion_tokens": 200,
            "prompt_tokens_details": {"cached_tokens": 400},
        },
    } | changes


def model_on(
    server: Server, *, handle: str = "openai/gpt-4o-mini", quiet: bool = False
) -> ChatCompletionsModel:
    door = Door(
        provider="openai",
        url="http://model.test/v1/chat/completions",
        auth=KeyAuth(SecretStr(KEY)),
        headers={"OpenAI-Project": "garden"},
        settings="OPENAI_API_KEY and OPENAI_BASE_URL",
    )
    return ChatCompletionsModel(
        Handle.parse(handle),
        door=door,
        client=httpx.Client(transport=httpx.MockTransport(server)),
        quiet=quiet,
        memory=DialectMemory(),
    )


class Recorder:
    """A server that answers from a list, the last one for ever, and keeps what it was sent."""

    def __init__(self, *answers: httpx.Response) -> None:
        self.answers = answers
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(request.content) for request in self.requests]


def fails_with(answer: httpx.Response) -> ModelError:
    with pytest.raises(ModelError) as failure:
        model_on(Recorder(answer)).complete(request_with(None), deadline_s=10)
    return failure.value


def error(
    status: int, message: str = "no", headers: dict[str, str] | None = None, **fields: Any
) -> httpx.Response:
    return httpx.Response(status, json={"error": {"message": message} | fields}, headers=headers)


def test_the_request_holds_the_prompt_the_limits_and_the_schema() -> None:
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


def test_the_reply_holds_the_text_the_tokens_and_the_cost() -> None:
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
def test_odd_replies_are_read_as_far_as_they_go(
    changes: dict[str, Any], text: str, finish_reason: str
) -> None:
    reply = model_on(Recorder(httpx.Response(200, json=success(**changes)))).complete(
        request_with(), deadline_s=10
    )

    assert (reply.text, reply.finish_reason) == (text, finish_reason)


def test_usage_that_is_missing_or_odd_counts_as_nothing_and_a_price_unknown_stays_unknown() -> None:
    odd = {"prompt_tokens": "many", "completion_tokens": None, "prompt_tokens_details": None}
    server = Recorder(
        httpx.Response(200, json=success(usage=odd)), httpx.Response(200, json=success(usage=None))
    )
    model = model_on(server, handle="llamacpp/gemma")

    for _ in range(2):
        reply = model.complete(request_with(), deadline_s=10)
        assert (reply.usage, reply.cost_usd) == (Usage(), None)


def test_the_cost_that_the_provider_states_wins() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "cost": 0.00014}
    server = Recorder(httpx.Response(200, json=success(usage=usage)))

    reply = model_on(server, handle="openrouter/some/model").complete(request_with(), deadline_s=10)

    assert reply.cost_usd == Decimal("0.00014")


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(200, json=success(choices=[{"message": {"content": None, "refusal": "I cannot."}}])),
        httpx.Response(
            200, json=success(choices=[{"message": {"content": ""}, "finish_reason": "content_filter"}])
        ),
    ],
)
def test_a_refusal_by_the_model_is_one_and_keeps_its_tokens(answer: httpx.Response) -> None:
    failure = fails_with(answer)

    assert isinstance(failure, ModelRefused)
    assert failure.usage == Usage(input_tokens=1000, output_tokens=200, cached_tokens=400)


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (error(400, "filtered", code="content_filter"), ModelRefused, "declined the content"),
        (error(401, "bad key"), ModelRejected, "401 bad key; check OPENAI_API_KEY and OPENAI_BASE_URL"),
        (error(404, "no such model"), ModelRejected, "openai rejected gpt-4o-mini: 404 no such model"),
        (error(429, "pay first", code="insufficient_quota"), ModelRejected, "pay first"),
        (error(429, "slow"), ModelUnavailable, "limits our rate: 429 slow"),
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
def test_each_failure_becomes_one_of_ours(answer: httpx.Response, kind: type[ModelError], words: str) -> None:
    failure = fails_with(answer)

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
def test_the_wish_to_wait_is_kept_and_a_rate_limit_is_no_fault(
    status: int, headers: dict[str, str], retry_after_s: float | None, provider_fault: bool
) -> None:
    failure = fails_with(error(status, headers=headers))

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
        (httpx.WriteTimeout("slow"), ModelTimeout),
        (httpx.PoolTimeout("full"), ModelUnavailable),
        (httpx.UnsupportedProtocol("ftp"), ModelRejected),
    ],
)
def test_each_network_failure_becomes_one_of_ours(raised: Exception, kind: type[ModelError]) -> None:
    def server(_: httpx.Request) -> httpx.Response:
        raise raised

    with pytest.raises(ModelError) as failure:
        model_on(server).complete(request_with(), deadline_s=10)

    assert type(failure.value) is kind
    if isinstance(raised, httpx.PoolTimeout):
        assert isinstance(failure.value, ModelUnavailable)
        assert not failure.value.provider_fault


@pytest.mark.parametrize("status", [400, 401, 429, 500])
def test_no_key_is_in_an_error_and_its_length_is_bounded(status: int) -> None:
    said = f"Incorrect API key provided: {KEY}. Or sk-other*****9876, Bearer abc.def.ghi\n" + "blah " * 500
    failure = fails_with(error(status, said))

    for secret in (KEY, "sk-other", "abc.def"):
        assert secret not in str(failure)
    assert "***" in str(failure)
    assert len(str(failure)) < 500
    assert "\n" not in str(failure)


def test_no_key_is_in_any_repr() -> None:
    auth = KeyAuth(SecretStr(KEY))
    door = Door(provider="openai", url="http://model.test", auth=auth)

    assert KEY not in f"{auth!r} {door!r} {vars(auth)!r}"


NO_SCHEMA = error(
    400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."
)


def formats(server: Recorder) -> list[str]:
    return [body.get("response_format", {}).get("type", "plain") for body in server.bodies]


def test_a_server_that_refuses_schemas_is_asked_for_json_and_that_is_remembered() -> None:
    server = Recorder(NO_SCHEMA, httpx.Response(200, json=success()))
    model = model_on(server)

    model.complete(request_with(), deadline_s=10)
    model.complete(request_with(), deadline_s=10)

    assert formats(server) == ["json_schema", "json_object", "json_object"]
    system = server.bodies[1]["messages"][0]["content"]
    assert system.startswith("You are Scout.\n\nReply with one JSON object")
    assert json.dumps(SCHEMA) in system


@pytest.mark.parametrize(
    "refusal",
    [
        NO_SCHEMA,
        error(400, "Bad request"),
        error(422, "Extra inputs are not permitted"),
        error(500, "failed to parse grammar"),
        httpx.Response(501),
    ],
)
def test_a_server_that_refuses_both_gets_the_schema_in_the_prompt_alone(refusal: httpx.Response) -> None:
    server = Recorder(refusal, refusal, httpx.Response(200, json=success()))

    model_on(server).complete(request_with(), deadline_s=10)

    assert formats(server) == ["json_schema", "json_object", "plain"]
    assert json.dumps(SCHEMA) in server.bodies[2]["messages"][0]["content"]


def test_a_request_that_no_form_saves_is_rejected_and_nothing_is_remembered() -> None:
    bad = error(400, "Bad request")
    server = Recorder(bad, bad, bad, httpx.Response(200, json=success()))
    model = model_on(server)

    with pytest.raises(ModelRejected, match="Bad request"):
        model.complete(request_with(), deadline_s=10)
    model.complete(request_with(), deadline_s=10)

    assert formats(server) == ["json_schema", "json_object", "plain", "json_schema"]


@pytest.mark.parametrize(
    "refusal",
    [
        error(400, "This model's maximum context length is 8192 tokens", code="context_length_exceeded"),
        error(401, "response_format"),
        error(404, "schema"),
        error(429, "schema"),
        error(500, "oops"),
    ],
)
def test_other_refusals_are_not_answered_with_a_weaker_form(refusal: httpx.Response) -> None:
    server = Recorder(refusal)

    with pytest.raises(ModelError):
        model_on(server).complete(request_with(), deadline_s=10)

    assert len(server.requests) == 1


def test_a_request_without_a_schema_has_no_form_to_weaken() -> None:
    server = Recorder(error(400, "Bad request"))

    with pytest.raises(ModelRejected):
        model_on(server).complete(request_with(None), deadline_s=10)

    assert formats(server) == ["plain"]


def test_a_model_without_temperature_or_with_another_limit_is_asked_as_it_likes() -> None:
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


def test_a_model_that_does_not_reason_is_not_asked_to_reason_little() -> None:
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
        purpose=CallPurpose.THINK, system="", messages=(Message(role="user", content="a\ud800b"),)
    )

    model_on(server).complete(request, deadline_s=10)

    assert server.bodies[0]["messages"] == [{"role": "user", "content": "a?b"}]


@pytest.mark.parametrize(
    ("schema", "closed"),
    [
        (SCHEMA, True),
        ({"type": "array", "items": SCHEMA}, True),
        ({"type": "object"}, False),
        (SCHEMA | {"required": []}, False),
        (SCHEMA | {"additionalProperties": True}, False),
        (SCHEMA | {"properties": {"thinking": {"type": "object"}}}, False),
        (SCHEMA | {"$defs": {"Free": {"type": "object", "additionalProperties": {"type": "string"}}}}, False),
        ({"anyOf": [SCHEMA, {"type": "null"}]}, True),
        ({"anyOf": [SCHEMA, {"type": "object"}]}, False),
    ],
)
def test_strict_is_asked_for_only_where_every_object_is_closed(schema: dict[str, Any], closed: bool) -> None:
    server = Recorder(httpx.Response(200, json=success()))

    model_on(server).complete(request_with(schema), deadline_s=10)

    assert is_closed(schema) is closed
    assert server.bodies[0]["response_format"]["json_schema"]["strict"] is closed
