"""Lists of providers' models, which prove that a key is accepted."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from arbor.adapters.credentials import tenant_credentials
from arbor.adapters.model_list import MAX_LISTED, list_models
from arbor.errors import ConfigurationInvalid, ModelError, ModelRejected, ModelUnavailable
from arbor.models.handles import Provider
from tests.unit.adapters.openai_server import Recorder, error

KEY = "sk-tenant-0123456789abcdef"


def model_list(*names: Any) -> httpx.Response:
    return httpx.Response(200, json={"data": [{"id": name} for name in names]})


def ask(
    provider: Provider, server: Recorder, *, key: str = KEY, base_url: str = ""
) -> tuple[str, ...] | None:
    return list_models(
        provider,
        tenant_credentials(provider, key=key, base_url=base_url),
        client=httpx.Client(transport=httpx.MockTransport(server)),
        deadline_s=5,
        advice="the key and the address",
    )


@pytest.mark.parametrize(
    ("provider", "base_url", "asked", "header"),
    [
        (Provider.OPENAI, "", ["https://api.openai.com/v1/models"], f"Bearer {KEY}"),
        (Provider.OPENAI, "https://llm.test/v1/", ["https://llm.test/v1/models"], f"Bearer {KEY}"),
        (Provider.ANTHROPIC, "", ["https://api.anthropic.com/v1/models?limit=1000"], KEY),
        (
            Provider.OPENROUTER,
            "",
            ["https://openrouter.ai/api/v1/key", "https://openrouter.ai/api/v1/models"],
            f"Bearer {KEY}",
        ),
        (
            Provider.GEMINI,
            "",
            ["https://generativelanguage.googleapis.com/v1beta/openai/models"],
            f"Bearer {KEY}",
        ),
        (Provider.OLLAMA, "http://gpu.test:9999", ["http://gpu.test:9999/v1/models"], None),
        (Provider.VLLM, "https://gpu.test/v1", ["https://gpu.test/v1/models"], f"Bearer {KEY}"),
    ],
)
def test_each_provider_is_asked_with_the_key(
    provider: Provider, base_url: str, asked: list[str], header: str | None
) -> None:
    server = Recorder(*[model_list("b", "a")] * len(asked))
    assert ask(provider, server, base_url=base_url) == ("a", "b")
    assert [str(request.url) for request in server.requests] == asked
    for request in server.requests:
        assert request.method == "GET"
        assert (
            request.headers.get("x-api-key" if provider is Provider.ANTHROPIC else "authorization") == header
        )


def test_models_that_cannot_converse_are_left_out() -> None:
    server = Recorder(
        model_list("models/gemini-flash-latest", "text-embedding-3-small", "whisper-1", "", 7, "a b")
    )
    assert ask(Provider.OPENAI, server) == ("gemini-flash-latest",)


def test_a_long_list_is_cut() -> None:
    names = ask(Provider.OPENAI, Recorder(model_list(*(f"model-{number:04d}" for number in range(900)))))
    assert names is not None
    assert len(names) == MAX_LISTED


def test_a_bare_list_is_read_too() -> None:
    assert ask(Provider.OPENAI, Recorder(httpx.Response(200, json=[{"id": "a"}]))) == ("a",)


def test_a_server_without_a_list_is_no_error() -> None:
    assert ask(Provider.OPENAI, Recorder(error(404, "not found"))) is None


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (error(401, f"Incorrect API key provided: {KEY}"), ModelRejected),
        (error(403, "not allowed"), ModelRejected),
        (error(500, "overloaded"), ModelUnavailable),
        (httpx.Response(302, headers={"location": "http://127.0.0.1/"}), ModelRejected),
        (httpx.Response(200, text="<html>"), ModelRejected),
        (httpx.Response(200, json={"hello": "world"}), ModelUnavailable),
    ],
)
def test_an_error_never_quotes_the_key(answer: httpx.Response, kind: type[ModelError]) -> None:
    server = Recorder(answer)
    with pytest.raises(kind) as refused:
        ask(Provider.OPENAI, server)
    assert KEY not in str(refused.value)
    assert len(server.requests) == 1, "redirects are not followed"


def test_a_provider_without_a_network_has_no_list() -> None:
    with pytest.raises(ConfigurationInvalid, match="reflex needs no key"):
        ask(Provider.REFLEX, Recorder())
