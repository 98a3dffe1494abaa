"""A fake server of the OpenAI protocol with scripted responses."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from arbor.adapters.dialect import DialectCache
from arbor.adapters.exchange import ApiEndpoint, KeyAuth
from arbor.adapters.openai import ChatCompletionsModel
from arbor.errors import ModelError
from arbor.models.handles import Handle
from arbor.models.ports import CallPurpose, ModelRequest, PromptMessage

KEY = "sk-proj-verySecret0123456789"

SCHEMA = {
    "type": "object",
    "properties": {"thinking": {"type": "string"}},
    "required": ["thinking"],
    "additionalProperties": False,
}

type Server = Callable[[httpx.Request], httpx.Response]


def request_with(schema: dict[str, Any] | None = SCHEMA) -> ModelRequest:
    """Return a request for a reply of this schema, by default a closed one."""
    return ModelRequest(
        purpose=CallPurpose.THINK,
        system="You are Scout.",
        messages=(PromptMessage(role="user", content="What now?"),),
        schema=schema,
        schema_name="heartbeat_reply",
        max_tokens=500,
        temperature=0.4,
    )


def success(**changes: Any) -> dict[str, Any]:
    """Return the body of a successful response."""
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
    """Return a model whose calls this server answers."""
    endpoint = ApiEndpoint(
        provider="openai",
        url="http://model.test/v1/chat/completions",
        auth=KeyAuth(SecretStr(KEY)),
        headers={"OpenAI-Project": "garden"},
        settings="OPENAI_API_KEY and OPENAI_BASE_URL",
    )
    return ChatCompletionsModel(
        Handle.parse(handle),
        endpoint=endpoint,
        client=httpx.Client(transport=httpx.MockTransport(server)),
        quiet=quiet,
        dialects=DialectCache(),
    )


class Recorder:
    """A server that answers from a list, repeats the last answer, and records requests."""

    def __init__(self, *answers: httpx.Response) -> None:
        self.answers = answers
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """Return the JSON of the requests."""
        return [json.loads(request.content) for request in self.requests]


def failure_of(answer: httpx.Response) -> ModelError:
    """Return the error of a call that gets this response."""
    with pytest.raises(ModelError) as failure:
        model_on(Recorder(answer)).complete(request_with(None), deadline_s=10)
    return failure.value


def error(
    status: int, message: str = "no", headers: dict[str, str] | None = None, **fields: Any
) -> httpx.Response:
    """Return a response with an error, and further fields of it."""
    return httpx.Response(status, json={"error": {"message": message} | fields}, headers=headers)


def formats(server: Recorder) -> list[str]:
    """Return the form of the reply that each request asked for."""
    return [body.get("response_format", {}).get("type", "plain") for body in server.bodies]
